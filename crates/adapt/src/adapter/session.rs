//! One session: its settings, its program if one runs, and the turn that is being worked on.

use super::{Note, Program};
use crate::outcome::Outcome;
use crate::turn::Effect;
use crate::{Answer, Dialect, Failure, Prompt, Setting, Start, Stop, Turn};
use jackfield_agents::Exit;
use serde_json::{Value, json};

/// The request of a turn that is over, and its result or error.
pub(super) type Answered = (Value, Result<Value, Value>);

pub(super) struct Session {
    pub(super) note: Note,
    pub(super) mcp: Vec<Value>,
    pub(super) dialect: Box<dyn Dialect>,
    pub(super) turn: Turn,
    /// The request of the running turn.
    pub(super) request: Option<Value>,
    /// The program that serves the session now.
    pub(super) program: Option<Program>,
    /// A program that was told to end and has not yet; the next one waits for it.
    pub(super) leaving: Option<Program>,
    /// A prompt that waits for `leaving`.
    pub(super) waiting: Option<Prompt>,
    /// A setting changed that only a new program can have.
    pub(super) stale: bool,
}

impl Session {
    pub(super) fn new(note: Note, mcp: Vec<Value>, dialect: Box<dyn Dialect>) -> Session {
        Session {
            note,
            mcp,
            dialect,
            turn: Turn::default(),
            request: None,
            program: None,
            leaving: None,
            waiting: None,
            stale: false,
        }
    }

    pub(super) fn start(&self) -> Start<'_> {
        self.note.start(&self.mcp)
    }

    /// A program was started for this session.
    pub(super) fn open(&mut self, program: Program) {
        self.program = Some(program);
        self.stale = false;
        let Session { note, mcp, dialect, turn, .. } = self;
        let start = note.start(mcp);
        dialect.open(&start, turn);
    }

    pub(super) fn on_line(&mut self, line: &str) {
        self.dialect.line(line, &mut self.turn);
    }

    pub(super) fn on_end(&mut self, exit: &Exit) {
        self.dialect.end(exit, &mut self.turn);
        if self.turn.is_running() {
            let failure = Failure::from_exit(exit, &self.turn.noise, self.turn.has_spoken());
            self.turn.fail(failure);
        }
        self.turn.finish();
    }

    /// The process is gone for good. Returns whether a prompt waits for that.
    pub(super) fn forget(&mut self, program: Program) -> bool {
        if self.program == Some(program) {
            self.program = None;
        }
        if self.leaving == Some(program) {
            self.leaving = None;
        }
        self.waiting.is_some() && self.program.is_none() && self.leaving.is_none()
    }

    /// Returns whether the program must be stopped for it.
    pub(super) fn on_cancel(&mut self) -> bool {
        if self.request.is_none() {
            return false;
        }
        self.turn.on_cancel();
        if self.waiting.take().is_some() {
            // Nothing was started for it.
            self.turn.done(Stop::Cancelled);
            return false;
        }
        !self.dialect.cancel(&mut self.turn)
    }

    pub(super) fn on_answer(&mut self, key: &str, outcome: &Value) {
        let answer = match outcome["optionId"].as_str() {
            Some(option) if outcome["outcome"] == "selected" => Answer::Chosen(option),
            _ => Answer::Cancelled,
        };
        self.dialect.answer(key, answer, &mut self.turn);
    }

    pub(super) fn set(&mut self, setting: Setting<'_>) {
        let value = |text: &str| Some(text.to_owned());
        match setting {
            Setting::Mode(mode) => self.note.mode = value(mode),
            Setting::Model(model) => self.note.model = value(model).filter(|it| it != "default"),
            Setting::Reasoning(level) => {
                self.note.reasoning = value(level).filter(|it| it != "default");
            }
        }
        if self.program.is_some() && !self.dialect.set(setting, &mut self.turn) {
            self.stale = true;
        }
    }

    /// Takes what the dialect said, and the answer of the prompt if the turn is over.
    pub(super) fn take(&mut self, name: &str) -> (Vec<Effect>, Option<Answered>) {
        let over = self.request.is_some() && self.turn.outcome.is_some();
        if over {
            self.turn.finish();
        }
        let effects = std::mem::take(&mut self.turn.effects);
        let outcome = if over { self.turn.outcome.clone() } else { None };
        let answer = outcome.zip(self.request.take_if(|_| over)).map(|(outcome, request)| {
            let answer = match outcome {
                Outcome::Done(stop) => Ok(self.result(stop)),
                Outcome::Failed(failure) => Err(failure.to_error(name)),
            };
            (request, answer)
        });
        (effects, answer)
    }

    fn result(&self, stop: Stop) -> Value {
        let mut result = json!({"stopReason": stop.word()});
        if let Some(usage) = self.turn.usage {
            result["usage"] = usage.to_json();
        }
        if let Some(dollars) = self.turn.cost {
            let cost = json!({"amount": dollars, "currency": "USD"});
            result["_meta"] = json!({"jackfield": {"cost": cost}});
        }
        result
    }
}

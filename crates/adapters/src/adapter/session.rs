//! One session: its settings, its process if one runs, and the current turn.

use super::{ProgramId, SessionRecord};
use crate::outcome::AdapterTurnOutcome;
use crate::turn_effect::TurnEffect;
use crate::{
    AdapterTurn, Dialect, PermissionAnswer, ProgramSetting, PromptInput, StartContext, StopReason,
    TurnFailure,
};
use jackfield_agents::AgentExit;
use serde_json::{Value, json};

/// The request id of a prompt whose turn has ended, and its result or error.
pub(super) type PromptResponse = (Value, Result<Value, Value>);

pub(super) struct AdapterSession {
    pub(super) record: SessionRecord,
    pub(super) mcp_servers: Vec<Value>,
    is_sandboxed: bool,
    pub(super) dialect: Box<dyn Dialect>,
    pub(super) turn: AdapterTurn,
    /// The id of the prompt request whose turn is running.
    pub(super) prompt_request: Option<Value>,
    /// The process that serves the session.
    pub(super) program: Option<ProgramId>,
    /// A process that is stopping. The next one starts after it has exited.
    pub(super) stopping_program: Option<ProgramId>,
    /// A prompt that waits for a process to start.
    pub(super) pending_prompt: Option<PromptInput>,
    /// Set if a setting changed that only a new process can apply.
    pub(super) needs_restart: bool,
}

impl AdapterSession {
    pub(super) fn new(
        record: SessionRecord,
        mcp_servers: Vec<Value>,
        dialect: Box<dyn Dialect>,
        is_sandboxed: bool,
    ) -> AdapterSession {
        AdapterSession {
            record,
            mcp_servers,
            is_sandboxed,
            dialect,
            turn: AdapterTurn::default(),
            prompt_request: None,
            program: None,
            stopping_program: None,
            pending_prompt: None,
            needs_restart: false,
        }
    }

    pub(super) fn start_context(&self) -> StartContext<'_> {
        self.record.start_context(&self.mcp_servers, self.is_sandboxed)
    }

    /// A process was started for this session.
    pub(super) fn on_start(&mut self, program: ProgramId) {
        self.program = Some(program);
        self.needs_restart = false;
        let AdapterSession { record, mcp_servers, is_sandboxed, dialect, turn, .. } = self;
        let start = record.start_context(mcp_servers, *is_sandboxed);
        dialect.on_start(&start, turn);
    }

    pub(super) fn on_line(&mut self, line: &str) {
        self.dialect.on_line(line, &mut self.turn);
    }

    pub(super) fn on_output(&mut self, text: &str) {
        self.dialect.on_output(text, &mut self.turn);
    }

    pub(super) fn on_exit(&mut self, exit: &AgentExit) {
        self.turn.end_unparsed_lines(exit);
        self.dialect.on_exit(exit, &mut self.turn);
        if self.turn.is_running() {
            let failure = TurnFailure::from_exit(exit, &self.turn.noise, self.turn.has_output());
            self.turn.fail(failure);
        }
        self.turn.close();
    }

    /// The process has exited. Returns whether a prompt can now start a new one.
    pub(super) fn on_program_gone(&mut self, program: ProgramId) -> bool {
        if self.program == Some(program) {
            self.program = None;
        }
        if self.stopping_program == Some(program) {
            self.stopping_program = None;
        }
        self.pending_prompt.is_some() && self.program.is_none() && self.stopping_program.is_none()
    }

    /// Returns whether the process must be stopped to cancel the turn.
    pub(super) fn on_cancel(&mut self) -> bool {
        if self.prompt_request.is_none() {
            return false;
        }
        self.turn.mark_cancelled();
        if self.pending_prompt.take().is_some() {
            // No process was started for this prompt.
            self.turn.complete(StopReason::Cancelled);
            return false;
        }
        !self.dialect.on_cancel(&mut self.turn)
    }

    pub(super) fn on_answer(&mut self, key: &str, outcome: &Value) {
        let answer = match outcome["optionId"].as_str() {
            Some(option) if outcome["outcome"] == "selected" => PermissionAnswer::Selected(option),
            _ => PermissionAnswer::Cancelled,
        };
        self.dialect.on_answer(key, answer, &mut self.turn);
    }

    pub(super) fn apply_setting(&mut self, setting: ProgramSetting<'_>) {
        let value = |text: &str| Some(text.to_owned());
        match setting {
            ProgramSetting::Mode(mode) => self.record.mode = value(mode),
            ProgramSetting::Model(model) => {
                self.record.model = value(model).filter(|it| it != "default");
            }
            ProgramSetting::Reasoning(level) => {
                self.record.reasoning = value(level).filter(|it| it != "default");
            }
        }
        if self.program.is_some() && !self.dialect.on_setting(setting, &mut self.turn) {
            self.needs_restart = true;
        }
    }

    /// Takes the effects of the dialect, and the response to the prompt if the turn has ended.
    pub(super) fn take_effects(&mut self, name: &str) -> (Vec<TurnEffect>, Option<PromptResponse>) {
        let has_ended = self.prompt_request.is_some() && self.turn.outcome.is_some();
        if has_ended {
            self.turn.close();
        }
        let effects = std::mem::take(&mut self.turn.effects);
        let outcome = if has_ended { self.turn.outcome.clone() } else { None };
        let request = self.prompt_request.take_if(|_| has_ended);
        let response = outcome.zip(request).map(|(outcome, request)| {
            let result = match outcome {
                AdapterTurnOutcome::Completed(reason) => Ok(self.prompt_result(reason)),
                AdapterTurnOutcome::Failed(failure) => Err(failure.to_json_rpc_error(name)),
            };
            (request, result)
        });
        (effects, response)
    }

    fn prompt_result(&self, reason: StopReason) -> Value {
        let mut result = json!({"stopReason": reason.as_str()});
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

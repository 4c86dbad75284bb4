//! Claude Code's stream of JSON lines, and the programs that borrowed it.
//!
//! ```text
//!  line ─► talk ─┬─ speech   words, once each
//!                ├─ calls    tool calls: show (titles, diffs), plan (things to do)
//!                ├─ trouble  failed requests and retries
//!                └─ result   outcome, tokens, cost
//!          control           asks and settings, only where stdin is a channel too
//! ```

mod calls;
mod control;
mod handover;
mod plan;
mod question;
mod result;
mod show;
mod speech;
mod talk;
#[cfg(test)]
mod tests;
mod trouble;

use crate::{Answer, Can, Dialect, Handover, Life, Prompt, Setting, Start, Turn};
use control::Control;
use jackfield_agents::Exit;
use serde_json::json;
use talk::{Flavor, Talk};

/// Claude Code: one program for the session, spoken to on stdin.
pub(crate) fn claude() -> Box<dyn Dialect> {
    let talk = Talk::new(Flavor::Claude);
    Box::new(Claude { talk, control: Control::default(), may_bypass: false })
}

/// Amp, and others that print the format and take text: one program for each turn.
pub(crate) fn amp() -> Box<dyn Dialect> {
    Box::new(Printer { talk: Talk::new(Flavor::Amp) })
}

/// Qwen Code: the format with its own tools and its own arithmetic.
pub(crate) fn qwen() -> Box<dyn Dialect> {
    Box::new(Printer { talk: Talk::new(Flavor::Qwen) })
}

/// The mode that a program has only if it was started in it.
const BYPASS: &str = "bypassPermissions";

struct Claude {
    talk: Talk,
    control: Control,
    may_bypass: bool,
}

impl Dialect for Claude {
    fn life(&self) -> Life {
        Life::Session
    }

    fn can(&self) -> Can {
        Can { images: true, mcp: true }
    }

    fn handover(&self, start: &Start<'_>) -> Option<Handover> {
        handover::mcp(start.mcp)
    }

    fn open(&mut self, start: &Start<'_>, turn: &mut Turn) {
        self.control.forget();
        self.may_bypass = start.mode == Some(BYPASS);
        self.talk.open(start.cwd, start.mode, start.native.is_some());
        self.control.request(&json!({"subtype": "initialize", "hooks": null}), turn);
    }

    fn prompt(&mut self, prompt: &Prompt, turn: &mut Turn) {
        self.talk.begin();
        turn.write(&handover::user(prompt));
    }

    fn line(&mut self, line: &str, turn: &mut Turn) {
        let Some(value) = turn.object(line) else { return };
        match value["type"].as_str() {
            Some("control_request") => self.control.on_request(&value, &mut self.talk, turn),
            Some("control_response") => {
                self.control.on_response(&value, &mut self.talk, turn);
            }
            Some("control_cancel_request") => self.control.on_cancel(&value, turn),
            Some("result") if result::is_foreign(&value) => {
                self.talk.on_line(&value, turn);
                if turn.is_cancelled() && turn.is_running() {
                    // The interrupt hit the program's own turn, not ours.
                    self.cancel(turn);
                }
            }
            Some("result") => {
                self.control.close(turn);
                self.talk.on_line(&value, turn);
            }
            _ => self.talk.on_line(&value, turn),
        }
    }

    fn cancel(&mut self, turn: &mut Turn) -> bool {
        self.control.request(&json!({"subtype": "interrupt"}), turn);
        true
    }

    fn answer(&mut self, key: &str, answer: Answer<'_>, turn: &mut Turn) {
        self.control.answer(key, answer, &mut self.talk, turn);
    }

    fn set(&mut self, setting: Setting<'_>, turn: &mut Turn) -> bool {
        match setting {
            Setting::Mode(BYPASS) if !self.may_bypass => return false,
            Setting::Mode(mode) => self.control.set_mode(mode, &mut self.talk, turn),
            Setting::Model(model) => {
                self.control.request(&json!({"subtype": "set_model", "model": model}), turn);
            }
            Setting::Reasoning(_) => return false,
        }
        true
    }

    fn end(&mut self, _exit: &Exit, turn: &mut Turn) {
        self.control.forget();
        last_words(&self.talk, turn);
    }
}

/// A program that prints the format; the prompt is handed over as the catalogue says.
struct Printer {
    talk: Talk,
}

impl Dialect for Printer {
    fn life(&self) -> Life {
        Life::Turn
    }

    fn open(&mut self, start: &Start<'_>, _turn: &mut Turn) {
        self.talk.open(start.cwd, start.mode, start.native.is_some());
    }

    fn prompt(&mut self, _prompt: &Prompt, _turn: &mut Turn) {
        self.talk.begin();
    }

    fn line(&mut self, line: &str, turn: &mut Turn) {
        if let Some(value) = turn.object(line) {
            self.talk.on_line(&value, turn);
        }
    }

    fn end(&mut self, _exit: &Exit, turn: &mut Turn) {
        last_words(&self.talk, turn);
    }
}

fn last_words(talk: &Talk, turn: &mut Turn) {
    if let Some(failure) = talk.trouble.last_words().filter(|_| turn.is_running()) {
        turn.fail(failure);
    }
}

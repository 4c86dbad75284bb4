//! Claude Code's stream of JSON lines, and the programs that adopted the format.
//!
//! ```text
//!  line ─► stream ─┬─ message_stream  text and thoughts, each sent once
//!                  ├─ calls           tool calls: tool_action (titles, diffs), task_list (plan)
//!                  ├─ request_errors  failed model requests and retries
//!                  └─ result          outcome, tokens, cost
//!          control                    permission requests and settings, if stdin is read
//! ```

mod calls;
mod control;
mod input;
mod message_stream;
mod questions;
mod request_errors;
mod result;
mod stream;
mod task_list;
#[cfg(test)]
mod tests;
mod tool_action;

use crate::{
    AdapterTurn, Dialect, PermissionAnswer, PrivateFile, ProgramCapabilities, ProgramLifetime,
    ProgramSetting, PromptInput, StartContext,
};
use control::ControlChannel;
use jackfield_agents::AgentExit;
use serde_json::json;
use stream::{ClaudeStream, StreamFlavor};

/// Claude Code: one process per session, with input on stdin.
pub(crate) fn new_claude() -> Box<dyn Dialect> {
    let stream = ClaudeStream::new(StreamFlavor::Claude);
    Box::new(ClaudeDialect { stream, control: ControlChannel::default(), can_bypass: false })
}

/// Amp and other programs that print the format and accept text: one process per turn.
pub(crate) fn new_amp() -> Box<dyn Dialect> {
    Box::new(PrintDialect { stream: ClaudeStream::new(StreamFlavor::Amp) })
}

/// Qwen Code: the format with its own tools and its own token counts.
pub(crate) fn new_qwen() -> Box<dyn Dialect> {
    Box::new(PrintDialect { stream: ClaudeStream::new(StreamFlavor::Qwen) })
}

/// The mode that is available only if the process was started in it.
const BYPASS_MODE: &str = "bypassPermissions";

struct ClaudeDialect {
    stream: ClaudeStream,
    control: ControlChannel,
    can_bypass: bool,
}

impl Dialect for ClaudeDialect {
    fn lifetime(&self) -> ProgramLifetime {
        ProgramLifetime::PerSession
    }

    fn capabilities(&self) -> ProgramCapabilities {
        ProgramCapabilities { images: true, mcp: true }
    }

    fn private_file(&self, start: &StartContext<'_>) -> Option<PrivateFile> {
        input::mcp_config(start.mcp_servers)
    }

    fn on_start(&mut self, start: &StartContext<'_>, turn: &mut AdapterTurn) {
        self.control.clear();
        self.can_bypass = start.mode == Some(BYPASS_MODE);
        self.stream.on_start(start);
        self.control.send_request(&json!({"subtype": "initialize", "hooks": null}), turn);
    }

    fn on_prompt(&mut self, prompt: &PromptInput, turn: &mut AdapterTurn) {
        self.stream.begin_turn();
        turn.write_json(&input::user_message(prompt));
    }

    fn on_line(&mut self, line: &str, turn: &mut AdapterTurn) {
        let Some(value) = turn.parse_object(line) else { return };
        match value["type"].as_str() {
            Some("control_request") => self.control.on_request(&value, &mut self.stream, turn),
            Some("control_response") => {
                self.control.on_response(&value, &mut self.stream, turn);
            }
            Some("control_cancel_request") => self.control.on_cancel(&value, turn),
            Some("result") if result::is_self_initiated(&value) => {
                self.stream.on_line(&value, turn);
                if turn.is_cancelled() && turn.is_running() {
                    // The interrupt stopped a turn that the program started by itself.
                    self.on_cancel(turn);
                }
            }
            Some("result") => {
                self.control.deny_all(turn);
                self.stream.on_line(&value, turn);
            }
            _ => self.stream.on_line(&value, turn),
        }
    }

    fn on_cancel(&mut self, turn: &mut AdapterTurn) -> bool {
        self.control.send_request(&json!({"subtype": "interrupt"}), turn);
        true
    }

    fn on_answer(&mut self, key: &str, answer: PermissionAnswer<'_>, turn: &mut AdapterTurn) {
        self.control.on_answer(key, answer, &mut self.stream, turn);
    }

    fn on_setting(&mut self, setting: ProgramSetting<'_>, turn: &mut AdapterTurn) -> bool {
        match setting {
            ProgramSetting::Mode(BYPASS_MODE) if !self.can_bypass => return false,
            ProgramSetting::Mode(mode) => self.control.set_mode(mode, &mut self.stream, turn),
            ProgramSetting::Model(model) => {
                self.control.send_request(&json!({"subtype": "set_model", "model": model}), turn);
            }
            ProgramSetting::Reasoning(_) => return false,
        }
        true
    }

    fn on_exit(&mut self, _exit: &AgentExit, turn: &mut AdapterTurn) {
        self.control.clear();
        fail_with_last_error(&self.stream, turn);
    }
}

/// A program that prints the format; the catalog specifies how the prompt is passed.
struct PrintDialect {
    stream: ClaudeStream,
}

impl Dialect for PrintDialect {
    fn lifetime(&self) -> ProgramLifetime {
        ProgramLifetime::PerTurn
    }

    fn on_start(&mut self, start: &StartContext<'_>, _turn: &mut AdapterTurn) {
        self.stream.on_start(start);
    }

    fn on_prompt(&mut self, _prompt: &PromptInput, _turn: &mut AdapterTurn) {
        self.stream.begin_turn();
    }

    fn on_line(&mut self, line: &str, turn: &mut AdapterTurn) {
        if let Some(value) = turn.parse_object(line) {
            self.stream.on_line(&value, turn);
        }
    }

    fn on_exit(&mut self, _exit: &AgentExit, turn: &mut AdapterTurn) {
        fail_with_last_error(&self.stream, turn);
    }
}

fn fail_with_last_error(stream: &ClaudeStream, turn: &mut AdapterTurn) {
    if let Some(failure) = stream.errors.last_failure().filter(|_| turn.is_running()) {
        turn.fail(failure);
    }
}

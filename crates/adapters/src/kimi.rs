//! `kimi -p … --output-format stream-json`: complete messages as objects with a role, one process
//! per turn.

use crate::tool_calls::{CallResult, ToolCallTracker};
use crate::{
    AdapterTurn, Dialect, ProgramLifetime, StartContext, StopReason, TurnFailure, known_tools,
    provider,
};
use jackfield_agents::AgentExit;
use serde_json::{Value, json};

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(KimiDialect::default())
}

#[derive(Default)]
struct KimiDialect {
    calls: ToolCallTracker,
    /// The reason for the current retry, until the model has answered.
    retry_reason: Option<TurnFailure>,
}

impl Dialect for KimiDialect {
    fn lifetime(&self) -> ProgramLifetime {
        ProgramLifetime::PerTurn
    }

    fn on_start(&mut self, start: &StartContext<'_>, _turn: &mut AdapterTurn) {
        *self = KimiDialect { calls: ToolCallTracker::new(start.cwd), ..KimiDialect::default() };
    }

    fn on_line(&mut self, line: &str, turn: &mut AdapterTurn) {
        let Some(message) = turn.parse_object(line) else { return };
        match (message["role"].as_str(), message["type"].as_str()) {
            (Some("assistant"), _) => self.on_assistant(&message, turn),
            (Some("tool"), _) if message["tool_call_id"].is_string() => {
                self.on_tool(&message, turn);
            }
            (Some("meta"), Some("session.resume_hint")) if message["session_id"].is_string() => {
                turn.set_agent_session_id(message["session_id"].as_str().unwrap_or_default());
            }
            (Some("meta"), Some("turn.step.retrying")) => self.on_retry(&message, turn),
            _ => turn.report_unmapped(&message),
        }
    }

    fn on_exit(&mut self, exit: &AgentExit, turn: &mut AdapterTurn) {
        if exit.code == Some(0) && turn.has_output() {
            return turn.complete(StopReason::EndTurn);
        }
        let failure = self.retry_reason.take();
        turn.fail(failure.unwrap_or_else(|| provider::failure_from_exit(exit, turn)));
    }
}

impl KimiDialect {
    fn on_assistant(&mut self, message: &Value, turn: &mut AdapterTurn) {
        self.retry_reason = None;
        if let Some(thought) = message["reasoning_content"].as_str() {
            turn.send_thought("", thought);
        }
        match &message["content"] {
            Value::String(text) => turn.send_text("", text),
            Value::Array(parts) => parts.iter().for_each(|part| on_part(part, turn)),
            _ => {}
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let Some(id) = call["id"].as_str() else {
                turn.report_unmapped(call);
                continue;
            };
            let name = call["function"]["name"].as_str().unwrap_or(id);
            self.calls.begin_call(id, name, &parse_arguments(&call["function"]["arguments"]), turn);
        }
    }

    fn on_tool(&mut self, message: &Value, turn: &mut AdapterTurn) {
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        let text = match &message["content"] {
            Value::String(text) => text.clone(),
            Value::Array(parts) => {
                parts.iter().filter_map(|part| known_tools::first_text(part, &["text"])).collect()
            }
            _ => String::new(),
        };
        // No field reports a failure; the text of a failed call starts with this marker.
        let failed = message["is_error"] == true || text.starts_with("<system>ERROR");
        self.calls.end_call(id, CallResult { failed, text: &text, output: &Value::Null }, turn);
    }

    fn on_retry(&mut self, message: &Value, turn: &mut AdapterTurn) {
        let reason = message["error_message"].as_str().unwrap_or("no reason given");
        let (next, max) = (&message["next_attempt"], &message["max_attempts"]);
        turn.send_notice(&format!("retrying, attempt {next} of {max}: {reason}"));
        let status = provider::parse_status(&message["status_code"]);
        self.retry_reason = Some(provider::parse_failure(reason, status));
    }
}

fn on_part(part: &Value, turn: &mut AdapterTurn) {
    if let Some(text) = part["text"].as_str() {
        turn.send_text("", text);
    } else if let Some(thought) = known_tools::first_text(part, &["think", "thinking"]) {
        turn.send_thought("", thought);
    } else {
        turn.report_unmapped(part);
    }
}

/// Parses arguments, which are JSON in a string unless the model wrote invalid JSON.
fn parse_arguments(arguments: &Value) -> Value {
    let Some(text) = arguments.as_str() else { return arguments.clone() };
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureCause;
    use crate::outcome::AdapterTurnOutcome;
    use crate::turn_effect::TurnEffect;

    fn play_lines(lines: &[&str], exit: &AgentExit) -> AdapterTurn {
        let (mut kimi, mut turn) = (KimiDialect::default(), AdapterTurn::default());
        turn.begin();
        for line in lines {
            kimi.on_line(line, &mut turn);
        }
        kimi.on_exit(exit, &mut turn);
        turn
    }

    #[test]
    fn parts_thoughts_and_invalid_arguments_are_sent() {
        let lines = [
            r#"{"role":"assistant","content":[{"type":"think","think":"hm"},{"type":"text","text":"Hi"}],"tool_calls":[{"id":"c","function":{"name":"SetTodoList","arguments":"{\"todos\":[{\"title\":\"a\",\"status\":\"done\"}]}"}},{"id":"d","function":{"name":"Shell","arguments":"{oops"}}]}"#,
            r#"{"role":"tool","tool_call_id":"d","content":[{"type":"text","text":"<system>ERROR: no</system>"}]}"#,
        ];
        let turn = play_lines(&lines, &AgentExit { code: Some(0), ..AgentExit::default() });
        let updates: Vec<String> = turn
            .effects
            .iter()
            .filter_map(|it| match it {
                TurnEffect::SendUpdate(it) => {
                    Some(format!("{} {}", it["sessionUpdate"], it["status"]))
                }
                _ => None,
            })
            .collect();
        let expected = [
            "\"agent_thought_chunk\" null",
            "\"agent_message_chunk\" null",
            "\"plan\" null",
            "\"tool_call\" \"in_progress\"",
            "\"tool_call_update\" \"failed\"",
        ];
        assert_eq!(updates, expected);
        assert_eq!(turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::EndTurn)));
    }

    #[test]
    fn exit_during_a_retry_fails_with_the_reason_of_the_retry() {
        let retry = r#"{"role":"meta","type":"turn.step.retrying","next_attempt":2,"max_attempts":3,"error_message":"500 oh","status_code":500}"#;
        let exit = AgentExit { code: Some(143), ..AgentExit::default() };
        let Some(AdapterTurnOutcome::Failed(failure)) = play_lines(&[retry], &exit).outcome else {
            panic!()
        };
        assert_eq!((failure.cause, failure.status), (FailureCause::Unavailable, Some(500)));
    }
}

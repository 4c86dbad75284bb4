//! `opencode run --format json`, and programs derived from `OpenCode`: complete parts only, one
//! process per turn.

use crate::tool_calls::{CallResult, ToolCallTracker};
use crate::usage_total::{TurnUsageTotal, read_count};
use crate::{
    AdapterTurn, Dialect, ProgramLifetime, StartContext, StopReason, StreamedText, TurnFailure,
    TurnUsage, known_tools, provider,
};
use jackfield_agents::AgentExit;
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(OpenCodeDialect::default())
}

#[derive(Default)]
struct OpenCodeDialect {
    calls: ToolCallTracker,
    /// The session of this turn; other sessions belong to its sub-agents.
    agent_session_id: Option<String>,
    /// The texts by the id of their part, because some derived programs send one twice.
    texts: BTreeMap<String, StreamedText>,
    usage_total: TurnUsageTotal,
    /// A model request was started and has not finished.
    is_in_step: bool,
    stop_reason: Option<StopReason>,
    failure: Option<TurnFailure>,
}

impl Dialect for OpenCodeDialect {
    fn lifetime(&self) -> ProgramLifetime {
        ProgramLifetime::PerTurn
    }

    fn on_start(&mut self, start: &StartContext<'_>, _turn: &mut AdapterTurn) {
        *self = OpenCodeDialect {
            calls: ToolCallTracker::new(start.cwd),
            ..OpenCodeDialect::default()
        };
    }

    fn on_line(&mut self, line: &str, turn: &mut AdapterTurn) {
        let Some(event) = turn.parse_object(line) else { return };
        if !self.is_own_session(&event, turn) {
            return turn.report_unmapped(&event);
        }
        let part = &event["part"];
        match event["type"].as_str() {
            Some("step_start") => {
                if self.is_in_step {
                    turn.send_notice("the model's answer was interrupted; retrying");
                }
                self.is_in_step = true;
            }
            Some("text" | "reasoning") => self.on_text(&event, turn),
            Some("tool_use") if part["callID"].is_string() => self.on_tool(part, turn),
            Some("step_finish") => self.on_step_finish(part, turn),
            Some("error") => self.on_error(&event["error"], turn),
            _ => turn.report_unmapped(&event),
        }
    }

    fn on_exit(&mut self, exit: &AgentExit, turn: &mut AdapterTurn) {
        if let Some(failure) = self.failure.take() {
            // Older versions exit with status 0 after an error.
            turn.fail(failure);
        } else if exit.code == Some(0) && turn.has_output() {
            turn.complete(self.stop_reason.unwrap_or(StopReason::EndTurn));
        } else {
            let failure = provider::failure_from_exit(exit, turn);
            turn.fail(failure);
        }
    }
}

impl OpenCodeDialect {
    fn is_own_session(&mut self, event: &Value, turn: &mut AdapterTurn) -> bool {
        let Some(id) = event["sessionID"].as_str() else { return true };
        if self.agent_session_id.is_none() {
            turn.set_agent_session_id(id);
        }
        self.agent_session_id.get_or_insert_with(|| id.to_owned()) == id
    }

    fn on_text(&mut self, event: &Value, turn: &mut AdapterTurn) {
        let part = &event["part"];
        let Some(text) = part["text"].as_str() else { return turn.report_unmapped(event) };
        let known = match part["id"].as_str() {
            Some(id) => self.texts.entry(id.to_owned()).or_default(),
            None => &mut StreamedText::default(),
        };
        let (message, new) =
            (part["messageID"].as_str().unwrap_or_default(), known.push_full(text));
        if event["type"] == "reasoning" {
            turn.send_thought(message, new);
        } else {
            turn.send_text(message, new);
        }
    }

    fn on_tool(&mut self, part: &Value, turn: &mut AdapterTurn) {
        let (id, state) = (part["callID"].as_str().unwrap_or_default(), &part["state"]);
        let name = part["tool"].as_str().unwrap_or(id);
        self.calls.begin_call(id, name, &state["input"], turn);
        let status = state["status"].as_str();
        if !matches!(status, Some("completed" | "error" | "failed")) {
            return;
        }
        let exit_codes = [&state["exit"], &state["exitCode"], &state["metadata"]["exit"]];
        let has_bad_exit =
            exit_codes.iter().any(|code| code.as_i64().is_some_and(|code| code != 0));
        let failed = status != Some("completed") || state["error"].is_string() || has_bad_exit;
        let text = known_tools::first_text(state, &["error", "output"]).unwrap_or_default();
        let output = if state["metadata"].is_object() { &state["metadata"] } else { &Value::Null };
        self.calls.end_call(id, CallResult { failed, text, output }, turn);
    }

    fn on_step_finish(&mut self, part: &Value, turn: &mut AdapterTurn) {
        self.is_in_step = false;
        if let Some(failure) = self.failure.take() {
            // It continued after the error, for example by compacting the conversation.
            turn.send_notice(&failure.message);
        }
        self.stop_reason = match part["reason"].as_str() {
            Some("length") => Some(StopReason::MaxTokens),
            Some("content-filter") => Some(StopReason::Refusal),
            _ => None,
        };
        let tokens = &part["tokens"];
        let (read, write) =
            (read_count(&tokens["cache"], &["read"]), read_count(&tokens["cache"], &["write"]));
        let fresh = read_count(tokens, &["input"]).unwrap_or(0);
        let thought = read_count(tokens, &["reasoning"]);
        // It counts cached tokens and thoughts separately; ACP includes them in input and output.
        let input = fresh.saturating_add(read.unwrap_or(0)).saturating_add(write.unwrap_or(0));
        let output =
            read_count(tokens, &["output"]).unwrap_or(0).saturating_add(thought.unwrap_or(0));
        let usage = TurnUsage { input, output, thought, cached_read: read, cached_write: write };
        self.usage_total.add_request(usage, part["cost"].as_f64(), turn);
    }

    /// The first error counts; later ones are consequences of it.
    fn on_error(&mut self, error: &Value, turn: &mut AdapterTurn) {
        let data = &error["data"];
        let message = known_tools::first_text(data, &["detail", "message", "error"])
            .or_else(|| known_tools::first_text(error, &["detail", "message", "error", "name"]))
            .or_else(|| error.as_str())
            .unwrap_or("unknown error");
        let failure = provider::parse_failure(message, provider::parse_status(&data["statusCode"]));
        if self.failure.is_some() {
            turn.report_unmapped(error);
        }
        self.failure.get_or_insert(failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureCause;
    use crate::outcome::AdapterTurnOutcome;
    use crate::turn_effect::TurnEffect;

    fn play_lines(lines: &[&str], code: i32, stderr: &str) -> AdapterTurn {
        let (mut dialect, mut turn) = (OpenCodeDialect::default(), AdapterTurn::default());
        turn.begin();
        for line in lines {
            dialect.on_line(line, &mut turn);
        }
        let exit =
            AgentExit { code: Some(code), stderr_tail: stderr.to_owned(), ..AgentExit::default() };
        dialect.on_exit(&exit, &mut turn);
        turn
    }

    fn cause(turn: &AdapterTurn) -> Option<FailureCause> {
        match &turn.outcome {
            Some(AdapterTurnOutcome::Failed(failure)) => Some(failure.cause),
            _ => None,
        }
    }

    const ERROR: &str = r#"{"type":"error","sessionID":"s","error":{"name":"ProviderAuthError","data":{"providerID":"openai","message":"Unauthorized"}}}"#;

    #[test]
    fn error_fails_the_turn_even_if_the_exit_status_is_zero() {
        assert_eq!(cause(&play_lines(&[ERROR], 0, "")), Some(FailureCause::Auth));
        assert_eq!(
            cause(&play_lines(&[], 1, "NotFoundError: Session not found: x")),
            Some(FailureCause::NoSession)
        );
    }

    #[test]
    fn error_that_the_turn_survives_is_a_notice() {
        let lines = [
            ERROR,
            r#"{"type":"text","sessionID":"s","part":{"id":"p","text":"Hello"}}"#,
            r#"{"type":"text","sessionID":"s","part":{"id":"p","text":"Hello there"}}"#,
            r#"{"type":"step_finish","sessionID":"s","part":{"reason":"length","cost":0.5,"tokens":{"input":1,"output":2,"reasoning":3,"cache":{"read":4,"write":5}}}}"#,
        ];
        let turn = play_lines(&lines, 0, "");
        assert_eq!(turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::MaxTokens)));
        let usage = turn.usage.unwrap();
        assert_eq!((usage.input, usage.output, turn.cost), (10, 5, Some(0.5)));
        let text: String = turn
            .effects
            .iter()
            .filter_map(|it| match it {
                TurnEffect::SendUpdate(it) if it["sessionUpdate"] == "agent_message_chunk" => {
                    it["content"]["text"].as_str()
                }
                _ => None,
            })
            .collect();
        assert_eq!(text, "Hello there");
    }

    #[test]
    fn nonzero_exit_fails_the_call_and_sub_agents_are_unmapped() {
        let lines = [
            r#"{"type":"tool_use","sessionID":"s","part":{"callID":"c","tool":"bash","state":{"status":"completed","input":{"command":"false"},"output":"","metadata":{"exit":1}}}}"#,
            r#"{"type":"text","sessionID":"other","part":{"id":"p","text":"not mine"}}"#,
        ];
        let turn = play_lines(&lines, 0, "");
        let updates = turn.effects.iter().filter_map(|it| match it {
            TurnEffect::SendUpdate(it) => Some(it),
            _ => None,
        });
        let summary: Vec<String> = updates
            .map(|it| format!("{} {}", it["sessionUpdate"].as_str().unwrap(), it["status"]))
            .collect();
        assert_eq!(
            summary,
            [
                "tool_call \"in_progress\"",
                "tool_call_update \"failed\"",
                "session_info_update null"
            ]
        );
    }
}

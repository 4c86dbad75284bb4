//! `gemini --output-format stream-json`: one process per turn, text in deltas, errors as a result
//! and in the exit status.

use crate::tool_calls::{CallResult, ToolCallTracker};
use crate::usage_total::{TurnUsageTotal, read_count};
use crate::{
    AdapterTurn, Dialect, FailureCause, ProgramLifetime, StartContext, StopReason, StreamedText,
    TurnFailure, TurnUsage, provider,
};
use jackfield_agents::AgentExit;
use serde_json::Value;

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(GeminiDialect::default())
}

#[derive(Default)]
struct GeminiDialect {
    calls: ToolCallTracker,
    text: StreamedText,
    /// Its session id, until the session can be resumed.
    agent_session_id: Option<String>,
    /// The last error that it reported and continued after.
    last_error: Option<String>,
}

impl Dialect for GeminiDialect {
    fn lifetime(&self) -> ProgramLifetime {
        ProgramLifetime::PerTurn
    }

    fn on_start(&mut self, start: &StartContext<'_>, _turn: &mut AdapterTurn) {
        *self =
            GeminiDialect { calls: ToolCallTracker::new(start.cwd), ..GeminiDialect::default() };
    }

    fn on_line(&mut self, line: &str, turn: &mut AdapterTurn) {
        let Some(event) = turn.parse_object(line) else { return };
        match (event["type"].as_str(), event["tool_id"].as_str()) {
            (Some("init"), _) => {
                self.agent_session_id = event["session_id"].as_str().map(str::to_owned);
            }
            (Some("message"), _) => {
                self.on_message(&event, turn);
                self.publish_session_id(turn);
            }
            (Some("tool_use"), Some(id)) => {
                self.text = StreamedText::default();
                self.publish_session_id(turn);
                let name = event["tool_name"].as_str().unwrap_or(id);
                self.calls.begin_call(id, name, &event["parameters"], turn);
            }
            (Some("tool_result"), Some(id)) => {
                self.text = StreamedText::default();
                self.on_tool_result(id, &event, turn);
            }
            (Some("error"), _) => self.on_error(&event, turn),
            (Some("result"), _) => self.on_result(&event, turn),
            _ => turn.report_unmapped(&event),
        }
    }

    fn on_exit(&mut self, exit: &AgentExit, turn: &mut AdapterTurn) {
        if !turn.is_running() {
            return;
        }
        let mut failure = match &self.last_error {
            Some(error) => provider::parse_failure(error, None),
            None => provider::failure_from_exit(exit, turn),
        };
        if let Some(status) = exit.code.and_then(http_status_from_exit) {
            failure =
                TurnFailure { message: failure.message, ..TurnFailure::classify("", Some(status)) };
        } else if exit.code == Some(EXIT_NO_LOGIN) {
            failure.cause = FailureCause::Auth;
        }
        turn.fail(failure);
    }
}

/// The exit status if no login method is configured.
const EXIT_NO_LOGIN: i32 = 41;

/// Restores an HTTP status that was truncated to the eight bits of an exit status.
fn http_status_from_exit(code: i32) -> Option<u16> {
    [400, 401, 403, 404, 413, 429, 500, 502, 503, 504]
        .into_iter()
        .find(|status| i32::from(status % 256) == code)
}

impl GeminiDialect {
    /// Publishes the session id once the model has answered: before that the program has not stored
    /// the session, and it cannot be resumed.
    fn publish_session_id(&mut self, turn: &mut AdapterTurn) {
        if let Some(id) = self.agent_session_id.take_if(|_| turn.has_output()) {
            turn.set_agent_session_id(&id);
        }
    }

    fn on_message(&mut self, event: &Value, turn: &mut AdapterTurn) {
        let content = event["content"].as_str();
        match (event["role"].as_str(), content) {
            (Some("assistant"), Some(content)) if event["delta"] == true => {
                turn.send_text("", self.text.push_delta(content));
            }
            (Some("assistant"), Some(content)) => {
                let missing = self.text.push_full(content);
                turn.send_text("", missing);
                self.text = StreamedText::default();
            }
            // The prompt, repeated.
            (Some("user"), Some(_)) => {}
            _ => turn.report_unmapped(event),
        }
    }

    fn on_tool_result(&mut self, id: &str, event: &Value, turn: &mut AdapterTurn) {
        let failed = event["status"] == "error" || event["error"].is_object();
        let text = event["output"].as_str().or_else(|| event["error"]["message"].as_str());
        let output = if event["error"].is_object() { &event["error"] } else { &event["output"] };
        let result = CallResult { failed, text: text.unwrap_or_default(), output };
        self.calls.end_call(id, result, turn);
    }

    fn on_error(&mut self, event: &Value, turn: &mut AdapterTurn) {
        let message = event["message"].as_str().unwrap_or("unknown error");
        turn.send_notice(message);
        if event["severity"] != "warning" {
            self.last_error = Some(message.to_owned());
        }
    }

    fn on_result(&mut self, event: &Value, turn: &mut AdapterTurn) {
        let stats = &event["stats"];
        if let Some(input) = read_count(stats, &["input_tokens"]) {
            let output = read_count(stats, &["output_tokens"]).unwrap_or(0);
            let cached_read = read_count(stats, &["cached"]);
            let usage = TurnUsage { input, output, cached_read, ..TurnUsage::default() };
            TurnUsageTotal::default().add_request(usage, None, turn);
        }
        if event["status"] == "error" || event["error"].is_object() {
            let message = event["error"]["message"].as_str();
            let message = message.or(self.last_error.as_deref()).unwrap_or("unknown error");
            return turn.fail(provider::parse_failure(message, None));
        }
        let is_exhausted =
            self.last_error.as_deref().is_some_and(|it| it.contains("session turns"));
        turn.complete(if is_exhausted { StopReason::MaxTurnRequests } else { StopReason::EndTurn });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::AdapterTurnOutcome;
    use crate::turn_effect::TurnEffect;

    fn play_lines(lines: &[&str], exit: &AgentExit) -> AdapterTurn {
        let (mut gemini, mut turn) = (GeminiDialect::default(), AdapterTurn::default());
        turn.begin();
        for line in lines {
            gemini.on_line(line, &mut turn);
        }
        gemini.on_exit(exit, &mut turn);
        turn
    }

    #[test]
    fn exit_status_is_an_http_status_modulo_256() {
        let causes = [
            (145, FailureCause::Auth, Some(401)),
            (173, FailureCause::RateLimited, Some(429)),
            (244, FailureCause::Unavailable, Some(500)),
            (41, FailureCause::Auth, None),
            (1, FailureCause::Crashed, None),
        ];
        for (code, cause, status) in causes {
            let exit = AgentExit { code: Some(code), ..AgentExit::default() };
            let turn = play_lines(&[], &exit);
            let Some(AdapterTurnOutcome::Failed(failure)) = &turn.outcome else {
                panic!("{:?}", turn.outcome)
            };
            assert_eq!((failure.cause, failure.status), (cause, status), "{code}");
        }
    }

    #[test]
    fn todos_become_a_plan_and_a_warning_is_a_notice() {
        let lines = [
            r#"{"type":"tool_use","tool_id":"t","tool_name":"write_todos","parameters":{"todos":[{"description":"Look","status":"in_progress"}]}}"#,
            r#"{"type":"tool_result","tool_id":"t","status":"success"}"#,
            r#"{"type":"error","severity":"warning","message":"Loop detected"}"#,
            r#"{"type":"message","role":"assistant","content":"Done."}"#,
            r#"{"type":"result","status":"success"}"#,
        ];
        let turn = play_lines(&lines, &AgentExit::default());
        let kinds: Vec<&str> = turn
            .effects
            .iter()
            .filter_map(|it| match it {
                TurnEffect::SendUpdate(update) => update["sessionUpdate"].as_str(),
                _ => None,
            })
            .collect();
        assert_eq!(kinds, ["plan", "session_info_update", "agent_message_chunk"]);
        assert_eq!(turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::EndTurn)));
    }

    #[test]
    fn turn_limit_is_a_stop_reason_and_a_failed_tool_shows_its_error() {
        let lines = [
            r#"{"type":"tool_use","tool_id":"t","tool_name":"replace","parameters":{"file_path":"/a","old_string":"x","new_string":"y"}}"#,
            r#"{"type":"tool_result","tool_id":"t","status":"error","error":{"type":"edit_no_occurrence_found","message":"not found"}}"#,
            r#"{"type":"error","severity":"error","message":"Maximum session turns exceeded"}"#,
            r#"{"type":"result","status":"success","stats":{}}"#,
        ];
        let turn = play_lines(&lines, &AgentExit::default());
        assert_eq!(turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::MaxTurnRequests)));
        let failed = turn.effects.iter().any(|it| {
            matches!(it, TurnEffect::SendUpdate(it) if it["status"] == "failed"
                && it["content"][0]["content"]["text"] == "not found")
        });
        assert!(failed, "{:?}", turn.effects);
    }
}

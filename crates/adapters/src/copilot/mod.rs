//! `copilot --output-format json`: events with dotted names, text in deltas and then in full, one
//! process per turn.

mod messages;

use crate::tool_calls::{CallResult, ToolCallTracker};
use crate::usage_total::{TurnUsageTotal, read_count, read_usage};
use crate::{
    AdapterTurn, Dialect, FailureCause, ProgramLifetime, StartContext, StopReason, TurnFailure,
    known_tools, provider,
};
use jackfield_agents::AgentExit;
use messages::CopilotMessages;
use serde_json::Value;

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(CopilotDialect::default())
}

#[derive(Default)]
struct CopilotDialect {
    calls: ToolCallTracker,
    messages: CopilotMessages,
    usage_total: TurnUsageTotal,
    /// The error of the last model request.
    request_error: Option<String>,
    failure: Option<TurnFailure>,
}

impl Dialect for CopilotDialect {
    fn lifetime(&self) -> ProgramLifetime {
        ProgramLifetime::PerTurn
    }

    fn on_start(&mut self, start: &StartContext<'_>, _turn: &mut AdapterTurn) {
        *self =
            CopilotDialect { calls: ToolCallTracker::new(start.cwd), ..CopilotDialect::default() };
    }

    fn on_line(&mut self, line: &str, turn: &mut AdapterTurn) {
        let Some(event) = turn.parse_object(line) else { return };
        let Some(kind) = event["type"].as_str() else { return turn.report_unmapped(&event) };
        let data = &event["data"];
        match kind.split_once('.') {
            None if kind == "result" => self.on_result(&event, turn),
            Some(("assistant", kind)) => self.on_assistant(kind, &event, turn),
            Some(("tool", kind)) if data["toolCallId"].is_string() => {
                self.on_tool(kind, &event, turn);
            }
            Some(("session", kind)) => self.on_session(kind, &event, turn),
            Some(("model", "call_failure")) => {
                self.request_error = data["errorMessage"].as_str().map(str::to_owned);
            }
            // The start and the end of requests, and the prompt, repeated.
            Some(("model", _) | ("user", "message")) => {}
            _ => turn.report_unmapped(&event),
        }
    }

    fn on_exit(&mut self, exit: &AgentExit, turn: &mut AdapterTurn) {
        let failure = self.failure.take();
        turn.fail(failure.unwrap_or_else(|| provider::failure_from_exit(exit, turn)));
    }
}

impl CopilotDialect {
    fn on_assistant(&mut self, kind: &str, event: &Value, turn: &mut AdapterTurn) {
        let data = &event["data"];
        match kind {
            "turn_retry" => {
                self.messages.restart();
                let error = self.request_error.take();
                let reason = error.map(|it| provider::parse_failure(&it, None).message);
                let reason = reason.or_else(|| data["reason"].as_str().map(str::to_owned));
                let reason = reason.unwrap_or_else(|| "no reason given".to_owned());
                turn.send_notice(&format!("retrying the model request: {reason}"));
            }
            "usage" => match read_usage(data) {
                Some(usage) => self.usage_total.add_request(usage, None, turn),
                None => turn.report_unmapped(event),
            },
            "message" => {
                self.messages.on_message(kind, event, turn);
                let parent = data["parentToolCallId"].as_str();
                for call in data["toolRequests"].as_array().into_iter().flatten() {
                    if let (Some(id), Some(name)) =
                        (call["toolCallId"].as_str(), call["name"].as_str())
                    {
                        self.calls.begin_nested_call(parent, id, name, &call["arguments"], turn);
                    }
                }
            }
            "message_start" | "message_delta" | "reasoning" | "reasoning_delta" => {
                self.messages.on_message(kind, event, turn);
            }
            // The start and the end of turns, and deltas of arguments that are repeated in full.
            "turn_start" | "turn_end" | "idle" | "intent" | "tool_call_delta" => {}
            _ => turn.report_unmapped(event),
        }
    }

    fn on_tool(&mut self, kind: &str, event: &Value, turn: &mut AdapterTurn) {
        let data = &event["data"];
        let id = data["toolCallId"].as_str().unwrap_or_default();
        match kind {
            "execution_start" => {
                let name = data["toolName"].as_str().unwrap_or(id);
                let parent = data["parentToolCallId"].as_str();
                self.calls.begin_nested_call(parent, id, name, &data["arguments"], turn);
            }
            "execution_partial_result" => {
                self.calls.show_output(
                    id,
                    data["partialOutput"].as_str().unwrap_or_default(),
                    turn,
                );
            }
            "execution_complete" => {
                let result = &data["result"];
                let text = known_tools::first_text(result, &["detailedContent", "content"])
                    .or_else(|| data["error"]["message"].as_str());
                let exit_code = data["shellExecution"]["exitCode"].as_i64();
                let failed = data["success"] == false || exit_code.is_some_and(|code| code != 0);
                let output = if result.is_null() { &data["error"] } else { result };
                let result = CallResult { failed, text: text.unwrap_or_default(), output };
                self.calls.end_call(id, result, turn);
            }
            // The output of the partial results, in deltas.
            "shell_output" => {}
            _ => turn.report_unmapped(event),
        }
    }

    fn on_session(&mut self, kind: &str, event: &Value, turn: &mut AdapterTurn) {
        let data = &event["data"];
        let message = data["message"].as_str();
        match (kind, message) {
            ("error", _) => {
                let status = provider::parse_status(&data["statusCode"]);
                let message = message.unwrap_or("unknown error");
                let mut failure = provider::parse_failure(message, status);
                if data["errorType"] == "authentication" {
                    failure.cause = FailureCause::Auth;
                }
                self.failure.get_or_insert(failure);
            }
            // Reported when the request is retried.
            ("info", _) if data["infoType"] == "model_retry" => {}
            ("info" | "warning", Some(message)) => turn.send_notice(message),
            ("title_changed", _) if data["title"].is_string() => {
                turn.send_title(data["title"].as_str().unwrap_or_default());
            }
            ("usage_info", _) => {
                let (used_tokens, size) =
                    (read_count(data, &["currentTokens"]), read_count(data, &["tokenLimit"]));
                match used_tokens.zip(size) {
                    Some((used_tokens, size)) => turn.send_context_size(used_tokens, size),
                    None => turn.report_unmapped(event),
                }
            }
            ("compaction_start", _) => turn.send_notice("compacting the conversation"),
            // Resources that were loaded at startup, which do not concern the turn.
            (
                "skills_loaded"
                | "mcp_servers_loaded"
                | "mcp_server_status_changed"
                | "tools_updated"
                | "background_tasks_changed",
                _,
            ) => {}
            _ => turn.report_unmapped(event),
        }
    }

    fn on_result(&mut self, event: &Value, turn: &mut AdapterTurn) {
        if let Some(id) = event["sessionId"].as_str() {
            turn.set_agent_session_id(id);
        }
        let is_success = match event["exitCode"].as_i64() {
            Some(code) => code == 0,
            None => event["success"] == true,
        };
        match self.failure.take() {
            // Old versions exit successfully after an error.
            Some(failure) if !is_success || !turn.has_output() => turn.fail(failure),
            _ if is_success => turn.complete(StopReason::EndTurn),
            // The exit of the program provides more details.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::AdapterTurnOutcome;
    use crate::turn_effect::TurnEffect;

    fn play_lines(lines: &[&str]) -> AdapterTurn {
        let (mut copilot, mut turn) = (CopilotDialect::default(), AdapterTurn::default());
        turn.begin();
        for line in lines {
            copilot.on_line(line, &mut turn);
        }
        turn
    }

    #[test]
    fn refused_tool_fails_and_the_turn_completes() {
        let turn = play_lines(&[
            r#"{"type":"tool.execution_start","data":{"toolCallId":"t","toolName":"bash","arguments":{"command":"ls"}}}"#,
            r#"{"type":"tool.execution_complete","data":{"toolCallId":"t","success":false,"error":{"message":"Permission denied","code":"denied"}}}"#,
            r#"{"type":"result","sessionId":"s","exitCode":0}"#,
        ]);
        let TurnEffect::SendUpdate(end) = &turn.effects[1] else { panic!() };
        assert_eq!(end["status"], "failed");
        assert_eq!(end["content"][0]["content"]["text"], "Permission denied");
        assert_eq!(turn.effects[2], TurnEffect::SetAgentSessionId("s".to_owned()));
        assert_eq!(turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::EndTurn)));
    }

    #[test]
    fn error_without_later_output_fails_the_turn_despite_success() {
        let error = r#"{"type":"session.error","data":{"errorType":"authentication","message":"who are you"}}"#;
        let result = r#"{"type":"result","sessionId":"s","success":true}"#;
        let Some(AdapterTurnOutcome::Failed(failure)) = play_lines(&[error, result]).outcome else {
            panic!()
        };
        assert_eq!(failure.cause, FailureCause::Auth);
        let text = r#"{"type":"assistant.message","data":{"messageId":"m","content":"Hi"}}"#;
        assert_eq!(
            play_lines(&[error, text, result]).outcome,
            Some(AdapterTurnOutcome::Completed(StopReason::EndTurn))
        );
    }

    #[test]
    fn usage_is_summed_and_warnings_become_notices() {
        let usage = r#"{"type":"assistant.usage","data":{"inputTokens":9,"outputTokens":1}}"#;
        let warning = r#"{"type":"session.warning","data":{"message":"slow"}}"#;
        let turn = play_lines(&[usage, warning, usage]);
        assert_eq!(turn.usage.map(|it| (it.input, it.output)), Some((18, 2)));
        let TurnEffect::SendUpdate(update) = &turn.effects[0] else { panic!() };
        assert_eq!(update["_meta"]["jackfield"]["notice"], "slow");
    }
}

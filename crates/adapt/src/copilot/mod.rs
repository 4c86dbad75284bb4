//! `copilot --output-format json`: events with dotted names, text in pieces and then whole, one
//! program for each turn.

mod message;

use crate::calls::{Calls, End};
use crate::tally::{Tally, count, usage_of};
use crate::{Cause, Dialect, Failure, Life, Start, Stop, Turn, kinds, provider};
use jackfield_agents::Exit;
use message::Messages;
use serde_json::Value;

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(Copilot::default())
}

#[derive(Default)]
struct Copilot {
    calls: Calls,
    messages: Messages,
    tally: Tally,
    /// What the last request to the model failed of.
    call_failed: Option<String>,
    failure: Option<Failure>,
}

impl Dialect for Copilot {
    fn life(&self) -> Life {
        Life::Turn
    }

    fn open(&mut self, start: &Start<'_>, _turn: &mut Turn) {
        *self = Copilot { calls: Calls::at(start.cwd), ..Copilot::default() };
    }

    fn line(&mut self, line: &str, turn: &mut Turn) {
        let Some(event) = turn.object(line) else { return };
        let Some(kind) = event["type"].as_str() else { return turn.unmapped(&event) };
        let data = &event["data"];
        match kind.split_once('.') {
            None if kind == "result" => self.on_result(&event, turn),
            Some(("assistant", what)) => self.on_assistant(what, &event, turn),
            Some(("tool", what)) if data["toolCallId"].is_string() => {
                self.on_tool(what, &event, turn);
            }
            Some(("session", what)) => self.on_session(what, &event, turn),
            Some(("model", "call_failure")) => {
                self.call_failed = data["errorMessage"].as_str().map(str::to_owned);
            }
            // When requests begin and end, and the prompt as it was given.
            Some(("model", _) | ("user", "message")) => {}
            _ => turn.unmapped(&event),
        }
    }

    fn end(&mut self, exit: &Exit, turn: &mut Turn) {
        let failure = self.failure.take();
        turn.fail(failure.unwrap_or_else(|| provider::failure_of_exit(exit, turn)));
    }
}

impl Copilot {
    fn on_assistant(&mut self, what: &str, event: &Value, turn: &mut Turn) {
        let data = &event["data"];
        match what {
            "turn_retry" => {
                self.messages.restart();
                let why = self.call_failed.take();
                let why = why.map(|why| provider::failure(&why, None).message);
                let why = why.or_else(|| data["reason"].as_str().map(str::to_owned));
                let why = why.unwrap_or_else(|| "no reason given".to_owned());
                turn.notice(&format!("the model is asked again: {why}"));
            }
            "usage" => match usage_of(data) {
                Some(usage) => self.tally.add(usage, None, turn),
                None => turn.unmapped(event),
            },
            "message" => {
                self.messages.on_message(what, event, turn);
                let parent = data["parentToolCallId"].as_str();
                for call in data["toolRequests"].as_array().into_iter().flatten() {
                    if let (Some(id), Some(name)) =
                        (call["toolCallId"].as_str(), call["name"].as_str())
                    {
                        self.calls.begin_in(parent, id, name, &call["arguments"], turn);
                    }
                }
            }
            "message_start" | "message_delta" | "reasoning" | "reasoning_delta" => {
                self.messages.on_message(what, event, turn);
            }
            // Where turns begin and end, and arguments in pieces that come again as a whole.
            "turn_start" | "turn_end" | "idle" | "intent" | "tool_call_delta" => {}
            _ => turn.unmapped(event),
        }
    }

    fn on_tool(&mut self, what: &str, event: &Value, turn: &mut Turn) {
        let data = &event["data"];
        let id = data["toolCallId"].as_str().unwrap_or_default();
        match what {
            "execution_start" => {
                let name = data["toolName"].as_str().unwrap_or(id);
                let parent = data["parentToolCallId"].as_str();
                self.calls.begin_in(parent, id, name, &data["arguments"], turn);
            }
            "execution_partial_result" => {
                self.calls.show(id, data["partialOutput"].as_str().unwrap_or_default(), turn);
            }
            "execution_complete" => {
                let result = &data["result"];
                let text = kinds::text_of(result, &["detailedContent", "content"])
                    .or_else(|| data["error"]["message"].as_str());
                let exit = data["shellExecution"]["exitCode"].as_i64();
                let failed = data["success"] == false || exit.is_some_and(|code| code != 0);
                let output = if result.is_null() { &data["error"] } else { result };
                let end = End { failed, text: text.unwrap_or_default(), output };
                self.calls.end(id, end, turn);
            }
            // The same output as in the partial results, piece by piece.
            "shell_output" => {}
            _ => turn.unmapped(event),
        }
    }

    fn on_session(&mut self, what: &str, event: &Value, turn: &mut Turn) {
        let data = &event["data"];
        let message = data["message"].as_str();
        match (what, message) {
            ("error", _) => {
                let status = provider::status_of(&data["statusCode"]);
                let words = message.unwrap_or("an error without words");
                let mut failure = provider::failure(words, status);
                if data["errorType"] == "authentication" {
                    failure.cause = Cause::Auth;
                }
                self.failure.get_or_insert(failure);
            }
            // Told when the request is made again.
            ("info", _) if data["infoType"] == "model_retry" => {}
            ("info" | "warning", Some(message)) => turn.notice(message),
            ("title_changed", _) if data["title"].is_string() => {
                turn.title(data["title"].as_str().unwrap_or_default());
            }
            ("usage_info", _) => {
                let (used, size) = (count(data, &["currentTokens"]), count(data, &["tokenLimit"]));
                match used.zip(size) {
                    Some((used, size)) => turn.context(used, size),
                    None => turn.unmapped(event),
                }
            }
            ("compaction_start", _) => turn.notice("the conversation is made shorter"),
            // What was loaded at the start, which has nothing to do with the turn.
            (
                "skills_loaded"
                | "mcp_servers_loaded"
                | "mcp_server_status_changed"
                | "tools_updated"
                | "background_tasks_changed",
                _,
            ) => {}
            _ => turn.unmapped(event),
        }
    }

    fn on_result(&mut self, event: &Value, turn: &mut Turn) {
        if let Some(id) = event["sessionId"].as_str() {
            turn.native(id);
        }
        let well = match event["exitCode"].as_i64() {
            Some(code) => code == 0,
            None => event["success"] == true,
        };
        match self.failure.take() {
            // Old versions end well after an error.
            Some(failure) if !well || !turn.has_spoken() => turn.fail(failure),
            _ if well => turn.done(Stop::EndTurn),
            // The end of the program says more.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::turn::Effect;

    fn play(lines: &[&str]) -> Turn {
        let (mut copilot, mut turn) = (Copilot::default(), Turn::default());
        turn.begin();
        for line in lines {
            copilot.line(line, &mut turn);
        }
        turn
    }

    #[test]
    fn a_refused_tool_has_failed_and_the_turn_ends_well() {
        let turn = play(&[
            r#"{"type":"tool.execution_start","data":{"toolCallId":"t","toolName":"bash","arguments":{"command":"ls"}}}"#,
            r#"{"type":"tool.execution_complete","data":{"toolCallId":"t","success":false,"error":{"message":"Permission denied","code":"denied"}}}"#,
            r#"{"type":"result","sessionId":"s","exitCode":0}"#,
        ]);
        let Effect::Update(end) = &turn.effects[1] else { panic!() };
        assert_eq!(end["status"], "failed");
        assert_eq!(end["content"][0]["content"]["text"], "Permission denied");
        assert_eq!(turn.effects[2], Effect::Native("s".to_owned()));
        assert_eq!(turn.outcome, Some(Outcome::Done(Stop::EndTurn)));
    }

    #[test]
    fn an_error_after_which_nothing_was_said_is_a_failure_although_it_ends_well() {
        let error = r#"{"type":"session.error","data":{"errorType":"authentication","message":"who are you"}}"#;
        let result = r#"{"type":"result","sessionId":"s","success":true}"#;
        let Some(Outcome::Failed(failure)) = play(&[error, result]).outcome else { panic!() };
        assert_eq!(failure.cause, Cause::Auth);
        let text = r#"{"type":"assistant.message","data":{"messageId":"m","content":"Hi"}}"#;
        assert_eq!(play(&[error, text, result]).outcome, Some(Outcome::Done(Stop::EndTurn)));
    }

    #[test]
    fn usage_is_summed_and_warnings_are_notices() {
        let usage = r#"{"type":"assistant.usage","data":{"inputTokens":9,"outputTokens":1}}"#;
        let warning = r#"{"type":"session.warning","data":{"message":"slow"}}"#;
        let turn = play(&[usage, warning, usage]);
        assert_eq!(turn.usage.map(|it| (it.input, it.output)), Some((18, 2)));
        let Effect::Update(update) = &turn.effects[0] else { panic!() };
        assert_eq!(update["_meta"]["jackfield"]["notice"], "slow");
    }
}

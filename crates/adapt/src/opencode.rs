//! `opencode run --format json`, and its relatives: finished parts only, one program for each turn.

use crate::calls::{Calls, End};
use crate::tally::{Tally, count};
use crate::{Dialect, Failure, Life, Said, Start, Stop, Turn, Usage, kinds, provider};
use jackfield_agents::Exit;
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(OpenCode::default())
}

#[derive(Default)]
struct OpenCode {
    calls: Calls,
    /// The session of this turn; others belong to its sub-agents.
    session: Option<String>,
    /// The texts by their part's id, should a relative tell one twice.
    said: BTreeMap<String, Said>,
    tally: Tally,
    /// A request to the model was begun and not finished.
    in_step: bool,
    stop: Option<Stop>,
    failure: Option<Failure>,
}

impl Dialect for OpenCode {
    fn life(&self) -> Life {
        Life::Turn
    }

    fn open(&mut self, start: &Start<'_>, _turn: &mut Turn) {
        *self = OpenCode { calls: Calls::at(start.cwd), ..OpenCode::default() };
    }

    fn line(&mut self, line: &str, turn: &mut Turn) {
        let Some(event) = turn.object(line) else { return };
        if !self.is_ours(&event, turn) {
            return turn.unmapped(&event);
        }
        let part = &event["part"];
        match event["type"].as_str() {
            Some("step_start") => {
                if self.in_step {
                    turn.notice("the model's answer broke off; it is asked again");
                }
                self.in_step = true;
            }
            Some("text" | "reasoning") => self.on_words(&event, turn),
            Some("tool_use") if part["callID"].is_string() => self.on_tool(part, turn),
            Some("step_finish") => self.on_step_finish(part, turn),
            Some("error") => self.on_error(&event["error"], turn),
            _ => turn.unmapped(&event),
        }
    }

    fn end(&mut self, exit: &Exit, turn: &mut Turn) {
        if let Some(failure) = self.failure.take() {
            // Older versions leave with status 0 after an error.
            turn.fail(failure);
        } else if exit.code == Some(0) && turn.has_spoken() {
            turn.done(self.stop.unwrap_or(Stop::EndTurn));
        } else {
            let failure = provider::failure_of_exit(exit, turn);
            turn.fail(failure);
        }
    }
}

impl OpenCode {
    fn is_ours(&mut self, event: &Value, turn: &mut Turn) -> bool {
        let Some(id) = event["sessionID"].as_str() else { return true };
        if self.session.is_none() {
            turn.native(id);
        }
        self.session.get_or_insert_with(|| id.to_owned()) == id
    }

    fn on_words(&mut self, event: &Value, turn: &mut Turn) {
        let part = &event["part"];
        let Some(text) = part["text"].as_str() else { return turn.unmapped(event) };
        let said = match part["id"].as_str() {
            Some(id) => self.said.entry(id.to_owned()).or_default(),
            None => &mut Said::default(),
        };
        let (message, new) = (part["messageID"].as_str().unwrap_or_default(), said.whole(text));
        if event["type"] == "reasoning" {
            turn.thought(message, new);
        } else {
            turn.text(message, new);
        }
    }

    fn on_tool(&mut self, part: &Value, turn: &mut Turn) {
        let (id, state) = (part["callID"].as_str().unwrap_or_default(), &part["state"]);
        let name = part["tool"].as_str().unwrap_or(id);
        self.calls.begin(id, name, &state["input"], turn);
        let status = state["status"].as_str();
        if !matches!(status, Some("completed" | "error" | "failed")) {
            return;
        }
        let exits = [&state["exit"], &state["exitCode"], &state["metadata"]["exit"]];
        let exited_badly = exits.iter().any(|code| code.as_i64().is_some_and(|code| code != 0));
        let failed = status != Some("completed") || state["error"].is_string() || exited_badly;
        let text = kinds::text_of(state, &["error", "output"]).unwrap_or_default();
        let output = if state["metadata"].is_object() { &state["metadata"] } else { &Value::Null };
        self.calls.end(id, End { failed, text, output }, turn);
    }

    fn on_step_finish(&mut self, part: &Value, turn: &mut Turn) {
        self.in_step = false;
        if let Some(failure) = self.failure.take() {
            // It went on after the error, for example by making the conversation shorter.
            turn.notice(&failure.message);
        }
        self.stop = match part["reason"].as_str() {
            Some("length") => Some(Stop::MaxTokens),
            Some("content-filter") => Some(Stop::Refusal),
            _ => None,
        };
        let tokens = &part["tokens"];
        let (read, write) =
            (count(&tokens["cache"], &["read"]), count(&tokens["cache"], &["write"]));
        let fresh = count(tokens, &["input"]).unwrap_or(0);
        let thought = count(tokens, &["reasoning"]);
        // It counts cached tokens and thoughts beside input and output; we count them in.
        let input = fresh.saturating_add(read.unwrap_or(0)).saturating_add(write.unwrap_or(0));
        let output = count(tokens, &["output"]).unwrap_or(0).saturating_add(thought.unwrap_or(0));
        let usage = Usage { input, output, thought, cached_read: read, cached_write: write };
        self.tally.add(usage, part["cost"].as_f64(), turn);
    }

    /// The first error counts; what follows is its echo.
    fn on_error(&mut self, error: &Value, turn: &mut Turn) {
        let data = &error["data"];
        let words = kinds::text_of(data, &["detail", "message", "error"])
            .or_else(|| kinds::text_of(error, &["detail", "message", "error", "name"]))
            .or_else(|| error.as_str())
            .unwrap_or("an error without words");
        let failure = provider::failure(words, provider::status_of(&data["statusCode"]));
        if self.failure.is_some() {
            turn.unmapped(error);
        }
        self.failure.get_or_insert(failure);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;
    use crate::outcome::Outcome;
    use crate::turn::Effect;

    fn play(lines: &[&str], code: i32, stderr: &str) -> Turn {
        let (mut dialect, mut turn) = (OpenCode::default(), Turn::default());
        turn.begin();
        for line in lines {
            dialect.line(line, &mut turn);
        }
        let exit = Exit { code: Some(code), stderr_tail: stderr.to_owned(), ..Exit::default() };
        dialect.end(&exit, &mut turn);
        turn
    }

    fn cause(turn: &Turn) -> Option<Cause> {
        match &turn.outcome {
            Some(Outcome::Failed(failure)) => Some(failure.cause),
            _ => None,
        }
    }

    const ERROR: &str = r#"{"type":"error","sessionID":"s","error":{"name":"ProviderAuthError","data":{"providerID":"openai","message":"Unauthorized"}}}"#;

    #[test]
    fn an_error_fails_the_turn_even_if_the_program_leaves_with_zero() {
        assert_eq!(cause(&play(&[ERROR], 0, "")), Some(Cause::Auth));
        assert_eq!(
            cause(&play(&[], 1, "NotFoundError: Session not found: x")),
            Some(Cause::NoSession)
        );
    }

    #[test]
    fn an_error_that_it_went_on_from_is_a_notice() {
        let lines = [
            ERROR,
            r#"{"type":"text","sessionID":"s","part":{"id":"p","text":"Hello"}}"#,
            r#"{"type":"text","sessionID":"s","part":{"id":"p","text":"Hello there"}}"#,
            r#"{"type":"step_finish","sessionID":"s","part":{"reason":"length","cost":0.5,"tokens":{"input":1,"output":2,"reasoning":3,"cache":{"read":4,"write":5}}}}"#,
        ];
        let turn = play(&lines, 0, "");
        assert_eq!(turn.outcome, Some(Outcome::Done(Stop::MaxTokens)));
        let usage = turn.usage.unwrap();
        assert_eq!((usage.input, usage.output, turn.cost), (10, 5, Some(0.5)));
        let text: String = turn
            .effects
            .iter()
            .filter_map(|it| match it {
                Effect::Update(it) if it["sessionUpdate"] == "agent_message_chunk" => {
                    it["content"]["text"].as_str()
                }
                _ => None,
            })
            .collect();
        assert_eq!(text, "Hello there");
    }

    #[test]
    fn a_command_that_exits_badly_has_failed_and_a_sub_agent_is_not_us() {
        let lines = [
            r#"{"type":"tool_use","sessionID":"s","part":{"callID":"c","tool":"bash","state":{"status":"completed","input":{"command":"false"},"output":"","metadata":{"exit":1}}}}"#,
            r#"{"type":"text","sessionID":"other","part":{"id":"p","text":"not mine"}}"#,
        ];
        let turn = play(&lines, 0, "");
        let updates = turn.effects.iter().filter_map(|it| match it {
            Effect::Update(it) => Some(it),
            _ => None,
        });
        let told: Vec<String> = updates
            .map(|it| format!("{} {}", it["sessionUpdate"].as_str().unwrap(), it["status"]))
            .collect();
        assert_eq!(
            told,
            [
                "tool_call \"in_progress\"",
                "tool_call_update \"failed\"",
                "session_info_update null"
            ]
        );
    }
}

//! `gemini --output-format stream-json`: one program for each turn, text in pieces, errors as a
//! result and in the exit status.

use crate::calls::{Calls, End};
use crate::tally::{Tally, count};
use crate::{Cause, Dialect, Failure, Life, Said, Start, Stop, Turn, Usage, provider};
use jackfield_agents::Exit;
use serde_json::Value;

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(Gemini::default())
}

#[derive(Default)]
struct Gemini {
    calls: Calls,
    said: Said,
    /// Its session, until it can be resumed.
    session: Option<String>,
    /// The last thing that it called an error and went on.
    trouble: Option<String>,
}

impl Dialect for Gemini {
    fn life(&self) -> Life {
        Life::Turn
    }

    fn open(&mut self, start: &Start<'_>, _turn: &mut Turn) {
        *self = Gemini { calls: Calls::at(start.cwd), ..Gemini::default() };
    }

    fn line(&mut self, line: &str, turn: &mut Turn) {
        let Some(event) = turn.object(line) else { return };
        match (event["type"].as_str(), event["tool_id"].as_str()) {
            (Some("init"), _) => {
                self.session = event["session_id"].as_str().map(str::to_owned);
            }
            (Some("message"), _) => {
                self.on_message(&event, turn);
                self.keep(turn);
            }
            (Some("tool_use"), Some(id)) => {
                self.said = Said::default();
                self.keep(turn);
                let name = event["tool_name"].as_str().unwrap_or(id);
                self.calls.begin(id, name, &event["parameters"], turn);
            }
            (Some("tool_result"), Some(id)) => {
                self.said = Said::default();
                self.on_tool_result(id, &event, turn);
            }
            (Some("error"), _) => self.on_error(&event, turn),
            (Some("result"), _) => self.on_result(&event, turn),
            _ => turn.unmapped(&event),
        }
    }

    fn end(&mut self, exit: &Exit, turn: &mut Turn) {
        if !turn.is_running() {
            return;
        }
        let mut failure = match &self.trouble {
            Some(trouble) => provider::failure(trouble, None),
            None => provider::failure_of_exit(exit, turn),
        };
        if let Some(status) = exit.code.and_then(status_of_exit) {
            failure = Failure { message: failure.message, ..Failure::read("", Some(status)) };
        } else if exit.code == Some(NO_AUTH) {
            failure.cause = Cause::Auth;
        }
        turn.fail(failure);
    }
}

/// The exit status of a program that found no way to log in.
const NO_AUTH: i32 = 41;

/// An HTTP status that went through the eight bits of an exit status.
fn status_of_exit(code: i32) -> Option<u16> {
    [400, 401, 403, 404, 413, 429, 500, 502, 503, 504]
        .into_iter()
        .find(|status| i32::from(status % 256) == code)
}

impl Gemini {
    /// It writes a session down when the model has answered; before that it cannot be resumed.
    fn keep(&mut self, turn: &mut Turn) {
        if let Some(id) = self.session.take_if(|_| turn.has_spoken()) {
            turn.native(&id);
        }
    }

    fn on_message(&mut self, event: &Value, turn: &mut Turn) {
        let content = event["content"].as_str();
        match (event["role"].as_str(), content) {
            (Some("assistant"), Some(content)) if event["delta"] == true => {
                turn.text("", self.said.piece(content));
            }
            (Some("assistant"), Some(content)) => {
                let missing = self.said.whole(content);
                turn.text("", missing);
                self.said = Said::default();
            }
            // The prompt, as it was given.
            (Some("user"), Some(_)) => {}
            _ => turn.unmapped(event),
        }
    }

    fn on_tool_result(&mut self, id: &str, event: &Value, turn: &mut Turn) {
        let failed = event["status"] == "error" || event["error"].is_object();
        let words = event["output"].as_str().or_else(|| event["error"]["message"].as_str());
        let output = if event["error"].is_object() { &event["error"] } else { &event["output"] };
        let end = End { failed, text: words.unwrap_or_default(), output };
        self.calls.end(id, end, turn);
    }

    fn on_error(&mut self, event: &Value, turn: &mut Turn) {
        let message = event["message"].as_str().unwrap_or("an error without words");
        turn.notice(message);
        if event["severity"] != "warning" {
            self.trouble = Some(message.to_owned());
        }
    }

    fn on_result(&mut self, event: &Value, turn: &mut Turn) {
        let stats = &event["stats"];
        if let Some(input) = count(stats, &["input_tokens"]) {
            let output = count(stats, &["output_tokens"]).unwrap_or(0);
            let cached_read = count(stats, &["cached"]);
            let usage = Usage { input, output, cached_read, ..Usage::default() };
            Tally::default().add(usage, None, turn);
        }
        if event["status"] == "error" || event["error"].is_object() {
            let message = event["error"]["message"].as_str();
            let message = message.or(self.trouble.as_deref()).unwrap_or("it failed without words");
            return turn.fail(provider::failure(message, None));
        }
        let exhausted = self.trouble.as_deref().is_some_and(|it| it.contains("session turns"));
        turn.done(if exhausted { Stop::MaxTurnRequests } else { Stop::EndTurn });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Outcome;
    use crate::turn::Effect;

    fn play(lines: &[&str], exit: &Exit) -> Turn {
        let (mut gemini, mut turn) = (Gemini::default(), Turn::default());
        turn.begin();
        for line in lines {
            gemini.line(line, &mut turn);
        }
        gemini.end(exit, &mut turn);
        turn
    }

    #[test]
    fn an_exit_status_is_an_http_status_cut_to_eight_bits() {
        let causes = [
            (145, Cause::Auth, Some(401)),
            (173, Cause::RateLimited, Some(429)),
            (244, Cause::Unavailable, Some(500)),
            (41, Cause::Auth, None),
            (1, Cause::Crashed, None),
        ];
        for (code, cause, status) in causes {
            let exit = Exit { code: Some(code), ..Exit::default() };
            let turn = play(&[], &exit);
            let Some(Outcome::Failed(failure)) = &turn.outcome else {
                panic!("{:?}", turn.outcome)
            };
            assert_eq!((failure.cause, failure.status), (cause, status), "{code}");
        }
    }

    #[test]
    fn todos_become_a_plan_and_a_warning_is_no_error() {
        let lines = [
            r#"{"type":"tool_use","tool_id":"t","tool_name":"write_todos","parameters":{"todos":[{"description":"Look","status":"in_progress"}]}}"#,
            r#"{"type":"tool_result","tool_id":"t","status":"success"}"#,
            r#"{"type":"error","severity":"warning","message":"Loop detected"}"#,
            r#"{"type":"message","role":"assistant","content":"Done."}"#,
            r#"{"type":"result","status":"success"}"#,
        ];
        let turn = play(&lines, &Exit::default());
        let words: Vec<&str> = turn
            .effects
            .iter()
            .filter_map(|it| match it {
                Effect::Update(update) => update["sessionUpdate"].as_str(),
                _ => None,
            })
            .collect();
        assert_eq!(words, ["plan", "session_info_update", "agent_message_chunk"]);
        assert_eq!(turn.outcome, Some(Outcome::Done(Stop::EndTurn)));
    }

    #[test]
    fn too_many_turns_are_a_stop_and_a_failed_tool_says_why() {
        let lines = [
            r#"{"type":"tool_use","tool_id":"t","tool_name":"replace","parameters":{"file_path":"/a","old_string":"x","new_string":"y"}}"#,
            r#"{"type":"tool_result","tool_id":"t","status":"error","error":{"type":"edit_no_occurrence_found","message":"not found"}}"#,
            r#"{"type":"error","severity":"error","message":"Maximum session turns exceeded"}"#,
            r#"{"type":"result","status":"success","stats":{}}"#,
        ];
        let turn = play(&lines, &Exit::default());
        assert_eq!(turn.outcome, Some(Outcome::Done(Stop::MaxTurnRequests)));
        let failed = turn.effects.iter().any(|it| {
            matches!(it, Effect::Update(it) if it["status"] == "failed"
                && it["content"][0]["content"]["text"] == "not found")
        });
        assert!(failed, "{:?}", turn.effects);
    }
}

//! `cursor-agent --print --output-format stream-json --stream-partial-output`: text in pieces and
//! then again as a whole, one program for each turn that may outlive its result.

mod tool;

use crate::calls::Calls;
use crate::tally::{Tally, usage_of};
use crate::{Dialect, Life, Said, Start, Stop, Turn, kinds, provider};
use jackfield_agents::Exit;
use serde_json::Value;

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(Cursor::default())
}

#[derive(Default)]
struct Cursor {
    calls: Calls,
    /// The text since the last time it was told as a whole.
    said: Said,
    /// The last whole, until something else happens: it is sometimes told once more.
    last_whole: String,
}

impl Dialect for Cursor {
    fn life(&self) -> Life {
        Life::Turn
    }

    fn open(&mut self, start: &Start<'_>, _turn: &mut Turn) {
        *self = Cursor { calls: Calls::at(start.cwd), ..Cursor::default() };
    }

    fn line(&mut self, line: &str, turn: &mut Turn) {
        let Some(event) = turn.object(line) else { return };
        match (event["type"].as_str(), event["subtype"].as_str()) {
            (Some("system"), Some("init")) => {
                if let Some(id) = event["session_id"].as_str() {
                    turn.native(id);
                }
            }
            (Some("assistant"), _) => self.on_assistant(&event, turn),
            (Some("thinking"), Some("delta")) => {
                self.last_whole.clear();
                turn.thought("", event["text"].as_str().unwrap_or_default());
            }
            (Some("tool_call"), Some("started" | "completed")) => {
                self.last_whole.clear();
                tool::on_tool_call(&mut self.calls, &event, turn);
            }
            (Some("result"), _) => on_result(&event, turn),
            (Some("error"), _) | (Some("system"), Some("error")) => {
                turn.fail(provider::failure(words_of(&event), None));
            }
            (Some("retry" | "connection"), what) => {
                let what = kinds::text_of(&event, &["message"]).or(what);
                turn.notice(what.unwrap_or("the connection is made again"));
            }
            // The prompt as it was given, and the end of what was thought piece by piece.
            (Some("user"), _) | (Some("thinking"), Some("completed")) => {}
            _ => turn.unmapped(&event),
        }
    }

    fn end(&mut self, exit: &Exit, turn: &mut Turn) {
        let failure = provider::failure_of_exit(exit, turn);
        turn.fail(failure);
    }
}

fn words_of(event: &Value) -> &str {
    let error = kinds::text_of(event, &["message", "error", "result"]);
    error.or_else(|| event["error"]["message"].as_str()).unwrap_or("an error without words")
}

impl Cursor {
    /// A piece has a time and belongs to no finished call of the model. Everything else repeats what
    /// was said since the last repetition.
    fn on_assistant(&mut self, event: &Value, turn: &mut Turn) {
        let content = &event["message"]["content"];
        let parts = content.as_array().into_iter().flatten();
        let text: String = match content.as_str() {
            Some(text) => text.to_owned(),
            None => parts.filter_map(|part| part["text"].as_str()).collect(),
        };
        let is_piece = !event["timestamp_ms"].is_null() && event["model_call_id"].is_null();
        if is_piece {
            self.last_whole.clear();
            turn.text("", self.said.piece(&text));
        } else if !self.said.is_empty() || self.last_whole != text {
            turn.text("", self.said.whole(&text));
            self.said = Said::default();
            self.last_whole = text;
        }
    }
}

fn on_result(event: &Value, turn: &mut Turn) {
    let usage = [event, &event["usage"], &event["result"]["usage"]];
    if let Some(usage) = usage.into_iter().find_map(usage_of) {
        Tally::default().add(usage, None, turn);
    }
    if event["is_error"] == true || event["subtype"] == "error" {
        return turn.fail(provider::failure(words_of(event), None));
    }
    if !turn.has_spoken() {
        turn.text("", event["result"].as_str().unwrap_or_default());
    }
    turn.done(Stop::EndTurn);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;
    use crate::outcome::Outcome;
    use crate::turn::Effect;

    fn play(lines: &[&str]) -> Turn {
        let (mut cursor, mut turn) = (Cursor::default(), Turn::default());
        turn.begin();
        for line in lines {
            cursor.line(line, &mut turn);
        }
        turn
    }

    fn text(turn: &Turn) -> String {
        let chunks = turn.effects.iter().filter_map(|it| match it {
            Effect::Update(it) if it["sessionUpdate"] == "agent_message_chunk" => {
                it["content"]["text"].as_str()
            }
            _ => None,
        });
        chunks.collect()
    }

    fn assistant(text: &str, marks: &str) -> String {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":"{text}"}}]}}{marks}}}"#
        )
    }

    const PIECE: &str = r#","timestamp_ms":1"#;
    const WHOLE: &str = r#","timestamp_ms":1,"model_call_id":"m""#;

    #[test]
    fn pieces_are_never_taken_for_repetitions_and_wholes_add_only_what_is_missing() {
        let told = |lines: &[(&str, &str)]| {
            let lines: Vec<String> = lines.iter().map(|(it, marks)| assistant(it, marks)).collect();
            text(&play(&lines.iter().map(String::as_str).collect::<Vec<_>>()))
        };
        assert_eq!(told(&[("ha", PIECE), ("ha", PIECE), ("haha", "")]), "haha");
        assert_eq!(
            told(&[("Hel", PIECE), ("Hello", WHOLE), ("Bye", PIECE), ("Bye", "")]),
            "HelloBye"
        );
        assert_eq!(told(&[("Hi", WHOLE), ("Hi", "")]), "Hi");
        assert_eq!(told(&[("Hel", PIECE), ("Other", WHOLE)]), "Hel");
        assert_eq!(told(&[("one", ""), ("two", "")]), "onetwo");
    }

    #[test]
    fn the_result_is_the_end_and_its_usage_has_three_places() {
        for usage in [
            r#""inputTokens":10,"outputTokens":5"#,
            r#""usage":{"inputTokens":10,"outputTokens":5}"#,
            r#""usage":{"input_tokens":10,"output_tokens":5}"#,
        ] {
            let turn = play(&[&format!(r#"{{"type":"result","result":"Only here",{usage}}}"#)]);
            assert_eq!(turn.outcome, Some(Outcome::Done(Stop::EndTurn)));
            assert_eq!(turn.usage.map(|it| (it.input, it.output)), Some((10, 5)));
            assert_eq!(text(&turn), "Only here");
        }
    }

    #[test]
    fn errors_are_failures_wherever_they_are_told() {
        for line in [
            r#"{"type":"result","is_error":true,"result":"Not logged in"}"#,
            r#"{"type":"system","subtype":"error","message":"Authentication required"}"#,
            r#"{"type":"error","error":{"message":"Unauthorized"}}"#,
        ] {
            let turn = play(&[line]);
            let Some(Outcome::Failed(failure)) = turn.outcome else { panic!("{line}") };
            assert_eq!(failure.cause, Cause::Auth, "{line}");
        }
    }
}

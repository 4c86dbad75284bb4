//! `cursor-agent --print --output-format stream-json --stream-partial-output`: text in deltas and
//! then again in full, one process per turn, which may outlive its result.

mod tool;

use crate::tool_calls::ToolCallTracker;
use crate::usage_total::{TurnUsageTotal, read_usage};
use crate::{
    AdapterTurn, Dialect, ProgramLifetime, StartContext, StopReason, StreamedText, known_tools,
    provider,
};
use jackfield_agents::AgentExit;
use serde_json::Value;

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(CursorDialect::default())
}

#[derive(Default)]
struct CursorDialect {
    calls: ToolCallTracker,
    /// The text since the last full repetition.
    text: StreamedText,
    /// The last full text, until another event: it is sometimes repeated once more.
    last_full_text: String,
}

impl Dialect for CursorDialect {
    fn lifetime(&self) -> ProgramLifetime {
        ProgramLifetime::PerTurn
    }

    fn on_start(&mut self, start: &StartContext<'_>, _turn: &mut AdapterTurn) {
        *self =
            CursorDialect { calls: ToolCallTracker::new(start.cwd), ..CursorDialect::default() };
    }

    fn on_line(&mut self, line: &str, turn: &mut AdapterTurn) {
        let Some(event) = turn.parse_object(line) else { return };
        match (event["type"].as_str(), event["subtype"].as_str()) {
            (Some("system"), Some("init")) => {
                if let Some(id) = event["session_id"].as_str() {
                    turn.set_agent_session_id(id);
                }
            }
            (Some("assistant"), _) => self.on_assistant(&event, turn),
            (Some("thinking"), Some("delta")) => {
                self.last_full_text.clear();
                turn.send_thought("", event["text"].as_str().unwrap_or_default());
            }
            (Some("tool_call"), Some("started" | "completed")) => {
                self.last_full_text.clear();
                tool::on_tool_call(&mut self.calls, &event, turn);
            }
            (Some("result"), _) => on_result(&event, turn),
            (Some("error"), _) | (Some("system"), Some("error")) => {
                turn.fail(provider::parse_failure(error_message(&event), None));
            }
            (Some("retry" | "connection"), subtype) => {
                let message = known_tools::first_text(&event, &["message"]).or(subtype);
                turn.send_notice(message.unwrap_or("reconnecting"));
            }
            // The prompt, repeated, and the end of a streamed thought.
            (Some("user"), _) | (Some("thinking"), Some("completed")) => {}
            _ => turn.report_unmapped(&event),
        }
    }

    fn on_exit(&mut self, exit: &AgentExit, turn: &mut AdapterTurn) {
        let failure = provider::failure_from_exit(exit, turn);
        turn.fail(failure);
    }
}

fn error_message(event: &Value) -> &str {
    let error = known_tools::first_text(event, &["message", "error", "result"]);
    error.or_else(|| event["error"]["message"].as_str()).unwrap_or("unknown error")
}

impl CursorDialect {
    /// A delta has a timestamp and no model call id. Every other message repeats the text since the
    /// last repetition.
    fn on_assistant(&mut self, event: &Value, turn: &mut AdapterTurn) {
        let content = &event["message"]["content"];
        let parts = content.as_array().into_iter().flatten();
        let text: String = match content.as_str() {
            Some(text) => text.to_owned(),
            None => parts.filter_map(|part| part["text"].as_str()).collect(),
        };
        let is_delta = !event["timestamp_ms"].is_null() && event["model_call_id"].is_null();
        if is_delta {
            self.last_full_text.clear();
            turn.send_text("", self.text.push_delta(&text));
        } else if !self.text.is_empty() || self.last_full_text != text {
            turn.send_text("", self.text.push_full(&text));
            self.text = StreamedText::default();
            self.last_full_text = text;
        }
    }
}

fn on_result(event: &Value, turn: &mut AdapterTurn) {
    let usage = [event, &event["usage"], &event["result"]["usage"]];
    if let Some(usage) = usage.into_iter().find_map(read_usage) {
        TurnUsageTotal::default().add_request(usage, None, turn);
    }
    if event["is_error"] == true || event["subtype"] == "error" {
        return turn.fail(provider::parse_failure(error_message(event), None));
    }
    if !turn.has_output() {
        turn.send_text("", event["result"].as_str().unwrap_or_default());
    }
    turn.complete(StopReason::EndTurn);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureCause;
    use crate::outcome::AdapterTurnOutcome;
    use crate::turn_effect::TurnEffect;

    fn play_lines(lines: &[&str]) -> AdapterTurn {
        let (mut cursor, mut turn) = (CursorDialect::default(), AdapterTurn::default());
        turn.begin();
        for line in lines {
            cursor.on_line(line, &mut turn);
        }
        turn
    }

    fn text(turn: &AdapterTurn) -> String {
        let chunks = turn.effects.iter().filter_map(|it| match it {
            TurnEffect::SendUpdate(it) if it["sessionUpdate"] == "agent_message_chunk" => {
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

    const DELTA: &str = r#","timestamp_ms":1"#;
    const FULL: &str = r#","timestamp_ms":1,"model_call_id":"m""#;

    #[test]
    fn equal_deltas_are_all_sent_and_full_texts_add_only_missing_text() {
        let sent = |lines: &[(&str, &str)]| {
            let lines: Vec<String> = lines.iter().map(|(it, marks)| assistant(it, marks)).collect();
            text(&play_lines(&lines.iter().map(String::as_str).collect::<Vec<_>>()))
        };
        assert_eq!(sent(&[("ha", DELTA), ("ha", DELTA), ("haha", "")]), "haha");
        assert_eq!(
            sent(&[("Hel", DELTA), ("Hello", FULL), ("Bye", DELTA), ("Bye", "")]),
            "HelloBye"
        );
        assert_eq!(sent(&[("Hi", FULL), ("Hi", "")]), "Hi");
        assert_eq!(sent(&[("Hel", DELTA), ("Other", FULL)]), "Hel");
        assert_eq!(sent(&[("one", ""), ("two", "")]), "onetwo");
    }

    #[test]
    fn result_completes_the_turn_and_usage_is_read_from_three_places() {
        for usage in [
            r#""inputTokens":10,"outputTokens":5"#,
            r#""usage":{"inputTokens":10,"outputTokens":5}"#,
            r#""usage":{"input_tokens":10,"output_tokens":5}"#,
        ] {
            let turn =
                play_lines(&[&format!(r#"{{"type":"result","result":"Only here",{usage}}}"#)]);
            assert_eq!(turn.outcome, Some(AdapterTurnOutcome::Completed(StopReason::EndTurn)));
            assert_eq!(turn.usage.map(|it| (it.input, it.output)), Some((10, 5)));
            assert_eq!(text(&turn), "Only here");
        }
    }

    #[test]
    fn every_form_of_an_error_fails_the_turn() {
        for line in [
            r#"{"type":"result","is_error":true,"result":"Not logged in"}"#,
            r#"{"type":"system","subtype":"error","message":"Authentication required"}"#,
            r#"{"type":"error","error":{"message":"Unauthorized"}}"#,
        ] {
            let turn = play_lines(&[line]);
            let Some(AdapterTurnOutcome::Failed(failure)) = turn.outcome else { panic!("{line}") };
            assert_eq!(failure.cause, FailureCause::Auth, "{line}");
        }
    }
}

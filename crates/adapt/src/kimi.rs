//! `kimi -p … --output-format stream-json`: whole messages as role objects, one program for each turn.

use crate::calls::{Calls, End};
use crate::{Dialect, Failure, Life, Start, Stop, Turn, kinds, provider};
use jackfield_agents::Exit;
use serde_json::{Value, json};

pub(crate) fn new() -> Box<dyn Dialect> {
    Box::new(Kimi::default())
}

#[derive(Default)]
struct Kimi {
    calls: Calls,
    /// Why the model is being asked again, until it has answered.
    retrying: Option<Failure>,
}

impl Dialect for Kimi {
    fn life(&self) -> Life {
        Life::Turn
    }

    fn open(&mut self, start: &Start<'_>, _turn: &mut Turn) {
        *self = Kimi { calls: Calls::at(start.cwd), ..Kimi::default() };
    }

    fn line(&mut self, line: &str, turn: &mut Turn) {
        let Some(message) = turn.object(line) else { return };
        match (message["role"].as_str(), message["type"].as_str()) {
            (Some("assistant"), _) => self.on_assistant(&message, turn),
            (Some("tool"), _) if message["tool_call_id"].is_string() => {
                self.on_tool(&message, turn);
            }
            (Some("meta"), Some("session.resume_hint")) if message["session_id"].is_string() => {
                turn.native(message["session_id"].as_str().unwrap_or_default());
            }
            (Some("meta"), Some("turn.step.retrying")) => self.on_retry(&message, turn),
            _ => turn.unmapped(&message),
        }
    }

    fn end(&mut self, exit: &Exit, turn: &mut Turn) {
        if exit.code == Some(0) && turn.has_spoken() {
            return turn.done(Stop::EndTurn);
        }
        let failure = self.retrying.take();
        turn.fail(failure.unwrap_or_else(|| provider::failure_of_exit(exit, turn)));
    }
}

impl Kimi {
    fn on_assistant(&mut self, message: &Value, turn: &mut Turn) {
        self.retrying = None;
        if let Some(thought) = message["reasoning_content"].as_str() {
            turn.thought("", thought);
        }
        match &message["content"] {
            Value::String(text) => turn.text("", text),
            Value::Array(parts) => parts.iter().for_each(|part| on_part(part, turn)),
            _ => {}
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let Some(id) = call["id"].as_str() else {
                turn.unmapped(call);
                continue;
            };
            let name = call["function"]["name"].as_str().unwrap_or(id);
            self.calls.begin(id, name, &arguments(&call["function"]["arguments"]), turn);
        }
    }

    fn on_tool(&mut self, message: &Value, turn: &mut Turn) {
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        let text = match &message["content"] {
            Value::String(text) => text.clone(),
            Value::Array(parts) => {
                parts.iter().filter_map(|part| kinds::text_of(part, &["text"])).collect()
            }
            _ => String::new(),
        };
        // There is no field for it; failures have this mark in their words.
        let failed = message["is_error"] == true || text.starts_with("<system>ERROR");
        self.calls.end(id, End { failed, text: &text, output: &Value::Null }, turn);
    }

    fn on_retry(&mut self, message: &Value, turn: &mut Turn) {
        let words = message["error_message"].as_str().unwrap_or("no reason given");
        let (next, most) = (&message["next_attempt"], &message["max_attempts"]);
        turn.notice(&format!("attempt {next} of {most} follows: {words}"));
        let status = provider::status_of(&message["status_code"]);
        self.retrying = Some(provider::failure(words, status));
    }
}

fn on_part(part: &Value, turn: &mut Turn) {
    if let Some(text) = part["text"].as_str() {
        turn.text("", text);
    } else if let Some(thought) = kinds::text_of(part, &["think", "thinking"]) {
        turn.thought("", thought);
    } else {
        turn.unmapped(part);
    }
}

/// Arguments come as JSON in a string, if the model wrote it well.
fn arguments(told: &Value) -> Value {
    let Some(text) = told.as_str() else { return told.clone() };
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;
    use crate::outcome::Outcome;
    use crate::turn::Effect;

    fn play(lines: &[&str], exit: &Exit) -> Turn {
        let (mut kimi, mut turn) = (Kimi::default(), Turn::default());
        turn.begin();
        for line in lines {
            kimi.line(line, &mut turn);
        }
        kimi.end(exit, &mut turn);
        turn
    }

    #[test]
    fn parts_thoughts_and_arguments_that_are_no_json_are_all_told() {
        let lines = [
            r#"{"role":"assistant","content":[{"type":"think","think":"hm"},{"type":"text","text":"Hi"}],"tool_calls":[{"id":"c","function":{"name":"SetTodoList","arguments":"{\"todos\":[{\"title\":\"a\",\"status\":\"done\"}]}"}},{"id":"d","function":{"name":"Shell","arguments":"{oops"}}]}"#,
            r#"{"role":"tool","tool_call_id":"d","content":[{"type":"text","text":"<system>ERROR: no</system>"}]}"#,
        ];
        let turn = play(&lines, &Exit { code: Some(0), ..Exit::default() });
        let told: Vec<String> = turn
            .effects
            .iter()
            .filter_map(|it| match it {
                Effect::Update(it) => Some(format!("{} {}", it["sessionUpdate"], it["status"])),
                _ => None,
            })
            .collect();
        let wanted = [
            "\"agent_thought_chunk\" null",
            "\"agent_message_chunk\" null",
            "\"plan\" null",
            "\"tool_call\" \"in_progress\"",
            "\"tool_call_update\" \"failed\"",
        ];
        assert_eq!(told, wanted);
        assert_eq!(turn.outcome, Some(Outcome::Done(Stop::EndTurn)));
    }

    #[test]
    fn a_program_that_ends_while_it_retries_failed_for_that_reason() {
        let retry = r#"{"role":"meta","type":"turn.step.retrying","next_attempt":2,"max_attempts":3,"error_message":"500 oh","status_code":500}"#;
        let exit = Exit { code: Some(143), ..Exit::default() };
        let Some(Outcome::Failed(failure)) = play(&[retry], &exit).outcome else { panic!() };
        assert_eq!((failure.cause, failure.status), (Cause::Unavailable, Some(500)));
    }
}

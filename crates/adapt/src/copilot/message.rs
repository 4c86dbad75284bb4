//! Copilot's words and thoughts: in pieces, as a whole, and again after a cut.

use crate::{Said, Turn};
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Messages {
    text: Words,
    thought: Words,
    /// The last thought that a message told as a whole; it is told once more by itself.
    last_thought: String,
}

/// One message: what was said of it, and under which id.
#[derive(Debug, Default)]
struct Words {
    said: Said,
    id: Option<String>,
    /// The next message is this one again, whatever its id.
    again: bool,
}

impl Words {
    /// A message of this id speaks now.
    fn turn_to(&mut self, id: Option<&str>) {
        if self.id.as_deref() == id {
            return;
        }
        if std::mem::take(&mut self.again) {
            self.said.restart();
        } else if self.id.is_some() {
            self.said = Said::default();
        }
        self.id = id.map(str::to_owned);
    }
}

impl Messages {
    /// The request failed; the next answer begins from its beginning.
    pub(super) fn restart(&mut self) {
        self.text.again = true;
        self.thought.again = true;
    }

    pub(super) fn on_message(&mut self, what: &str, event: &Value, turn: &mut Turn) {
        let data = &event["data"];
        if data["parentToolCallId"].is_string() {
            // A sub-agent speaks to its agent, not to the client.
            return turn.unmapped(event);
        }
        let (message, thought) = (data["messageId"].as_str(), data["reasoningId"].as_str());
        let piece = data["deltaContent"].as_str();
        match (what, piece, data["content"].as_str()) {
            ("message_start", _, _) => self.text.turn_to(message),
            ("message_delta", Some(piece), _) => {
                self.text.turn_to(message);
                turn.text(message.unwrap_or_default(), self.text.said.piece(piece));
            }
            ("reasoning_delta", Some(piece), _) => {
                self.thought.turn_to(thought);
                turn.thought("", self.thought.said.piece(piece));
            }
            ("reasoning", _, Some(whole)) => {
                if self.last_thought != whole {
                    self.thought.turn_to(thought);
                    turn.thought("", self.thought.said.whole(whole));
                }
            }
            ("message", _, Some(whole)) => {
                if let Some(thought) = data["reasoningText"].as_str() {
                    turn.thought("", self.thought.said.whole(thought));
                    thought.clone_into(&mut self.last_thought);
                    self.thought = Words::default();
                }
                self.text.turn_to(message);
                turn.text(message.unwrap_or_default(), self.text.said.whole(whole));
            }
            _ => turn.unmapped(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::Effect;
    use serde_json::json;

    fn told(events: &[(&str, Value)]) -> String {
        let (mut messages, mut turn) = (Messages::default(), Turn::default());
        turn.begin();
        for (what, data) in events {
            if *what == "retry" {
                messages.restart();
            } else {
                messages.on_message(what, &json!({"data": data}), &mut turn);
            }
        }
        let chunks = turn.effects.iter().filter_map(|it| match it {
            Effect::Update(it) => it["content"]["text"].as_str(),
            _ => None,
        });
        chunks.collect::<Vec<_>>().join("|")
    }

    #[test]
    fn a_message_without_pieces_is_told_once_with_its_thought() {
        let message = json!({"messageId": "m", "content": "Hi", "reasoningText": "hm"});
        let thought = json!({"reasoningId": "r", "content": "hm"});
        let next = json!({"messageId": "n", "content": "Bye", "reasoningText": "so"});
        let events = [("message", message), ("reasoning", thought), ("message", next)];
        assert_eq!(told(&events), "hm|Hi|so|Bye");
    }

    #[test]
    fn an_answer_that_begins_again_under_another_id_is_told_once() {
        let piece = |id: &str, text: &str| json!({"messageId": id, "deltaContent": text});
        let events = [
            ("message_delta", piece("a", "Hello fr")),
            ("retry", Value::Null),
            ("message_delta", piece("b", "Hello")),
            ("message_delta", piece("b", " from")),
            ("message", json!({"messageId": "b", "content": "Hello from me"})),
            ("message_delta", piece("c", "Hello")),
        ];
        assert_eq!(told(&events), "Hello fr|om| me|Hello");
    }

    #[test]
    fn a_sub_agent_is_not_heard_as_the_agent() {
        let data = json!({"messageId": "m", "content": "psst", "parentToolCallId": "t"});
        assert_eq!(told(&[("message", data)]), "");
    }
}

//! Copilot's text and thoughts: in deltas, in full, and again after a broken connection.

use crate::{AdapterTurn, StreamedText};
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct CopilotMessages {
    text: MessageState,
    thought: MessageState,
    /// The last thought that a message contained in full; a separate event repeats it.
    last_thought: String,
}

/// One message: the text so far, and its id.
#[derive(Debug, Default)]
struct MessageState {
    text: StreamedText,
    id: Option<String>,
    /// The next message repeats this one, even if its id differs.
    will_repeat: bool,
}

impl MessageState {
    /// Switches to the message with this id.
    fn switch_to(&mut self, id: Option<&str>) {
        if self.id.as_deref() == id {
            return;
        }
        if std::mem::take(&mut self.will_repeat) {
            self.text.restart();
        } else if self.id.is_some() {
            self.text = StreamedText::default();
        }
        self.id = id.map(str::to_owned);
    }
}

impl CopilotMessages {
    /// The model request failed; the next answer starts from its beginning.
    pub(super) fn restart(&mut self) {
        self.text.will_repeat = true;
        self.thought.will_repeat = true;
    }

    pub(super) fn on_message(&mut self, kind: &str, event: &Value, turn: &mut AdapterTurn) {
        let data = &event["data"];
        if data["parentToolCallId"].is_string() {
            // A sub-agent's message is for its agent, not for the client.
            return turn.report_unmapped(event);
        }
        let (message, thought) = (data["messageId"].as_str(), data["reasoningId"].as_str());
        let delta = data["deltaContent"].as_str();
        match (kind, delta, data["content"].as_str()) {
            ("message_start", _, _) => self.text.switch_to(message),
            ("message_delta", Some(delta), _) => {
                self.text.switch_to(message);
                turn.send_text(message.unwrap_or_default(), self.text.text.push_delta(delta));
            }
            ("reasoning_delta", Some(delta), _) => {
                self.thought.switch_to(thought);
                turn.send_thought("", self.thought.text.push_delta(delta));
            }
            ("reasoning", _, Some(full)) => {
                if self.last_thought != full {
                    self.thought.switch_to(thought);
                    turn.send_thought("", self.thought.text.push_full(full));
                }
            }
            ("message", _, Some(full)) => {
                if let Some(thought) = data["reasoningText"].as_str() {
                    turn.send_thought("", self.thought.text.push_full(thought));
                    thought.clone_into(&mut self.last_thought);
                    self.thought = MessageState::default();
                }
                self.text.switch_to(message);
                turn.send_text(message.unwrap_or_default(), self.text.text.push_full(full));
            }
            _ => turn.report_unmapped(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn_effect::TurnEffect;
    use serde_json::json;

    fn sent_text(events: &[(&str, Value)]) -> String {
        let (mut messages, mut turn) = (CopilotMessages::default(), AdapterTurn::default());
        turn.begin();
        for (kind, data) in events {
            if *kind == "retry" {
                messages.restart();
            } else {
                messages.on_message(kind, &json!({"data": data}), &mut turn);
            }
        }
        let chunks = turn.effects.iter().filter_map(|it| match it {
            TurnEffect::SendUpdate(it) => it["content"]["text"].as_str(),
            _ => None,
        });
        chunks.collect::<Vec<_>>().join("|")
    }

    #[test]
    fn message_without_deltas_is_sent_once_with_its_thought() {
        let message = json!({"messageId": "m", "content": "Hi", "reasoningText": "hm"});
        let thought = json!({"reasoningId": "r", "content": "hm"});
        let next = json!({"messageId": "n", "content": "Bye", "reasoningText": "so"});
        let events = [("message", message), ("reasoning", thought), ("message", next)];
        assert_eq!(sent_text(&events), "hm|Hi|so|Bye");
    }

    #[test]
    fn answer_restarted_under_another_id_is_sent_once() {
        let delta = |id: &str, text: &str| json!({"messageId": id, "deltaContent": text});
        let events = [
            ("message_delta", delta("a", "Hello fr")),
            ("retry", Value::Null),
            ("message_delta", delta("b", "Hello")),
            ("message_delta", delta("b", " from")),
            ("message", json!({"messageId": "b", "content": "Hello from me"})),
            ("message_delta", delta("c", "Hello")),
        ];
        assert_eq!(sent_text(&events), "Hello fr|om| me|Hello");
    }

    #[test]
    fn sub_agent_text_is_not_sent_as_text_of_the_agent() {
        let data = json!({"messageId": "m", "content": "psst", "parentToolCallId": "t"});
        assert_eq!(sent_text(&[("message", data)]), "");
    }
}

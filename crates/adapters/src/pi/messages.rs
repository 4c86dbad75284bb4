//! Pi's text and thoughts: blocks of a message in deltas, then in full, then the full message.

use crate::{AdapterTurn, StreamedText};
use serde_json::Value;
use std::collections::BTreeMap;

/// The blocks of the current message, by their index.
#[derive(Debug, Default)]
pub(super) struct PiMessages {
    text: BTreeMap<u64, StreamedText>,
    thought: BTreeMap<u64, StreamedText>,
    /// The next message repeats this one.
    will_repeat: bool,
}

impl PiMessages {
    /// The answer was interrupted and will be sent again from its beginning.
    pub(super) fn restart(&mut self) {
        self.will_repeat = true;
    }

    pub(super) fn on_message(&mut self, event: &Value, turn: &mut AdapterTurn) {
        let message = &event["message"];
        match (event["type"].as_str(), message["role"].as_str()) {
            (Some("message_start"), Some("assistant")) => self.begin_message(),
            (Some("message_update"), _) => self.on_delta(event, turn),
            (Some("message_end"), Some("assistant")) => {
                let blocks = message["content"].as_array().into_iter().flatten();
                for (block, index) in blocks.zip(0..) {
                    let text = block["text"].as_str();
                    self.on_full(index, text, block["thinking"].as_str(), turn);
                }
            }
            _ => turn.report_unmapped(event),
        }
    }

    fn begin_message(&mut self) {
        if std::mem::take(&mut self.will_repeat) {
            self.text.values_mut().chain(self.thought.values_mut()).for_each(StreamedText::restart);
        } else {
            self.text.clear();
            self.thought.clear();
        }
    }

    fn on_delta(&mut self, event: &Value, turn: &mut AdapterTurn) {
        let inner = &event["assistantMessageEvent"];
        let index = inner["contentIndex"].as_u64().unwrap_or(0);
        let (delta, full) = (inner["delta"].as_str(), inner["content"].as_str());
        match (inner["type"].as_str(), delta) {
            (Some("text_delta"), Some(delta)) => {
                turn.send_text("", self.text.entry(index).or_default().push_delta(delta));
            }
            (Some("thinking_delta"), Some(delta)) => {
                turn.send_thought("", self.thought.entry(index).or_default().push_delta(delta));
            }
            (Some("text_end"), _) => self.on_full(index, full, None, turn),
            (Some("thinking_end"), _) => self.on_full(index, None, full, turn),
            // Starts of blocks, deltas of a tool's arguments, and ends that the message reports
            // too.
            (
                Some(
                    "start" | "text_start" | "thinking_start" | "toolcall_start" | "toolcall_delta"
                    | "done" | "error",
                ),
                _,
            ) => {}
            _ => turn.report_unmapped(event),
        }
    }

    fn on_full(
        &mut self,
        index: u64,
        text: Option<&str>,
        thought: Option<&str>,
        turn: &mut AdapterTurn,
    ) {
        if let Some(thought) = thought {
            turn.send_thought("", self.thought.entry(index).or_default().push_full(thought));
        }
        if let Some(text) = text {
            turn.send_text("", self.text.entry(index).or_default().push_full(text));
        }
    }
}

//! Pi's words and thoughts: blocks of a message in pieces, then whole, then the whole message.

use crate::{Said, Turn};
use serde_json::Value;
use std::collections::BTreeMap;

/// The blocks of the message that is being told, by their place in it.
#[derive(Debug, Default)]
pub(super) struct Messages {
    text: BTreeMap<u64, Said>,
    thought: BTreeMap<u64, Said>,
    /// The next message is this one again.
    again: bool,
}

impl Messages {
    /// The answer broke off and will be told from its beginning.
    pub(super) fn restart(&mut self) {
        self.again = true;
    }

    pub(super) fn on_message(&mut self, event: &Value, turn: &mut Turn) {
        let message = &event["message"];
        match (event["type"].as_str(), message["role"].as_str()) {
            (Some("message_start"), Some("assistant")) => self.begin(),
            (Some("message_update"), _) => self.on_piece(event, turn),
            (Some("message_end"), Some("assistant")) => {
                let blocks = message["content"].as_array().into_iter().flatten();
                for (block, at) in blocks.zip(0..) {
                    let text = block["text"].as_str();
                    self.on_whole(at, text, block["thinking"].as_str(), turn);
                }
            }
            _ => turn.unmapped(event),
        }
    }

    fn begin(&mut self) {
        if std::mem::take(&mut self.again) {
            self.text.values_mut().chain(self.thought.values_mut()).for_each(Said::restart);
        } else {
            self.text.clear();
            self.thought.clear();
        }
    }

    fn on_piece(&mut self, event: &Value, turn: &mut Turn) {
        let inner = &event["assistantMessageEvent"];
        let at = inner["contentIndex"].as_u64().unwrap_or(0);
        let (piece, whole) = (inner["delta"].as_str(), inner["content"].as_str());
        match (inner["type"].as_str(), piece) {
            (Some("text_delta"), Some(piece)) => {
                turn.text("", self.text.entry(at).or_default().piece(piece));
            }
            (Some("thinking_delta"), Some(piece)) => {
                turn.thought("", self.thought.entry(at).or_default().piece(piece));
            }
            (Some("text_end"), _) => self.on_whole(at, whole, None, turn),
            (Some("thinking_end"), _) => self.on_whole(at, None, whole, turn),
            // Blocks that begin, a tool's arguments in pieces, and ends that the message tells too.
            (
                Some(
                    "start" | "text_start" | "thinking_start" | "toolcall_start" | "toolcall_delta"
                    | "done" | "error",
                ),
                _,
            ) => {}
            _ => turn.unmapped(event),
        }
    }

    fn on_whole(&mut self, at: u64, text: Option<&str>, thought: Option<&str>, turn: &mut Turn) {
        if let Some(thought) = thought {
            turn.thought("", self.thought.entry(at).or_default().whole(thought));
        }
        if let Some(text) = text {
            turn.text("", self.text.entry(at).or_default().whole(text));
        }
    }
}

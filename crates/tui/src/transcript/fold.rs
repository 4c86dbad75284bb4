//! Folds events, in order, into items.

use super::{ItemContent, ItemKey, MessagePart, TranscriptItem};
use jackfield_events::{AgentMessage, EventBody, ReceivedEvent, TurnStarted};

/// The items of a range of a log.
#[derive(Debug, Default)]
pub(crate) struct TranscriptFold {
    items: Vec<TranscriptItem>,
}

impl TranscriptFold {
    pub(crate) fn items(&self) -> &[TranscriptItem] {
        &self.items
    }

    pub(crate) fn append(&mut self, event: &ReceivedEvent) {
        let content = match &event.body {
            EventBody::Prompted(TurnStarted { by, frame, .. }) => {
                let blocks = frame["params"]["prompt"].as_array().map_or(&[][..], Vec::as_slice);
                let texts = blocks.iter().filter_map(|it| it["text"].as_str());
                let parts = texts.map(|it| MessagePart::Text(it.to_owned())).collect();
                ItemContent::Prompt { by: by.to_string(), parts }
            }
            EventBody::Said(AgentMessage { frame, late, .. }) => {
                let update = &frame["params"]["update"];
                let Some(text) = update["content"]["text"].as_str() else { return };
                let parts = vec![MessagePart::Text(text.to_owned())];
                ItemContent::Message { message_id: String::new(), parts, is_late: *late }
            }
            _ => return,
        };
        let key = ItemKey(event.seq.map_or(0, |it| it.0));
        let turn = event.body.turn().unwrap_or(0);
        self.items.push(TranscriptItem { key, revision: 0, at: event.at, turn, content });
    }
}

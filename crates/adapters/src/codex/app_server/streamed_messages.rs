//! Streamed text and thoughts: each is sent once, even if an interrupted stream starts again.

use crate::{AdapterTurn, StreamedText};
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeltaKind {
    Text,
    /// Codex's summary of a thought.
    Summary,
    /// The thought itself, from models that reveal it.
    RawThought,
}

#[derive(Debug, Default)]
pub(super) struct StreamedMessages {
    messages: BTreeMap<(String, DeltaKind), StreamedMessage>,
    /// Interrupted messages that will be sent again under another id.
    interrupted: Vec<(DeltaKind, StreamedMessage)>,
}

#[derive(Debug, Clone)]
struct StreamedMessage {
    /// The id under which it was first sent.
    id: String,
    text: StreamedText,
    /// Thoughts consist of numbered parts.
    part: u64,
    is_complete: bool,
}

/// The separator of two parts.
pub(super) const PART_SEPARATOR: &str = "\n\n";

impl StreamedMessages {
    pub(super) fn clear(&mut self) {
        self.messages.clear();
        self.interrupted.clear();
    }

    pub(super) fn push_delta(
        &mut self,
        id: &str,
        kind: DeltaKind,
        part: u64,
        delta: &str,
        turn: &mut AdapterTurn,
    ) {
        let message = self.message_mut(id, kind);
        if message.part < part {
            message.part = part;
            send_text(&message.id, kind, message.text.push_delta(PART_SEPARATOR), turn);
        }
        send_text(&message.id, kind, message.text.push_delta(delta), turn);
    }

    pub(super) fn push_full(
        &mut self,
        id: &str,
        kind: DeltaKind,
        text: &str,
        turn: &mut AdapterTurn,
    ) {
        let message = self.message_mut(id, kind);
        message.is_complete = true;
        send_text(&message.id, kind, message.text.push_full(text), turn);
    }

    /// Whether text of this kind was received for the item.
    pub(super) fn has_message(&self, id: &str, kind: DeltaKind) -> bool {
        self.messages.contains_key(&(id.to_owned(), kind))
    }

    /// The stream was interrupted: incomplete messages will be sent again from their beginning.
    pub(super) fn restart_incomplete(&mut self) {
        for ((_, kind), message) in &mut self.messages {
            if !message.is_complete && !message.text.is_empty() {
                message.is_complete = true;
                let mut restarted = message.clone();
                restarted.text.restart();
                (restarted.part, restarted.is_complete) = (0, false);
                self.interrupted.push((*kind, restarted));
            }
        }
    }

    fn message_mut(&mut self, id: &str, kind: DeltaKind) -> &mut StreamedMessage {
        let interrupted = &mut self.interrupted;
        self.messages.entry((id.to_owned(), kind)).or_insert_with(|| {
            let index = interrupted.iter().position(|(it, _)| *it == kind);
            let restarted = index.map(|index| interrupted.remove(index).1);
            restarted.unwrap_or_else(|| StreamedMessage {
                id: id.to_owned(),
                text: StreamedText::default(),
                part: 0,
                is_complete: false,
            })
        })
    }
}

fn send_text(id: &str, kind: DeltaKind, text: &str, turn: &mut AdapterTurn) {
    match kind {
        DeltaKind::Text => turn.send_text(id, text),
        DeltaKind::Summary | DeltaKind::RawThought => turn.send_thought(id, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn_effect::TurnEffect;

    fn sent_chunks(turn: &AdapterTurn) -> Vec<(String, String)> {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let updates = turn.effects.iter().filter_map(|effect| match effect {
            TurnEffect::SendUpdate(update) => Some(update),
            _ => None,
        });
        updates.map(|it| (text(&it["messageId"]), text(&it["content"]["text"]))).collect()
    }

    #[test]
    fn message_restarted_under_another_id_is_sent_once() {
        let (mut messages, mut turn) = (StreamedMessages::default(), AdapterTurn::default());
        messages.push_delta("a", DeltaKind::Text, 0, "Hello from", &mut turn);
        messages.restart_incomplete();
        messages.push_delta("b", DeltaKind::Text, 0, "Hello", &mut turn);
        messages.push_delta("b", DeltaKind::Text, 0, " from the model", &mut turn);
        messages.push_full("b", DeltaKind::Text, "Hello from the model.", &mut turn);
        let chunk = |text: &str| ("a".to_owned(), text.to_owned());
        assert_eq!(sent_chunks(&turn), [chunk("Hello from"), chunk(" the model"), chunk(".")]);
    }

    #[test]
    fn parts_of_thoughts_are_separated() {
        let (mut messages, mut turn) = (StreamedMessages::default(), AdapterTurn::default());
        messages.push_delta("r", DeltaKind::Summary, 0, "one", &mut turn);
        messages.push_delta("r", DeltaKind::Summary, 1, "two", &mut turn);
        messages.push_full("r", DeltaKind::Summary, "one\n\ntwo\n\nthree", &mut turn);
        let all: String = sent_chunks(&turn).into_iter().map(|(_, text)| text).collect();
        assert_eq!(all, "one\n\ntwo\n\nthree");
    }
}

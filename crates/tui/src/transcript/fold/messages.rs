//! Prompts, messages, thoughts and plans.

use super::{EventPlace, TranscriptFold};
use crate::transcript::{
    ItemContent, MessagePart, PlanEntry,
    content::{add_part, list, parts_text, text},
    turn_end::RunningTurn,
};
use jackfield_events::TurnStarted;
use serde_json::Value;

/// A chunk of a message of the user that the agent sends back.
#[derive(Debug)]
pub(super) struct EchoedChunk {
    place: EventPlace,
    part: MessagePart,
}

impl TranscriptFold {
    pub(super) fn on_prompted(&mut self, place: EventPlace, started: &TurnStarted<Value>) {
        let blocks = list(&started.frame["params"], "prompt");
        let parts: Vec<MessagePart> = blocks.iter().map(MessagePart::from_block).collect();
        self.prompt = parts_text(&parts);
        self.echo.clear();
        self.plan = None;
        self.is_running = true;
        let (turn, started_at) = (place.turn, place.at);
        self.turn = Some(RunningTurn { turn, started_at, cost: None, context: None });
        self.push(place, ItemContent::Prompt { by: started.by.to_string(), parts });
    }

    pub(super) fn add_message(&mut self, place: EventPlace, is_late: bool, update: &Value) {
        let part = MessagePart::from_block(&update["content"]);
        let id = text(update, "messageId");
        let is_same = |it: &ItemContent| matches!(it, ItemContent::Message { message_id, .. } if message_id == id);
        if self.items.last().is_some_and(|it| is_same(&it.content)) {
            return self.add_to_last(place, part);
        }
        // Some agents begin each message with an empty chunk.
        if !part.is_empty_text() {
            let (message_id, parts) = (id.to_owned(), vec![part]);
            self.push(place, ItemContent::Message { message_id, parts, is_late });
        }
    }

    pub(super) fn add_thought(&mut self, place: EventPlace, update: &Value) {
        let part = MessagePart::from_block(&update["content"]);
        let id = text(update, "messageId");
        let is_same = |it: &ItemContent| matches!(it, ItemContent::Thought { message_id, .. } if message_id == id);
        if self.items.last().is_some_and(|it| is_same(&it.content)) {
            return self.add_to_last(place, part);
        }
        if !part.is_empty_text() {
            let (message_id, parts, ended_at) = (id.to_owned(), vec![part], place.at);
            self.push(place, ItemContent::Thought { message_id, parts, ended_at });
        }
    }

    fn add_to_last(&mut self, place: EventPlace, part: MessagePart) {
        match &mut self.change(self.items.len() - 1, place).content {
            ItemContent::Thought { parts, ended_at, .. } => {
                *ended_at = place.at;
                add_part(parts, part);
            }
            ItemContent::Message { parts, .. } | ItemContent::Prompt { parts, .. } => {
                add_part(parts, part);
            }
            _ => {}
        }
    }

    /// A message of the user that the agent sends back. It is shown unless it is the prompt.
    pub(super) fn add_echo(&mut self, place: EventPlace, update: &Value) {
        let part = MessagePart::from_block(&update["content"]);
        if part.is_empty_text() {
            return;
        }
        self.echo.push(EchoedChunk { place, part });
        let texts = self.echo.iter().map(|it| parts_text(std::slice::from_ref(&it.part)));
        let texts: String = texts.collect();
        let (echo, prompt) = (texts.trim(), self.prompt.trim());
        if !prompt.starts_with(echo) {
            for EchoedChunk { place, part } in std::mem::take(&mut self.echo) {
                self.add_user_text(place, part);
            }
        } else if echo != prompt {
            return;
        }
        self.echo.clear();
        self.prompt.clear();
    }

    fn add_user_text(&mut self, place: EventPlace, part: MessagePart) {
        let last = self.items.last().map(|it| &it.content);
        if matches!(last, Some(ItemContent::Prompt { by, .. }) if by.is_empty()) {
            return self.add_to_last(place, part);
        }
        self.push(place, ItemContent::Prompt { by: String::new(), parts: vec![part] });
    }

    /// Agents send the whole plan again with each change.
    pub(super) fn set_plan(&mut self, place: EventPlace, update: &Value) {
        let entry = |it: &Value| PlanEntry {
            content: text(it, "content").to_owned(),
            status: text(it, "status").to_owned(),
        };
        let plan = ItemContent::Plan(list(update, "entries").iter().map(entry).collect());
        match self.plan {
            Some(index) => self.change(index, place).content = plan,
            None => self.plan = Some(self.push(place, plan)),
        }
    }
}

//! A section of a transcript: text, tool calls and requests in the order in which they started. A call or
//! a request is rendered at its first mention, with its outcome.

use super::{
    call::TranscriptCall,
    item::{CallIndex, TranscriptItem, TranscriptRequest},
};
use crate::text::describe::{block_text, str_member};
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct TranscriptSection {
    items: Vec<TranscriptItem>,
    /// The positions of the calls and the requests in `items`.
    calls: BTreeMap<String, usize>,
    requests: BTreeMap<u64, usize>,
    plan: Option<usize>,
}

impl TranscriptSection {
    /// Adds one `session/update`.
    pub(super) fn add_update(&mut self, update: &Value) {
        let text = || block_text(&update["content"]);
        match str_member(update, "sessionUpdate") {
            "agent_message_chunk" => self.add_text(str_member(update, "messageId"), text()),
            "agent_thought_chunk" => match self.items.last_mut() {
                Some(TranscriptItem::Thought(thought)) => thought.push_str(&text()),
                _ => self.items.push(TranscriptItem::Thought(text())),
            },
            "user_message_chunk" => match self.items.last_mut() {
                Some(TranscriptItem::User(message)) => message.push_str(&text()),
                _ => self.items.push(TranscriptItem::User(text())),
            },
            "tool_call" | "tool_call_update" => {
                let call = self.call_mut(str_member(update, "toolCallId"));
                call.merge(update);
                call.is_made = true;
            }
            "plan" => self.set_plan(update["entries"].clone()),
            "current_mode_update" => {
                self.add_remark(format!("mode: {}", str_member(update, "currentModeId")));
            }
            _ => {}
        }
    }

    pub(super) fn add_remark(&mut self, text: String) {
        self.items.push(TranscriptItem::Remark(text));
    }

    /// Adds the last lines that an agent wrote to stderr.
    pub(super) fn add_stderr(&mut self, lines: &[&str]) {
        self.items.push(TranscriptItem::Stderr(lines.join("\n")));
    }

    /// Adds a request of the agent to the user.
    pub(super) fn add_request(&mut self, number: u64, request: TranscriptRequest, call: &Value) {
        self.requests.insert(number, self.items.len());
        let id = request.call.clone();
        self.items.push(TranscriptItem::Request(request));
        if let Some(id) = id {
            self.call_mut(&id).merge(call);
        }
    }

    pub(super) fn request_mut(&mut self, number: u64) -> Option<&mut TranscriptRequest> {
        match self.items.get_mut(*self.requests.get(&number)?) {
            Some(TranscriptItem::Request(request)) => Some(request),
            _ => None,
        }
    }

    /// Renders the items as Markdown. A user message that echoes the prompt is left out.
    pub(super) fn render(&self, prompt: &str) -> Vec<String> {
        let index = CallIndex::new(&self.items);
        let is_echo = |it: &&TranscriptItem| matches!(it, TranscriptItem::User(text) if text.trim() == prompt.trim());
        let rendered = self.items.iter().filter(|it| !is_echo(it)).map(|it| it.render(&index));
        rendered.filter(|it| !it.is_empty()).collect()
    }

    fn add_text(&mut self, message_id: &str, chunk: String) {
        match self.items.last_mut() {
            Some(TranscriptItem::AgentText { message, text }) if message == message_id => {
                text.push_str(&chunk);
            }
            _ => {
                let message = message_id.to_owned();
                self.items.push(TranscriptItem::AgentText { message, text: chunk });
            }
        }
    }

    fn call_mut(&mut self, id: &str) -> &mut TranscriptCall {
        let index = *self.calls.entry(id.to_owned()).or_insert(self.items.len());
        if index == self.items.len() {
            self.items.push(TranscriptItem::Call(Box::new(TranscriptCall::new(id))));
        }
        let TranscriptItem::Call(call) = &mut self.items[index] else {
            unreachable!("a call keeps its position")
        };
        call
    }

    /// Agents send the whole plan again with each change: the last one replaces the first.
    fn set_plan(&mut self, entries: Value) {
        let index = *self.plan.get_or_insert(self.items.len());
        match self.items.get_mut(index) {
            Some(known) => *known = TranscriptItem::Plan(entries),
            None => self.items.push(TranscriptItem::Plan(entries)),
        }
    }
}

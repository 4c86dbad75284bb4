//! Tool calls.

use super::{EventPlace, TranscriptFold};
use crate::transcript::{ItemContent, ToolCallItem, ToolStatus, tool_call::tool_call_id};
use serde_json::Value;

impl TranscriptFold {
    /// Merges a `tool_call` (`is_made`) or a `tool_call_update`.
    pub(super) fn merge_call(&mut self, place: EventPlace, update: &Value, is_made: bool) {
        let index = self.call_index(place, &tool_call_id(update), is_made);
        let Some(call) = self.change_call(index, place) else { return };
        call.merge_update(update, place.at);
        if call.status.has_ended() {
            self.open_calls.remove(&index);
        } else {
            self.open_calls.insert(index);
        }
    }

    /// A tool call that this event changes.
    pub(super) fn change_call(
        &mut self,
        index: usize,
        place: EventPlace,
    ) -> Option<&mut ToolCallItem> {
        match &mut self.change(index, place).content {
            ItemContent::ToolCall(call) => Some(call),
            _ => None,
        }
    }

    /// Calls without a result get none when the turn has ended or the agent has exited.
    pub(super) fn end_open_calls(&mut self, place: EventPlace) {
        for index in std::mem::take(&mut self.open_calls) {
            let last_seq = self.items[index].last_seq;
            if let Some(call) = self.change_call(index, EventPlace { seq: last_seq, ..place }) {
                call.status = ToolStatus::Unfinished;
                call.ended_at = Some(place.at);
            }
        }
    }

    /// An id that a new turn uses again names a new call.
    fn call_index(&mut self, place: EventPlace, id: &str, is_made: bool) -> usize {
        let known = self.calls.get(id).copied();
        if let Some(known) = known.filter(|it| !is_made || self.items[*it].turn == place.turn) {
            return known;
        }
        let mut call = ToolCallItem { call_id: id.to_owned(), ..ToolCallItem::default() };
        if let Some(requested) = self.requested_calls.remove(id) {
            call.merge_description(&requested);
        }
        let index = self.push(place, ItemContent::ToolCall(Box::new(call)));
        self.calls.insert(id.to_owned(), index);
        index
    }
}

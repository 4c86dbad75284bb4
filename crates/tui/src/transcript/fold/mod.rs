//! Folds events, in order, into items.
//!
//! Appending an event costs the same for a short and a long transcript. When older events are loaded, the whole range
//! is folded again ([`TranscriptFold::refold`]), because they may begin a message or a tool call of which the range has
//! the rest.

mod calls;
mod messages;
mod refold;
mod requests;

#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod tests;

use super::{
    ItemContent, ItemKey, TranscriptItem, TurnEndItem, content::text, notice::event_notice,
    turn_end::RunningTurn,
};
use jackfield_events::{EventBody, ReceivedEvent, ReportedCost, TurnEnded};
use jackfield_views::{
    UsageCost,
    usage::{ContextUsage, round_amount},
};
use requests::OptionName;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The items of a range of a log.
#[derive(Debug, Default)]
pub(crate) struct TranscriptFold {
    items: Vec<TranscriptItem>,
    /// The last revision that an item got.
    revision: u64,
    /// The indexes of the items that later events change.
    calls: BTreeMap<String, usize>,
    requests: BTreeMap<u64, usize>,
    open_calls: BTreeSet<usize>,
    plan: Option<usize>,
    /// By number of the request and id of the option.
    option_names: BTreeMap<(u64, String), OptionName>,
    /// The calls of permission requests by id: some agents describe a call only there.
    requested_calls: BTreeMap<String, Value>,
    turn: Option<RunningTurn>,
    is_running: bool,
    /// The text of the prompt that the agent has not repeated yet: some agents send it back.
    prompt: String,
    /// What the agent has sent back so far.
    echo: Vec<messages::EchoedChunk>,
    /// The cost of the session at the last report; unknown if the beginning of the log is not in the range.
    session_cost: Option<f64>,
}

/// Where and when something happened.
#[derive(Debug, Clone, Copy)]
struct EventPlace {
    seq: u64,
    at: jackfield_events::Time,
    turn: u64,
}

impl TranscriptFold {
    pub(crate) fn items(&self) -> &[TranscriptItem] {
        &self.items
    }

    /// The message or thought that the agent is sending.
    pub(crate) fn growing_item(&self) -> Option<ItemKey> {
        let last = self.items.last().filter(|_| self.is_running)?;
        let is_text =
            matches!(last.content, ItemContent::Message { .. } | ItemContent::Thought { .. });
        is_text.then_some(last.key)
    }

    /// The turn that has not ended.
    pub(crate) fn running_turn(&self) -> Option<u64> {
        self.turn.as_ref().map(|it| it.turn)
    }

    /// The index of the item that begins with this event, or of the last one before it.
    pub(crate) fn index_of_seq(&self, seq: u64) -> usize {
        self.items.partition_point(|it| it.seq <= seq).saturating_sub(1)
    }

    pub(crate) fn append(&mut self, event: &ReceivedEvent) {
        let running = self.turn.as_ref().map_or(0, |it| it.turn);
        let turn = event.body.turn().unwrap_or(running);
        let place = EventPlace { seq: event.seq.map_or(0, |it| it.0), at: event.at, turn };
        match &event.body {
            EventBody::Said(it) => {
                return self.on_said(place, it.late, &it.frame["params"]["update"]);
            }
            EventBody::Prompted(it) => return self.on_prompted(place, it),
            EventBody::Ended(it) => return self.on_ended(place, it),
            EventBody::Asked(it) => return self.on_asked(place, it),
            EventBody::Answered(it) => return self.on_answered(place, it),
            EventBody::Learned(it) => return self.on_learned(place, it.ask),
            EventBody::Gone(_) => self.end_open_calls(place),
            EventBody::Opened(_) => self.session_cost = Some(0.0),
            _ => {}
        }
        if let Some(notice) = event_notice(&event.body) {
            self.push(place, notice);
        }
    }

    fn push(&mut self, place: EventPlace, content: ItemContent) -> usize {
        self.revision += 1;
        let EventPlace { seq, at, turn } = place;
        let (key, revision) = (ItemKey(seq), self.revision);
        self.items.push(TranscriptItem { key, revision, seq, last_seq: seq, at, turn, content });
        self.items.len() - 1
    }

    /// An item that this event changes.
    fn change(&mut self, index: usize, place: EventPlace) -> &mut TranscriptItem {
        self.revision += 1;
        let item = &mut self.items[index];
        (item.revision, item.last_seq) = (self.revision, place.seq);
        item
    }

    fn on_said(&mut self, place: EventPlace, is_late: bool, update: &Value) {
        self.is_running |= !is_late && place.turn > 0;
        match text(update, "sessionUpdate") {
            "agent_message_chunk" => self.add_message(place, is_late, update),
            "agent_thought_chunk" => self.add_thought(place, update),
            "user_message_chunk" => self.add_echo(place, update),
            "tool_call" => self.merge_call(place, update, true),
            "tool_call_update" => self.merge_call(place, update, false),
            "plan" => self.set_plan(place, update),
            "usage_update" => self.add_usage(update),
            "current_mode_update" => {
                let mode = text(update, "currentModeId");
                self.push(place, ItemContent::notice(format!("Mode: {mode}")));
            }
            "session_info_update" => self.add_session_notices(place, &update["_meta"]["jackfield"]),
            _ => {}
        }
    }

    fn add_session_notices(&mut self, place: EventPlace, meta: &Value) {
        let (notice, stderr) = (text(meta, "notice"), text(meta, "stderr"));
        let title = if notice.is_empty() { "The agent wrote to stderr" } else { notice };
        if !notice.is_empty() || !stderr.is_empty() {
            let notice = ItemContent::notice_at(super::NoticeLevel::Info, title, stderr);
            self.push(place, notice);
        }
    }

    fn on_ended(&mut self, place: EventPlace, ended: &TurnEnded<Value>) {
        self.end_open_calls(place);
        let running = self.turn.take().filter(|it| it.turn == ended.turn);
        let end = TurnEndItem::from_event(ended, place.at, running);
        self.push(place, ItemContent::TurnEnd(Box::new(end)));
        self.plan = None;
        self.is_running = false;
    }

    /// Agents report the cost of the session so far; that of the turn is the increase.
    fn add_usage(&mut self, update: &Value) {
        if let (Some(turn), Some(tokens)) = (&mut self.turn, update["used"].as_u64()) {
            turn.context = Some(ContextUsage { tokens, size: update["size"].as_u64() });
        }
        let Some(cost) = ReportedCost::parse(&update["cost"]) else { return };
        if let (Some(turn), Some(before)) = (&mut self.turn, self.session_cost) {
            let so_far = turn.cost.as_ref().map_or(0.0, |it| it.amount);
            let amount = round_amount(so_far + (cost.amount - before).max(0.0));
            let currency = cost.currency.chars().take(8).collect();
            turn.cost = Some(UsageCost { amount, currency });
        }
        self.session_cost = Some(cost.amount);
    }
}

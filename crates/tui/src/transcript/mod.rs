//! Folds the events of a log into the items of a transcript.
//!
//! Read in this order: `item` has the types; `fold` turns events into items; `tool_call`, `turn_end` and `notice` read
//! the parts of events. An item keeps its [`ItemKey`] while it grows.

mod content;
mod fold;
mod item;
mod notice;
#[cfg(test)]
pub(crate) mod test_log;
mod tool_call;
mod turn_end;

pub(crate) use content::parts_text;
pub(crate) use fold::TranscriptFold;
pub(crate) use item::{
    ItemContent, ItemKey, MessagePart, NoticeLevel, PlanEntry, RequestAnswer, RequestItem,
    ToolCallItem, ToolOutput, ToolStatus, TranscriptItem, TurnEndItem, TurnOutcome,
};

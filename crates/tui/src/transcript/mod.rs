//! Folds the events of a log into the items of a transcript.
//!
//! An item keeps its [`ItemKey`] while it grows. Appending an event costs the same for a short and a long transcript.

mod fold;
mod item;

pub(crate) use fold::TranscriptFold;
pub(crate) use item::{
    ItemContent, ItemKey, MessagePart, NoticeLevel, PlanEntry, RequestAnswer, ToolCallItem,
    ToolOutput, ToolStatus, TranscriptItem, TurnEndItem, TurnOutcome,
};

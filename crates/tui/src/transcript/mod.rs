//! Folds the events of a log into the items of a transcript.
//!
//! Read in this order: `item` has the types; `fold` turns events into items, with `tool_call`, `turn_end` and `notice`,
//! which read the parts of events. `window` holds the range of the log that is loaded. `render` turns items into lines,
//! block by block, and `line_cache` keeps them. An item keeps its [`ItemKey`] while it grows.

mod content;
mod fold;
mod item;
mod line_cache;
mod notice;
mod render;
mod split_markdown;
#[cfg(test)]
pub(crate) mod test_log;
mod text_match;
mod tool_call;
mod turn_end;
mod window;

pub(crate) use content::parts_text;
pub(crate) use fold::TranscriptFold;
pub(crate) use item::{
    ItemContent, ItemKey, MessagePart, NoticeLevel, PlanEntry, RequestAnswer, RequestItem,
    ToolCallItem, ToolOutput, ToolStatus, TranscriptItem, TurnEndItem, TurnOutcome,
};
#[cfg(test)]
pub(crate) use line_cache::LINES_MAX;
pub(crate) use line_cache::LineCache;
pub(crate) use render::{
    BlockPlace, BlockSource, ItemOptions, can_expand, is_compact, item_blocks, item_mark,
    render_block, running_seconds,
};
pub(crate) use split_markdown::{MarkdownBlock, block_text, split_markdown};
pub(crate) use text_match::TextQuery;
pub(crate) use window::LogWindow;
#[cfg(test)]
pub(crate) use window::{WINDOW_BYTES_MAX, WINDOW_EVENTS_MAX};

//! Server-sent events: the framing that browsers read over plain HTTP, and that model servers answer
//! in.
//!
//! What a reader gets back is what was put in, save that it cannot tell the kinds of line break
//! apart: CR, LF and CRLF in data all arrive as LF.

mod encode;
#[cfg(test)]
mod oracle;
mod read;

pub use encode::{encode_comment, encode_event};
pub use read::{Event, EventReader, EventTooLong, OnEvent};

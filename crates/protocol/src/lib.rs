//! Bytes to frames and back. No I/O, no clock.
//!
//! Read in this order: [`mod@line`] cuts a byte stream into lines, `scan` reads a line once and
//! notes where the routing fields stand, [`frame`] is the message as everyone else sees it,
//! [`splice`] swaps its ids, [`fault`] is every error we send, [`acp`] says what each method means
//! to the hub. [`sse`] is the other framing, for browsers. [`redact`] takes secrets out of text,
//! [`rfc3339`] formats timestamps, [`suggest_name`] corrects misspelled names, [`chain()`] errors, [`quote_argv`] commands. [`FlowControl`] pauses the reader of a peer, and
//! [`WriteBacklog`] holds what is not written to it yet. [`mcp_servers`] reads descriptions of MCP servers.
//!
//! **Invariant:** a frame that is forwarded is forwarded byte for byte, save for the ids that were
//! spliced. The hub parses what it routes on and carries the rest, so a newer protocol passes
//! through an older hub.
//!
//! **Invariant:** a [`Frame`] is valid JSON, valid UTF-8 and one line, however it came to be.
//!
//! **Invariant:** no two readers can disagree about where a frame goes: a routing key that stands
//! twice is refused, and an escaped key counts as what it decodes to.
//!
//! **Invariant:** reading a frame costs one pass; it allocates only to undo escapes or line breaks
//! where hardly anyone writes them. Nesting is bounded, and nothing recurses as deep as the input.

pub mod acp;
mod backlog;
mod chain;
mod command_line;
pub mod fault;
mod flow_control;
pub mod frame;
mod head;
pub mod line;
mod malformed;
pub mod mcp_servers;
mod outer_session_id;
pub mod planted_bugs;
mod quote;
pub mod redact;
mod scan;
pub mod splice;
pub mod sse;
#[cfg(test)]
mod strategy;
mod suggestion;
mod timestamp;
pub mod visible;

pub use backlog::{WRITE_BYTES_MAX, WriteBacklog};
pub use chain::chain;
pub use command_line::quote_argv;
pub use fault::Fault;
pub use flow_control::FlowControl;
pub use frame::{Frame, Kind};
pub use head::FrameHead;
pub use line::{
    FRAME_BYTES_MAX, FRAME_ROOM_BYTES, HUB_FRAME_BYTES_MAX, LineSplitter, LineTooLong, READ_BYTES,
};
pub use malformed::MalformedFrame;
pub use planted_bugs::is_planted;
pub use splice::Splice;
pub use suggestion::{find_similar_name, suggest_name};
pub use timestamp::{format_age, parse_rfc3339, rfc3339};

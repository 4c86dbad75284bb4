//! What can be wrong with a text that should be a JSON-RPC message.

use crate::fault::Fault;

/// A text that is not a JSON-RPC message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedFrame {
    #[error("not UTF-8 at byte {at}")]
    NotUtf8 { at: usize },
    #[error("not JSON: expected {expected} at byte {at}")]
    NotJson { at: usize, expected: &'static str },
    #[error("nested too deeply")]
    TooDeep,
    #[error("longer than 4 GiB")]
    TooLong,
    #[error("not a JSON object")]
    NotAnObject,
    /// Two readers could disagree about which one counts.
    #[error("`{key}` stands twice")]
    Twice { key: &'static str },
    #[error("`{key}` is not {expected}")]
    WrongType { key: &'static str, expected: &'static str },
    #[error("neither a request nor a notification nor a response")]
    NoKind,
}

impl From<MalformedFrame> for Fault {
    fn from(malformed: MalformedFrame) -> Fault {
        match malformed {
            MalformedFrame::NotUtf8 { .. } | MalformedFrame::NotJson { .. } => Fault::Parse,
            _ => Fault::InvalidRequest { why: malformed.to_string() },
        }
    }
}

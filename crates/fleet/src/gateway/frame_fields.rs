//! Reads the fields of frames that the gateway acts on.

use jackfield_hub::SessionId;
use jackfield_protocol::Frame;
use serde_json::Value;

/// The options of `_jackfield/attach`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct AttachOptions {
    pub(super) observe: bool,
    pub(super) facts: bool,
}

impl AttachOptions {
    pub(super) fn parse(attach: &Frame) -> AttachOptions {
        let params = parse_params(attach).unwrap_or_default();
        let flag = |name: &str| params[name].as_bool().unwrap_or(false);
        AttachOptions { observe: flag("observe"), facts: flag("facts") }
    }
}

pub(super) fn session_of(frame: &Frame) -> Option<SessionId> {
    frame.session_id().map(|it| SessionId::from(&*it))
}

pub(super) fn parse_params(frame: &Frame) -> Option<Value> {
    serde_json::from_str(frame.params()?).ok()
}

/// The error code of an error response that Jackfield created.
pub(super) fn fault_code(answer: &Frame) -> Option<String> {
    let error: Value = serde_json::from_str(answer.error()?).ok()?;
    error.pointer("/data/jackfield/code")?.as_str().map(str::to_owned)
}

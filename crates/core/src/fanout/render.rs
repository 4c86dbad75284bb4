//! What an event looks like to a client. Plain ACP clients hear plain ACP; clients that announced
//! `_meta.jackfield` also hear the facts ACP has no words for, and the seq of each.

use crate::{
    SessionId,
    log::{Body, Event},
};
use bytes::Bytes;
use jackfield_wire::Frame;
use serde_json::{Value, json};

/// The agent's own words, as they were said.
pub(crate) fn said(event: &Event, frame: &Bytes, aware: bool) -> Bytes {
    if !aware {
        return frame.clone();
    }
    match Frame::parse(frame.clone()) {
        Ok(parsed) => parsed.with_meta(&format!(r#"{{"seq":{}}}"#, event.seq.0)).bytes().clone(),
        Err(_) => frame.clone(),
    }
}

/// Another client's prompt, as ACP shows a user's words: one chunk a content block.
pub(crate) fn user_chunks(session: &SessionId, prompt: &Bytes) -> Vec<Bytes> {
    let Ok(frame) = serde_json::from_slice::<Value>(prompt) else { return Vec::new() };
    let blocks = frame.pointer("/params/prompt").and_then(Value::as_array);
    let chunk = |content: &Value| {
        let update = json!({ "sessionUpdate": "user_message_chunk", "content": content });
        let params = json!({ "sessionId": &**session, "update": update });
        Frame::notification("session/update", &params.to_string()).bytes().clone()
    };
    blocks.into_iter().flatten().map(chunk).collect()
}

/// The fact itself, for clients that know of the hub. `None` for what they hear as an update.
pub(crate) fn notice(session: &SessionId, event: &Event) -> Option<Bytes> {
    let method = match &event.body {
        Body::Said { .. } => return None,
        Body::Prompted { .. } | Body::Cancelled { .. } | Body::Ended { .. } => "_jackfield/turn",
        Body::Asked { .. } | Body::Answered { .. } => "_jackfield/ask",
        Body::Opened { .. }
        | Body::Bound { .. }
        | Body::Configured { .. }
        | Body::Gone { .. }
        | Body::Closed => "_jackfield/session",
    };
    let mut line = Vec::new();
    event.encode(&mut line);
    let fact = std::str::from_utf8(&line).expect("an event encodes as JSON text");
    // The event's own members stand beside its address: `{"sessionId":…,"seq":…,"at":…,"is":…,…}`.
    let params = format!(
        r#"{{"sessionId":{},"seq":{},{}"#,
        Value::from(&**session),
        event.seq.0,
        &fact[1..]
    );
    Some(Frame::notification(method, &params).bytes().clone())
}

/// Tells a client that the request it was sent needs no answer any more.
pub(crate) fn cancel_notice(request: u64) -> Bytes {
    let params = format!(r#"{{"requestId":{request}}}"#);
    Frame::notification("$/cancel_request", &params).bytes().clone()
}

/// The answer to an attach: how far the log reaches.
pub(crate) fn attach_notice(session: &SessionId, head: u64) -> String {
    json!({ "sessionId": &**session, "head": head }).to_string()
}

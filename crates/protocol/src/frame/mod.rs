//! One JSON-RPC message as exact text, plus the few fields the hub routes on.

mod envelope;
#[cfg(test)]
mod tests;

pub(crate) use envelope::{FrameShape, RoutingFields};

use crate::{
    acp::{Method, is_control_method},
    fault::Fault,
    malformed::MalformedFrame,
    quote::{quote, unquote},
    scan::{TextSpan, scan},
};
use bytes::Bytes;
use std::{borrow::Cow, fmt, str};

/// A message kept as the text that arrived. Cloning it copies no text.
///
/// The text is always one line: a raw line break between two tokens, which a line-based transport
/// cannot deliver but a WebSocket or an HTTP body can, becomes a space when it is parsed.
#[derive(Clone)]
pub struct Frame {
    pub(crate) text: Bytes,
    pub(crate) fields: RoutingFields,
}

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Request,
    Notification,
    Response,
}

impl Frame {
    /// Checks that `text` is one whole JSON-RPC message, in one pass.
    pub fn parse(text: Bytes) -> Result<Frame, MalformedFrame> {
        let checked = str::from_utf8(&text)
            .map_err(|error| MalformedFrame::NotUtf8 { at: error.valid_up_to() })?;
        let found = scan(checked)?;
        let fields = RoutingFields::new(checked, &found)?;
        let text = if found.has_line_breaks { on_one_line(&text) } else { text };
        Ok(Frame { text, fields })
    }

    pub fn parse_str(text: &str) -> Result<Frame, MalformedFrame> {
        Frame::parse(Bytes::copy_from_slice(text.as_bytes()))
    }

    pub fn kind(&self) -> Kind {
        match self.fields.shape {
            FrameShape::Request => Kind::Request,
            FrameShape::Notification => Kind::Notification,
            FrameShape::Result | FrameShape::Error => Kind::Response,
        }
    }

    pub fn text(&self) -> &str {
        str::from_utf8(&self.text).expect("a frame's text was checked when it was made")
    }

    pub fn bytes(&self) -> &Bytes {
        &self.text
    }

    pub fn into_bytes(self) -> Bytes {
        self.text
    }

    /// The id as JSON text: `7` and `"7"` are different ids.
    pub fn id(&self) -> Option<&str> {
        self.json(self.fields.id)
    }

    pub fn method(&self) -> Option<Cow<'_, str>> {
        self.name(self.fields.method)
    }

    /// The method, if the method table has it.
    pub fn known_method(&self) -> Option<Method> {
        Method::from_name(&self.method()?)
    }

    pub fn is_method(&self, method: Method) -> bool {
        self.method().is_some_and(|it| it == method.name())
    }

    /// Whether the method belongs to our control protocol, also if this version does not know it.
    pub fn is_control(&self) -> bool {
        self.method().is_some_and(|it| is_control_method(&it))
    }

    /// The params of a request or notification, as JSON text.
    pub fn params(&self) -> Option<&str> {
        matches!(self.fields.shape, FrameShape::Request | FrameShape::Notification)
            .then(|| self.json(self.fields.body))
            .flatten()
    }

    /// The parsed params: an empty object if there are none, `null` if they cannot be parsed.
    pub fn params_value(&self) -> serde_json::Value {
        serde_json::from_str(self.params().unwrap_or("{}")).unwrap_or_default()
    }

    /// The result of a response, as JSON text.
    pub fn result(&self) -> Option<&str> {
        (self.fields.shape == FrameShape::Result).then(|| self.json(self.fields.body)).flatten()
    }

    /// The error of a response, as JSON text.
    pub fn error(&self) -> Option<&str> {
        (self.fields.shape == FrameShape::Error).then(|| self.json(self.fields.body)).flatten()
    }

    /// The session this frame is about: `params.sessionId`, or `result.sessionId` of a response,
    /// if it is a string.
    pub fn session_id(&self) -> Option<Cow<'_, str>> {
        self.name(self.fields.session_id)
    }

    /// `sessionId` beside `params`, if it is a string: how clients of a bus name a conversation.
    pub fn outer_session_id(&self) -> Option<Cow<'_, str>> {
        self.name(self.fields.outer_session_id)
    }

    /// The pool of workers it is for: `pool` beside `params`.
    pub fn pool(&self) -> Option<Cow<'_, str>> {
        if self.fields.is_pool_agent_id { None } else { self.name(self.fields.pool) }
    }

    /// The agent it is for: `agentId` beside `params`, if `pool` is not there.
    pub fn agent_id(&self) -> Option<Cow<'_, str>> {
        if self.fields.is_pool_agent_id { self.name(self.fields.pool) } else { None }
    }

    /// `params.requestId` as JSON text.
    pub fn request_id(&self) -> Option<&str> {
        self.json(self.fields.request_id)
    }

    /// What a `session/update` says: `params.update.sessionUpdate`, if it is a string.
    pub fn update(&self) -> Option<Cow<'_, str>> {
        self.name(self.fields.update)
    }

    /// `params._meta` as JSON text.
    pub fn meta(&self) -> Option<&str> {
        self.json(self.fields.meta)
    }

    /// A request of our own; `id` and `params` are JSON text.
    ///
    /// Like the other makers below it panics if a part is no JSON, or names a routing key twice:
    /// that is our mistake. What a peer wrote is used as it came out of a parsed frame, in the same
    /// place; where it moves (deeper, or into a place we route on) use [`Frame::parse`] instead.
    pub fn request(id: &str, method: &str, params: &str) -> Frame {
        make(
            &[r#"{"jsonrpc":"2.0","id":"#, id, r#","method":"#],
            Some(method),
            &[r#","params":"#, params, "}"],
        )
    }

    /// A notification of our own; `params` is JSON text.
    pub fn notification(method: &str, params: &str) -> Frame {
        make(&[r#"{"jsonrpc":"2.0","method":"#], Some(method), &[r#","params":"#, params, "}"])
    }

    /// A good answer; `id` and `result` are JSON text.
    pub fn result_for(id: &str, result: &str) -> Frame {
        make(&[r#"{"jsonrpc":"2.0","id":"#, id, r#","result":"#, result, "}"], None, &[])
    }

    /// A bad answer; `id` is JSON text.
    pub fn error_for(id: &str, fault: &Fault) -> Frame {
        let error = fault.to_json();
        make(&[r#"{"jsonrpc":"2.0","id":"#, id, r#","error":"#, &error, "}"], None, &[])
    }

    /// What the string at `span` says.
    fn name(&self, span: TextSpan) -> Option<Cow<'_, str>> {
        let json = self.json(span)?;
        if self.fields.has_escapes { unquote(json) } else { Some(json[1..json.len() - 1].into()) }
    }

    pub(crate) fn json(&self, span: TextSpan) -> Option<&str> {
        let bytes = span.of(&self.text)?;
        Some(str::from_utf8(bytes).expect("a value starts and ends between two characters"))
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Frame").field(&self.text()).finish()
    }
}

/// Frames are equal if their texts are: everything else follows from the text.
impl PartialEq for Frame {
    fn eq(&self, other: &Frame) -> bool {
        self.text == other.text
    }
}

impl Eq for Frame {}

/// Line breaks stand between tokens only (a string cannot hold a raw one): spaces do as well, and
/// every span stays where it was.
fn on_one_line(text: &Bytes) -> Bytes {
    let is_break = |byte: u8| byte == b'\n' || byte == b'\r';
    text.iter().map(|&byte| if is_break(byte) { b' ' } else { byte }).collect()
}

fn make(head: &[&str], method: Option<&str>, tail: &[&str]) -> Frame {
    let mut text = head.concat().into_bytes();
    if let Some(method) = method {
        quote(&mut text, method);
    }
    text.extend_from_slice(tail.concat().as_bytes());
    Frame::parse(text.into()).expect("our own frames are made of JSON texts")
}

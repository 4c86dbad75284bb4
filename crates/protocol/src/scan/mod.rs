//! One pass over a JSON text: checks all of it and notes where the routing fields stand.
//!
//! Own code because `serde_json` does not report positions, which are needed to change an id and
//! forward the other bytes as they are.
//!
//! The pass accepts the grammar of RFC 8259 as `serde_json` reads it and no more (a property test
//! holds the two together), nested no deeper than [`DEPTH_MAX`]. Only the objects that can hold a
//! routing field are looked into by name; anything else is passed over without recursion.

mod grammar;
#[cfg(test)]
mod tests;

use crate::{malformed::MalformedFrame, quote::unquote};
use grammar::{JsonScanner, ScanStep};

/// More than any real message needs; readers behind us give up at about the same depth.
pub(crate) const DEPTH_MAX: u32 = 128;

/// The position of a value. No value is empty, so an empty span means that it is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TextSpan {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl TextSpan {
    #[expect(clippy::cast_possible_truncation, reason = "longer texts are refused up front")]
    pub(crate) fn new(start: usize, end: usize) -> TextSpan {
        TextSpan { start: start as u32, end: end as u32 }
    }

    pub(crate) fn is_some(self) -> bool {
        self.start < self.end
    }

    /// The text of the value, if it is there.
    pub(crate) fn of(self, text: &[u8]) -> Option<&[u8]> {
        self.is_some().then(|| &text[self.start as usize..self.end as usize])
    }
}

/// The fields that decide the route of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoutingSlot {
    Id,
    Method,
    Params,
    Result,
    Error,
    SessionId,
    RequestId,
    Update,
    Meta,
    SessionUpdate,
    Jackfield,
    ResultSessionId,
    OuterSessionId,
    Pool,
    AgentId,
}

impl RoutingSlot {
    const COUNT: usize = RoutingSlot::AgentId as usize + 1;

    /// How the field is written, for error messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RoutingSlot::Id => "id",
            RoutingSlot::Method => "method",
            RoutingSlot::Params => "params",
            RoutingSlot::Result => "result",
            RoutingSlot::Error => "error",
            RoutingSlot::SessionId => "params.sessionId",
            RoutingSlot::RequestId => "params.requestId",
            RoutingSlot::Update => "params.update",
            RoutingSlot::Meta => "params._meta",
            RoutingSlot::SessionUpdate => "params.update.sessionUpdate",
            RoutingSlot::Jackfield => "params._meta.jackfield",
            RoutingSlot::ResultSessionId => "result.sessionId",
            RoutingSlot::OuterSessionId => "sessionId",
            RoutingSlot::Pool => "pool",
            RoutingSlot::AgentId => "agentId",
        }
    }

    /// The object to look into when this field's value is one.
    fn scope(self) -> Option<ObjectScope> {
        match self {
            RoutingSlot::Params => Some(ObjectScope::Params),
            RoutingSlot::Result => Some(ObjectScope::Result),
            RoutingSlot::Update => Some(ObjectScope::Update),
            RoutingSlot::Meta => Some(ObjectScope::Meta),
            _ => None,
        }
    }
}

/// An object that can hold routing fields.
#[derive(Debug, Clone, Copy)]
enum ObjectScope {
    Envelope,
    Params,
    Result,
    Update,
    Meta,
}

impl ObjectScope {
    fn slot(self, key: &[u8]) -> Option<RoutingSlot> {
        let slot = match self {
            ObjectScope::Envelope => match key {
                b"id" => RoutingSlot::Id,
                b"method" => RoutingSlot::Method,
                b"params" => RoutingSlot::Params,
                b"result" => RoutingSlot::Result,
                b"error" => RoutingSlot::Error,
                b"sessionId" => RoutingSlot::OuterSessionId,
                b"pool" => RoutingSlot::Pool,
                b"agentId" => RoutingSlot::AgentId,
                _ => return None,
            },
            ObjectScope::Params => match key {
                b"sessionId" => RoutingSlot::SessionId,
                b"requestId" => RoutingSlot::RequestId,
                b"update" => RoutingSlot::Update,
                b"_meta" => RoutingSlot::Meta,
                _ => return None,
            },
            ObjectScope::Result if key == b"sessionId" => RoutingSlot::ResultSessionId,
            ObjectScope::Update if key == b"sessionUpdate" => RoutingSlot::SessionUpdate,
            ObjectScope::Meta if key == b"jackfield" => RoutingSlot::Jackfield,
            ObjectScope::Result | ObjectScope::Update | ObjectScope::Meta => return None,
        };
        Some(slot)
    }
}

/// The result of a pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct ScanResult {
    spans: [TextSpan; RoutingSlot::COUNT],
    /// A bit for each slot whose value is a string with escapes in it.
    escaped: u16,
    /// Raw line breaks stand between the tokens.
    pub(crate) has_line_breaks: bool,
    twice: Option<&'static str>,
}

impl ScanResult {
    pub(crate) fn span(&self, slot: RoutingSlot) -> TextSpan {
        self.spans[slot as usize]
    }

    pub(crate) fn is_escaped(&self, slot: RoutingSlot) -> bool {
        self.escaped & 1 << slot as u16 != 0
    }
}

/// Reads a whole message.
pub(crate) fn scan(text: &str) -> Result<ScanResult, MalformedFrame> {
    if u32::try_from(text.len()).is_err() {
        return Err(MalformedFrame::TooLong);
    }
    let mut scanner = JsonScanner::new(text);
    scanner.space();
    let is_object = scanner.peek() == b'{';
    let value = if is_object { scanner.object(ObjectScope::Envelope, 0) } else { scanner.skip(0) };
    if value.and_then(|()| scanner.end()).is_err() {
        return Err(scanner.wrong);
    }
    // Only now: what is no JSON at all is reported as that.
    if !is_object {
        return Err(MalformedFrame::NotAnObject);
    }
    match scanner.found.twice {
        Some(key) => Err(MalformedFrame::Twice { key }),
        None => Ok(scanner.found),
    }
}

/// Where the value of `jackfield` stands in the text of a `_meta` object.
pub(crate) fn jackfield_in(meta: &str) -> TextSpan {
    let mut scanner = JsonScanner::new(meta);
    match scanner.object(ObjectScope::Meta, 0) {
        Ok(()) => scanner.found.span(RoutingSlot::Jackfield),
        Err(_) => TextSpan::default(),
    }
}

/// Whether `text` is one JSON value on one line, and no space around it.
pub(crate) fn is_value(text: &str) -> bool {
    let mut scanner = JsonScanner::new(text);
    scanner.skip(0).is_ok() && scanner.at == text.len() && !scanner.found.has_line_breaks
}

/// Whether `text` may stand as a JSON-RPC id: a number, a string or null, and no space around it.
pub(crate) fn is_id(text: &str) -> bool {
    let mut scanner = JsonScanner::new(text);
    matches!(scanner.peek(), b'"' | b'-' | b'0'..=b'9' | b'n')
        && scanner.scalar().is_ok()
        && scanner.at == text.len()
}

impl JsonScanner<'_> {
    /// Reads an object by name, from its `{` on. Recursion ends with the scopes: three deep.
    fn object(&mut self, scope: ObjectScope, depth: u32) -> ScanStep {
        self.eat(b'{', "`{`")?;
        self.space();
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            let slot = self.key(scope)?;
            let start = self.at;
            let mut escaped = false;
            match (self.peek(), slot.and_then(RoutingSlot::scope)) {
                (b'"', _) => escaped = self.string("a string")?,
                (b'{', Some(inner)) => self.object(inner, depth + 1)?,
                _ => self.skip(depth + 1)?,
            }
            if let Some(slot) = slot {
                self.note(slot, start, escaped);
            }
            self.space();
            match self.peek() {
                b',' => self.at += 1,
                b'}' => break,
                _ => return self.expected("`,` or `}`"),
            }
            self.space();
        }
        self.at += 1;
        Ok(())
    }

    /// Reads a key and its colon, up to the value.
    fn key(&mut self, scope: ObjectScope) -> ScanStep<Option<RoutingSlot>> {
        let start = self.at;
        let escaped = self.string("a key")?;
        let end = self.at;
        self.colon()?;
        if escaped {
            let key = unquote(&self.text[start..end]);
            return Ok(key.and_then(|key| scope.slot(key.as_bytes())));
        }
        Ok(scope.slot(&self.bytes[start + 1..end - 1]))
    }

    fn note(&mut self, slot: RoutingSlot, start: usize, escaped: bool) {
        let span = &mut self.found.spans[slot as usize];
        if span.is_some() {
            self.found.twice = Some(slot.name());
        }
        *span = TextSpan::new(start, self.at);
        self.found.escaped |= u16::from(escaped) << slot as u16;
    }
}

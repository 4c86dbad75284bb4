//! One pass over a JSON text: checks all of it and notes where the routing fields stand.
//!
//! The pass accepts the grammar of RFC 8259 as `serde_json` reads it and no more (a property test
//! holds the two together), nested no deeper than [`DEPTH_MAX`]. Only the objects that can hold a
//! routing field are looked into by name; anything else is passed over without recursion.

mod grammar;
#[cfg(test)]
mod tests;

use crate::{malformed::Malformed, quote::unquote};
use grammar::{Scanner, Step};

/// More than any real message needs; readers behind us give up at about the same depth.
pub(crate) const DEPTH_MAX: u32 = 128;

/// Where a value's text stands. No value is empty, so an empty span says "not there".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    #[expect(clippy::cast_possible_truncation, reason = "longer texts are refused up front")]
    pub(crate) fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    pub(crate) fn is_some(self) -> bool {
        self.start < self.end
    }

    /// The text of the value, if it is there.
    pub(crate) fn of(self, text: &[u8]) -> Option<&[u8]> {
        self.is_some().then(|| &text[self.start as usize..self.end as usize])
    }
}

/// The fields the hub and the bus route on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slot {
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

impl Slot {
    const COUNT: usize = Slot::AgentId as usize + 1;

    /// How the field is written, for error messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Slot::Id => "id",
            Slot::Method => "method",
            Slot::Params => "params",
            Slot::Result => "result",
            Slot::Error => "error",
            Slot::SessionId => "params.sessionId",
            Slot::RequestId => "params.requestId",
            Slot::Update => "params.update",
            Slot::Meta => "params._meta",
            Slot::SessionUpdate => "params.update.sessionUpdate",
            Slot::Jackfield => "params._meta.jackfield",
            Slot::ResultSessionId => "result.sessionId",
            Slot::OuterSessionId => "sessionId",
            Slot::Pool => "pool",
            Slot::AgentId => "agentId",
        }
    }

    /// The object to look into when this field's value is one.
    fn scope(self) -> Option<Scope> {
        match self {
            Slot::Params => Some(Scope::Params),
            Slot::Result => Some(Scope::Result),
            Slot::Update => Some(Scope::Update),
            Slot::Meta => Some(Scope::Meta),
            _ => None,
        }
    }
}

/// An object that can hold routing fields.
#[derive(Debug, Clone, Copy)]
enum Scope {
    Envelope,
    Params,
    Result,
    Update,
    Meta,
}

impl Scope {
    fn slot(self, key: &[u8]) -> Option<Slot> {
        let slot = match self {
            Scope::Envelope => match key {
                b"id" => Slot::Id,
                b"method" => Slot::Method,
                b"params" => Slot::Params,
                b"result" => Slot::Result,
                b"error" => Slot::Error,
                b"sessionId" => Slot::OuterSessionId,
                b"pool" => Slot::Pool,
                b"agentId" => Slot::AgentId,
                _ => return None,
            },
            Scope::Params => match key {
                b"sessionId" => Slot::SessionId,
                b"requestId" => Slot::RequestId,
                b"update" => Slot::Update,
                b"_meta" => Slot::Meta,
                _ => return None,
            },
            Scope::Result if key == b"sessionId" => Slot::ResultSessionId,
            Scope::Update if key == b"sessionUpdate" => Slot::SessionUpdate,
            Scope::Meta if key == b"jackfield" => Slot::Jackfield,
            Scope::Result | Scope::Update | Scope::Meta => return None,
        };
        Some(slot)
    }
}

/// What a pass found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    spans: [Span; Slot::COUNT],
    /// A bit for each slot whose value is a string with escapes in it.
    escaped: u16,
    /// Raw line breaks stand between the tokens.
    pub(crate) has_line_breaks: bool,
    twice: Option<&'static str>,
}

impl Found {
    pub(crate) fn span(&self, slot: Slot) -> Span {
        self.spans[slot as usize]
    }

    pub(crate) fn is_escaped(&self, slot: Slot) -> bool {
        self.escaped & 1 << slot as u16 != 0
    }
}

/// Reads a whole message.
pub(crate) fn scan(text: &str) -> Result<Found, Malformed> {
    if u32::try_from(text.len()).is_err() {
        return Err(Malformed::TooLong);
    }
    let mut scanner = Scanner::new(text);
    scanner.space();
    let is_object = scanner.peek() == b'{';
    let value = if is_object { scanner.object(Scope::Envelope, 0) } else { scanner.skip(0) };
    if value.and_then(|()| scanner.end()).is_err() {
        return Err(scanner.wrong);
    }
    // Only now: what is no JSON at all is reported as that.
    if !is_object {
        return Err(Malformed::NotAnObject);
    }
    match scanner.found.twice {
        Some(key) => Err(Malformed::Twice { key }),
        None => Ok(scanner.found),
    }
}

/// Where the value of `jackfield` stands in the text of a `_meta` object.
pub(crate) fn jackfield_in(meta: &str) -> Span {
    let mut scanner = Scanner::new(meta);
    match scanner.object(Scope::Meta, 0) {
        Ok(()) => scanner.found.span(Slot::Jackfield),
        Err(_) => Span::default(),
    }
}

/// Whether `text` is one JSON value on one line, and no space around it.
pub(crate) fn is_value(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    scanner.skip(0).is_ok() && scanner.at == text.len() && !scanner.found.has_line_breaks
}

/// Whether `text` may stand as a JSON-RPC id: a number, a string or null, and no space around it.
pub(crate) fn is_id(text: &str) -> bool {
    let mut scanner = Scanner::new(text);
    matches!(scanner.peek(), b'"' | b'-' | b'0'..=b'9' | b'n')
        && scanner.scalar().is_ok()
        && scanner.at == text.len()
}

impl Scanner<'_> {
    /// Reads an object by name, from its `{` on. Recursion ends with the scopes: three deep.
    fn object(&mut self, scope: Scope, depth: u32) -> Step {
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
            match (self.peek(), slot.and_then(Slot::scope)) {
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
    fn key(&mut self, scope: Scope) -> Step<Option<Slot>> {
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

    fn note(&mut self, slot: Slot, start: usize, escaped: bool) {
        let span = &mut self.found.spans[slot as usize];
        if span.is_some() {
            self.found.twice = Some(slot.name());
        }
        *span = Span::new(start, self.at);
        self.found.escaped |= u16::from(escaped) << slot as u16;
    }
}

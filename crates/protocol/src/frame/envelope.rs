//! The rules of the envelope: which fields make which kind of frame.

use crate::{
    malformed::Malformed,
    quote::unquote,
    scan::{Found, Slot, Span},
};

/// Ids are kept as long as a request is open, in several places: a number or a UUID has at most 38 bytes.
const ID_BYTES_MAX: usize = 1024;

/// Where the routing fields stand, and what they make of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) shape: Shape,
    /// One of the names below is written with escapes.
    pub(crate) has_escapes: bool,
    pub(crate) id: Span,
    pub(crate) method: Span,
    /// The params of a call; the result or the error of a response.
    pub(crate) body: Span,
    pub(crate) session_id: Span,
    pub(crate) request_id: Span,
    pub(crate) update: Span,
    pub(crate) meta: Span,
    /// Beside `params`, where clients of a bus put it.
    pub(crate) outer_session_id: Span,
    pub(crate) pool: Span,
}

/// [`Kind`], with the two responses told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Request,
    Notification,
    Result,
    Error,
}

impl Fields {
    /// The envelope rules.
    pub(super) fn new(text: &str, found: &Found) -> Result<Fields, Malformed> {
        let json = |slot| found.span(slot).of(text.as_bytes());
        if json(Slot::Id).is_some_and(|id| !may_be_id(id)) {
            return Err(Malformed::WrongType { key: "id", expected: "a number, a string or null" });
        }
        if json(Slot::Id).is_some_and(|id| ID_BYTES_MAX < id.len()) {
            return Err(Malformed::WrongType { key: "id", expected: "at most 1024 bytes long" });
        }
        if json(Slot::Method).is_some_and(|method| !method.starts_with(b"\"")) {
            return Err(Malformed::WrongType { key: "method", expected: "a string" });
        }
        let method = found.span(Slot::Method);
        let (result, error) = (json(Slot::Result), json(Slot::Error));
        let is_call = method.is_some() && result.is_none() && error.is_none();
        let shape = match (json(Slot::Id).is_some(), result, error) {
            (true, _, _) if is_call => Shape::Request,
            (false, _, _) if is_call => Shape::Notification,
            _ if method.is_some() => return Err(Malformed::NoKind),
            // Some agents always send both keys, the unused one as null.
            (true, Some(_), None | Some(b"null")) => Shape::Result,
            (true, None | Some(b"null"), Some(error)) if error != b"null" => Shape::Error,
            _ => return Err(Malformed::NoKind),
        };
        let mut fields = Fields {
            shape,
            has_escapes: false,
            id: found.span(Slot::Id),
            method: Span::default(),
            body: Span::default(),
            session_id: Span::default(),
            request_id: Span::default(),
            update: Span::default(),
            meta: Span::default(),
            outer_session_id: Span::default(),
            pool: Span::default(),
        };
        fields.outer_session_id = fields.name(text, found, Slot::OuterSessionId)?;
        fields.pool = fields.name(text, found, Slot::Pool)?;
        if !fields.pool.is_some() {
            fields.pool = fields.name(text, found, Slot::AgentId)?;
        }
        match shape {
            Shape::Request | Shape::Notification => {
                fields.method = fields.name(text, found, Slot::Method)?;
                fields.body = found.span(Slot::Params);
                fields.session_id = fields.name(text, found, Slot::SessionId)?;
                fields.request_id = found.span(Slot::RequestId);
                fields.update = fields.name(text, found, Slot::SessionUpdate)?;
                fields.meta = found.span(Slot::Meta);
            }
            Shape::Result => {
                fields.body = found.span(Slot::Result);
                fields.session_id = fields.name(text, found, Slot::ResultSessionId)?;
            }
            Shape::Error => fields.body = found.span(Slot::Error),
        }
        Ok(fields)
    }

    /// Where a string stands that names something; nowhere if the value is no string. It must be
    /// text: half a surrogate pair would be read differently by everyone.
    fn name(&mut self, text: &str, found: &Found, slot: Slot) -> Result<Span, Malformed> {
        let span = found.span(slot);
        if span.of(text.as_bytes()).is_none_or(|json| json[0] != b'"') {
            return Ok(Span::default());
        }
        if found.is_escaped(slot) {
            self.has_escapes = true;
            if unquote(&text[span.start as usize..span.end as usize]).is_none() {
                return Err(Malformed::WrongType { key: slot.name(), expected: "Unicode text" });
            }
        }
        Ok(span)
    }

    /// Every span, for those who move text about.
    pub(crate) fn spans_mut(&mut self) -> [&mut Span; 9] {
        [
            &mut self.id,
            &mut self.method,
            &mut self.body,
            &mut self.session_id,
            &mut self.request_id,
            &mut self.update,
            &mut self.meta,
            &mut self.outer_session_id,
            &mut self.pool,
        ]
    }
}

/// By the first byte alone: the scanner has seen that the value is whole.
fn may_be_id(json: &[u8]) -> bool {
    matches!(json[0], b'"' | b'-' | b'0'..=b'9' | b'n')
}

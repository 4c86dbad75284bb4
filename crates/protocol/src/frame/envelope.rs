//! The rules of the envelope: which fields make which kind of frame.

use crate::{
    malformed::MalformedFrame,
    quote::unquote,
    scan::{RoutingSlot, ScanResult, TextSpan},
};

/// Ids are kept as long as a request is open, in several places: a number or a UUID has at most 38 bytes.
const ID_BYTES_MAX: usize = 1024;

/// The positions of the routing fields, and the shape of the frame that follows from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoutingFields {
    pub(crate) shape: FrameShape,
    /// One of the names below is written with escapes.
    pub(crate) has_escapes: bool,
    /// `pool` is the position of `agentId`.
    pub(crate) is_pool_agent_id: bool,
    pub(crate) id: TextSpan,
    pub(crate) method: TextSpan,
    /// The params of a call; the result or the error of a response.
    pub(crate) body: TextSpan,
    pub(crate) session_id: TextSpan,
    pub(crate) request_id: TextSpan,
    pub(crate) update: TextSpan,
    pub(crate) meta: TextSpan,
    /// Beside `params`, where clients of a bus put it.
    pub(crate) outer_session_id: TextSpan,
    /// `pool`, or `agentId` if there is no `pool`.
    pub(crate) pool: TextSpan,
}

/// [`Kind`], with results and errors distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameShape {
    Request,
    Notification,
    Result,
    Error,
}

impl RoutingFields {
    /// The envelope rules.
    pub(super) fn new(text: &str, found: &ScanResult) -> Result<RoutingFields, MalformedFrame> {
        let json = |slot| found.span(slot).of(text.as_bytes());
        if json(RoutingSlot::Id).is_some_and(|id| !may_be_id(id)) {
            return Err(MalformedFrame::WrongType {
                key: "id",
                expected: "a number, a string or null",
            });
        }
        if json(RoutingSlot::Id).is_some_and(|id| ID_BYTES_MAX < id.len()) {
            return Err(MalformedFrame::WrongType {
                key: "id",
                expected: "at most 1024 bytes long",
            });
        }
        if json(RoutingSlot::Method).is_some_and(|method| !method.starts_with(b"\"")) {
            return Err(MalformedFrame::WrongType { key: "method", expected: "a string" });
        }
        let method = found.span(RoutingSlot::Method);
        let (result, error) = (json(RoutingSlot::Result), json(RoutingSlot::Error));
        let is_call = method.is_some() && result.is_none() && error.is_none();
        let shape = match (json(RoutingSlot::Id).is_some(), result, error) {
            (true, _, _) if is_call => FrameShape::Request,
            (false, _, _) if is_call => FrameShape::Notification,
            _ if method.is_some() => return Err(MalformedFrame::NoKind),
            // Some agents always send both keys, the unused one as null.
            (true, Some(_), None | Some(b"null")) => FrameShape::Result,
            (true, None | Some(b"null"), Some(error)) if error != b"null" => FrameShape::Error,
            _ => return Err(MalformedFrame::NoKind),
        };
        let mut fields = RoutingFields {
            shape,
            has_escapes: false,
            is_pool_agent_id: false,
            id: found.span(RoutingSlot::Id),
            method: TextSpan::default(),
            body: TextSpan::default(),
            session_id: TextSpan::default(),
            request_id: TextSpan::default(),
            update: TextSpan::default(),
            meta: TextSpan::default(),
            outer_session_id: TextSpan::default(),
            pool: TextSpan::default(),
        };
        fields.outer_session_id = fields.name(text, found, RoutingSlot::OuterSessionId)?;
        fields.pool = fields.name(text, found, RoutingSlot::Pool)?;
        if !fields.pool.is_some() {
            fields.pool = fields.name(text, found, RoutingSlot::AgentId)?;
            fields.is_pool_agent_id = fields.pool.is_some();
        }
        match shape {
            FrameShape::Request | FrameShape::Notification => {
                fields.method = fields.name(text, found, RoutingSlot::Method)?;
                fields.body = found.span(RoutingSlot::Params);
                fields.session_id = fields.name(text, found, RoutingSlot::SessionId)?;
                fields.request_id = found.span(RoutingSlot::RequestId);
                fields.update = fields.name(text, found, RoutingSlot::SessionUpdate)?;
                fields.meta = found.span(RoutingSlot::Meta);
            }
            FrameShape::Result => {
                fields.body = found.span(RoutingSlot::Result);
                fields.session_id = fields.name(text, found, RoutingSlot::ResultSessionId)?;
            }
            FrameShape::Error => fields.body = found.span(RoutingSlot::Error),
        }
        Ok(fields)
    }

    /// Where a string stands that names something; nowhere if the value is no string. It must be
    /// text: half a surrogate pair would be read differently by everyone.
    fn name(
        &mut self,
        text: &str,
        found: &ScanResult,
        slot: RoutingSlot,
    ) -> Result<TextSpan, MalformedFrame> {
        let span = found.span(slot);
        if span.of(text.as_bytes()).is_none_or(|json| json[0] != b'"') {
            return Ok(TextSpan::default());
        }
        if found.is_escaped(slot) {
            self.has_escapes = true;
            if unquote(&text[span.start as usize..span.end as usize]).is_none() {
                return Err(MalformedFrame::WrongType {
                    key: slot.name(),
                    expected: "Unicode text",
                });
            }
        }
        Ok(span)
    }

    /// Every span, for those who move text about.
    pub(crate) fn spans_mut(&mut self) -> [&mut TextSpan; 9] {
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

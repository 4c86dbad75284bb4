//! The handshake of a client, `_jackfield/connect` and `initialize`. The gateway sends it on each
//! host connection and forwards the responses of the default host.

use crate::gateway::frame_fields::parse_params;
use jackfield_hub::wants_notices;
use jackfield_protocol::Frame;

/// A frame of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandshakeStep {
    Connect,
    Initialize,
}

/// The handshake as a client has sent it.
#[derive(Debug, Default)]
pub(super) struct ClientHandshake {
    frames: [Option<Frame>; 2],
    /// The client's ids of the frames that are not answered.
    pending_ids: [Option<Box<str>>; 2],
}

/// The handshake on one host connection.
#[derive(Debug, Default)]
pub(super) struct HandshakeProgress {
    sent: [bool; 2],
    responses: [Option<Frame>; 2],
    /// The host must receive the handshake: the connection carries more than requests to all hosts.
    is_required: bool,
}

impl HandshakeStep {
    pub(super) const ALL: [HandshakeStep; 2] = [HandshakeStep::Connect, HandshakeStep::Initialize];

    fn index(self) -> usize {
        match self {
            HandshakeStep::Connect => 0,
            HandshakeStep::Initialize => 1,
        }
    }
}

impl ClientHandshake {
    /// Sets a frame, and the id under which the client gets the response.
    pub(super) fn set_frame(&mut self, step: HandshakeStep, frame: &Frame, id: Option<&str>) {
        self.frames[step.index()] = Some(frame.clone());
        if let Some(id) = id {
            self.pending_ids[step.index()] = Some(id.into());
        }
    }

    pub(super) fn frame(&self, step: HandshakeStep) -> Option<&Frame> {
        self.frames[step.index()].as_ref()
    }

    /// The client's id of a frame that is not answered.
    pub(super) fn pending_id(&self, step: HandshakeStep) -> Option<&str> {
        self.pending_ids[step.index()].as_deref()
    }

    /// The client may use this id again.
    pub(super) fn release_id(&mut self, id: &str) {
        for pending in &mut self.pending_ids {
            pending.take_if(|it| **it == *id);
        }
    }

    /// The name in `initialize`.
    pub(super) fn client_name(&self) -> Option<String> {
        let params = parse_params(self.frame(HandshakeStep::Initialize)?)?;
        params.pointer("/clientInfo/name")?.as_str().map(str::to_owned)
    }

    /// Whether the client accepts `_jackfield/*` notifications, as hosts derive it from
    /// `initialize`.
    pub(super) fn wants_notifications(&self) -> bool {
        let params = self.frame(HandshakeStep::Initialize).and_then(parse_params);
        wants_notices(&params.unwrap_or_default())
    }
}

impl HandshakeProgress {
    /// The client has sent a frame of the handshake, perhaps again. Returns whether the host must
    /// receive it.
    pub(super) fn reset_step(&mut self, step: HandshakeStep) -> bool {
        (self.sent[step.index()], self.responses[step.index()]) = (false, None);
        self.is_required
    }

    pub(super) fn mark_required(&mut self) {
        self.is_required = true;
    }

    /// Marks a frame as sent. Returns whether it was not sent before.
    pub(super) fn mark_sent(&mut self, step: HandshakeStep) -> bool {
        !std::mem::replace(&mut self.sent[step.index()], true)
    }

    pub(super) fn set_response(&mut self, step: HandshakeStep, response: &Frame) {
        self.responses[step.index()] = Some(response.clone());
    }

    pub(super) fn response(&self, step: HandshakeStep) -> Option<&Frame> {
        self.responses[step.index()].as_ref()
    }
}

//! Frames from the client.

use super::{ClientConnection, RequestTarget, handshake::HandshakeStep};
use crate::gateway::{
    client_action::ClientAction, frame_fields::session_of, output::GatewayOutput,
    parts::GatewayParts, pending_merges::MergedRequest, tenant::TenantBinding,
};
use jackfield_hub::SessionId;
use jackfield_protocol::{
    Fault, Frame, Kind,
    acp::{GatewayRoute, Method},
};

impl ClientConnection {
    pub(in crate::gateway) fn on_client_frame(&mut self, parts: &mut GatewayParts, frame: &Frame) {
        if self.relay.is_closing() {
            return;
        }
        parts.cx.count_received(frame);
        match frame.kind() {
            Kind::Request => self.on_client_request(parts, frame),
            Kind::Notification => self.on_client_notification(parts, frame),
            Kind::Response => self.on_client_response(parts, frame),
        }
    }

    /// Answers a line that is not a JSON-RPC message. The connection stays open.
    pub(in crate::gateway) fn answer_invalid_frame(
        &mut self,
        parts: &mut GatewayParts,
        fault: &Fault,
    ) {
        self.send_own_frame(parts, &Frame::error_for(fault.request_id(), fault));
    }

    fn on_client_request(&mut self, parts: &mut GatewayParts, frame: &Frame) {
        if let Err(fault) = self.check_request(parts, frame) {
            return self.refuse_request(parts, frame, &fault);
        }
        let method = frame.known_method();
        let route = method.map_or(GatewayRoute::Owner, |it| it.row().route);
        if let Some(kind) = method.and_then(MergedRequest::from_method) {
            return self.send_to_all_hosts(parts, frame, kind);
        }
        match (route, method, session_of(frame)) {
            (GatewayRoute::Opening, Some(Method::ControlConnect), _) => {
                self.on_handshake(parts, frame, HandshakeStep::Connect);
            }
            // The hub refuses any further `initialize`.
            (GatewayRoute::Opening, _, _) if self.is_first_initialize() => {
                self.on_handshake(parts, frame, HandshakeStep::Initialize);
            }
            // A client of a fleet cannot stop a host, and is not a gateway.
            (GatewayRoute::Refused, _, _) => {
                let method = frame.method().unwrap_or_default().into_owned();
                self.refuse_request(parts, frame, &Fault::NotServed { method });
            }
            // An import that names a session continues on the host of this session.
            (GatewayRoute::Placed, Some(Method::ControlImport), Some(session)) => {
                self.on_session_request(parts, &session, frame);
            }
            (GatewayRoute::Placed, _, _) => {
                self.place_new_request(parts, frame, RequestTarget::NewSession);
            }
            (_, _, Some(session)) => self.on_session_request(parts, &session, frame),
            (_, _, None) => self.place_new_request(parts, frame, RequestTarget::DefaultHost),
        }
    }

    fn check_request(&self, parts: &GatewayParts, frame: &Frame) -> Result<(), Fault> {
        self.tenant.check_session_visible(frame)?;
        let limits = parts.cx.limits();
        if limits.pending_max <= self.requests.len() {
            let what = format!("{} requests in flight", self.requests.len());
            return Err(Fault::Overloaded { what });
        }
        if frame.id().is_some_and(|it| self.requests.contains(it)) {
            let why = "this id is in use by an open request".to_owned();
            return Err(Fault::InvalidRequest { why });
        }
        parts.retained.check_frame(limits, self.conn, frame)
    }

    /// Refuses a request that is not registered. `send_error` would end the pending request with
    /// the same id.
    fn refuse_request(&mut self, parts: &mut GatewayParts, frame: &Frame, fault: &Fault) {
        let id = frame.id().unwrap_or("null");
        self.send_own_frame(parts, &Frame::error_for(id, fault));
        self.note_unrouted(parts, frame, fault);
    }

    /// Handles a request about a session.
    fn on_session_request(&mut self, parts: &mut GatewayParts, session: &SessionId, frame: &Frame) {
        let waiting_max = parts.cx.limits().waiting_max;
        match self.sessions.check_waiting_limit(session, waiting_max) {
            Ok(()) => self.send_session_request(parts, session, frame),
            Err(fault) => self.refuse_request(parts, frame, &fault),
        }
    }

    fn on_client_notification(&mut self, parts: &mut GatewayParts, frame: &Frame) {
        if let Err(fault) = self.tenant.check_session_visible(frame) {
            return self.note_unrouted(parts, frame, &fault);
        }
        match (frame.known_method(), session_of(frame)) {
            (Some(Method::ControlTenant), _) => self.bind_tenant(parts, frame),
            (Some(Method::CancelRequest), _) => self.on_client_cancel(parts, frame),
            (Some(Method::ControlConnect), _) => {
                self.on_handshake(parts, frame, HandshakeStep::Connect);
            }
            (Some(Method::ControlRelay), _) => {}
            (method, Some(session)) => {
                if method == Some(Method::SessionCancel) {
                    self.requests.mark_prompts_cancelled(&session);
                }
                self.send_session_notification(parts, &session, frame);
            }
            (_, None) => {
                let Some(host_conn) = self.relay.default_id() else {
                    let why = "send `initialize` first".to_owned();
                    return self.note_unrouted(parts, frame, &Fault::NoHost { why });
                };
                self.relay.send_to_host(&mut parts.cx, host_conn, frame.bytes().clone());
            }
        }
    }

    /// Binds a client that has not sent anything else yet. If the binding is invalid the client is
    /// closed, since it must not continue with the operator's rights.
    fn bind_tenant(&mut self, parts: &mut GatewayParts, frame: &Frame) {
        if self.tenant.tenant().is_some() || self.relay.has_host_connections() {
            return;
        }
        let Some(binding) = TenantBinding::parse(frame) else { return self.close_client(parts) };
        self.tenant = binding;
        if let Some(name) = self.tenant.name() {
            parts.client_counts.bind_client(name);
        }
    }

    /// The client cancels its own request. The id is translated.
    fn on_client_cancel(&mut self, parts: &mut GatewayParts, frame: &Frame) {
        let Some(id) = frame.request_id() else { return };
        // Without a request, the response was already sent.
        let Some(request) = self.requests.get_mut(id) else { return };
        match request.sent() {
            Some((host_conn, host_request_id)) => {
                request.set_cancelled();
                self.relay.cancel_request(&mut parts.cx, host_conn, host_request_id);
            }
            // It was not sent to any host, so there is nothing to cancel there.
            None if *request.target() != RequestTarget::AllHosts => {
                self.send_error(parts, id, &Fault::Cancelled);
            }
            None => {}
        }
    }

    /// Forwards the client's response to the host.
    fn on_client_response(&mut self, parts: &mut GatewayParts, frame: &Frame) {
        let Some(request) = self.forwarded.take_answered(frame) else {
            return parts.cx.count_stray();
        };
        if !request.is_exclusive() {
            let session = request.session().cloned();
            let action =
                ClientAction::from_choice(self.identity(), request.method(), session, frame);
            parts.cx.push_output(GatewayOutput::ClientAction(action));
        }
        let answer = frame.with_id(request.host_request_id());
        self.relay.send_to_host(&mut parts.cx, request.host_conn(), answer.into_bytes());
    }
}

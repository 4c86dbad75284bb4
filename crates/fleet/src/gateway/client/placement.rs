//! Requests for which a host is chosen: new sessions, the handshake, and requests that concern no
//! session.

use super::{ClientConnection, RequestTarget, handshake::HandshakeStep};
use crate::gateway::{
    context::GatewayTimer, host_connection_id::HostConnectionId, host_directory::PlacementError,
    output::GatewayNote, parts::GatewayParts, placement_request::PlacementRequest,
};
use jackfield_protocol::{Fault, Frame, Kind, acp::Method};

impl ClientConnection {
    /// Whether an `initialize` is the first one.
    pub(super) fn is_first_initialize(&self) -> bool {
        self.relay.default_id().is_none()
            || self.handshake.frame(HandshakeStep::Initialize).is_none()
    }

    pub(super) fn on_handshake(
        &mut self,
        parts: &mut GatewayParts,
        frame: &Frame,
        step: HandshakeStep,
    ) {
        let id = frame.id().filter(|_| frame.kind() == Kind::Request);
        self.handshake.set_frame(step, frame, id);
        if id.is_some() {
            self.register_request(parts, frame.clone(), RequestTarget::Handshake);
        }
        self.relay.resend_handshake(&mut parts.cx, &self.handshake, step);
        if let Some(id) = id {
            self.place_request(parts, id);
        }
    }

    pub(super) fn place_new_request(
        &mut self,
        parts: &mut GatewayParts,
        frame: &Frame,
        target: RequestTarget,
    ) {
        self.register_request(parts, frame.clone(), target);
        if let Some(id) = frame.id() {
            self.place_request(parts, id);
        }
    }

    /// Sends a request to a chosen host, or queues it until one is available.
    fn place_request(&mut self, parts: &mut GatewayParts, id: &str) {
        match self.try_place(parts, id) {
            Ok(()) => {}
            Err(PlacementError::Permanent(fault)) => self.send_error(parts, id, &fault),
            Err(PlacementError::Temporary(_)) => self.queue_for_placement(parts, id),
        }
    }

    fn queue_for_placement(&mut self, parts: &mut GatewayParts, id: &str) {
        let Some(request) = self.requests.get_mut(id) else { return };
        let since = request.start_waiting(parts.cx.now());
        self.unplaced.push_back((id.into(), since));
        let due = since.plus(parts.cx.limits().owner_wait_ms);
        parts.cx.set_timer(due, GatewayTimer::PlacementWait(self.conn));
    }

    /// The host of a request is lost: chooses another after a delay, since the same one may be the
    /// only one.
    pub(super) fn retry_placement(&mut self, parts: &mut GatewayParts, id: &str) {
        parts.placed.remove_request(self.conn, id);
        self.queue_for_placement(parts, id);
        let due = parts.cx.now().plus(parts.cx.limits().retry_ms);
        parts.cx.set_timer(due, GatewayTimer::RetryPlacement(self.conn));
    }

    /// Chooses hosts for the queued requests again.
    pub(in crate::gateway) fn place_queued(&mut self, parts: &mut GatewayParts) {
        for (id, since) in std::mem::take(&mut self.unplaced) {
            if !self.requests.contains(&id) {
                continue;
            }
            match self.try_place(parts, &id) {
                Ok(()) => {}
                Err(PlacementError::Permanent(fault)) => self.send_error(parts, &id, &fault),
                Err(PlacementError::Temporary(_)) => self.unplaced.push_back((id, since)),
            }
        }
    }

    /// Fails queued requests that waited too long.
    pub(in crate::gateway) fn expire_unplaced(&mut self, parts: &mut GatewayParts) {
        self.place_queued(parts);
        let owner_wait_ms = parts.cx.limits().owner_wait_ms;
        while let Some((_, since)) = self.unplaced.front() {
            let due = since.plus(owner_wait_ms);
            if parts.cx.now() < due {
                return parts.cx.set_timer(due, GatewayTimer::PlacementWait(self.conn));
            }
            let Some((id, _)) = self.unplaced.pop_front() else { return };
            let fault = match self.try_place(parts, &id) {
                Ok(()) => continue,
                Err(PlacementError::Permanent(fault)) => fault,
                Err(PlacementError::Temporary(why)) => Fault::NoHost { why: why.to_owned() },
            };
            let (conn, reason) = (self.conn, fault.to_string());
            parts.cx.note(GatewayNote::GaveUp { conn, session: None, reason });
            self.send_error(parts, &id, &fault);
        }
    }

    fn try_place(&mut self, parts: &mut GatewayParts, id: &str) -> Result<(), PlacementError> {
        parts.placed.remove_old(parts.cx.now());
        let Some(request) = self.requests.get(id) else { return Ok(()) };
        let (target, frame) = (request.target().clone(), request.frame().clone());
        let host_conn = match (&target, self.relay.default_id()) {
            (RequestTarget::DefaultHost | RequestTarget::Handshake, Some(default_id)) => default_id,
            _ => self.connect_to_chosen_host(parts, id, &frame, &target)?,
        };
        if target == RequestTarget::NewSession {
            self.relay.mark_session_opened();
        }
        self.relay.set_default_if_none(host_conn);
        self.relay.send_handshake(&mut parts.cx, &self.handshake, host_conn);
        match target {
            RequestTarget::Handshake => self.answer_handshake(parts),
            _ => self.send_request(parts, id, host_conn),
        }
        Ok(())
    }

    /// Chooses a host for a request and connects to it.
    fn connect_to_chosen_host(
        &mut self,
        parts: &mut GatewayParts,
        id: &str,
        frame: &Frame,
        target: &RequestTarget,
    ) -> Result<HostConnectionId, PlacementError> {
        let placement = PlacementRequest::parse(
            frame,
            self.handshake.frame(HandshakeStep::Connect),
            parts.cx.config().agent.as_ref(),
            self.relay.preferred_host().cloned(),
        )
        .map_err(PlacementError::Permanent)?;
        let opens_session = frame.is_method(Method::SessionNew);
        if opens_session {
            let tenant = self.tenant.tenant();
            let check = parts.hosts.check_session_quota(tenant, &parts.placed);
            check.map_err(PlacementError::Permanent)?;
        }
        let host = parts.hosts.choose_host(&placement, &parts.placed)?;
        if *target == RequestTarget::NewSession {
            let tenant = self.tenant.name().filter(|_| opens_session).cloned();
            parts.placed.add_session(host.clone(), tenant, (self.conn, id));
        }
        Ok(self.connect_to(parts, &host))
    }

    /// Forwards the responses of the default host to the client.
    pub(super) fn answer_handshake(&mut self, parts: &mut GatewayParts) {
        for step in HandshakeStep::ALL {
            let Some(default_id) = self.relay.default_id() else { return };
            let default_conn = self.relay.get(default_id);
            let Some(response) = default_conn.and_then(|it| it.handshake().response(step)) else {
                continue;
            };
            let Some(id) = self.handshake.pending_id(step) else { continue };
            let answer = response.with_id(id);
            self.send_response(parts, &answer, Some(default_id));
        }
    }

    /// Unsets the default host if it is on this connection. The next one answers the handshake.
    pub(super) fn clear_default_host(
        &mut self,
        parts: &mut GatewayParts,
        host_conn: HostConnectionId,
    ) {
        if self.relay.clear_default(host_conn) {
            for id in self.requests.handshake_ids() {
                self.retry_placement(parts, &id);
            }
        }
    }
}

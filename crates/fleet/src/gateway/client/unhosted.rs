//! Sessions whose host is away and that no other host may own. The gateway reads their logs from
//! the journal for observers, and soon refuses requests that manage them.

use super::{ClientConnection, pending_requests::PendingRequest, session::WaitingMessage};
use crate::gateway::{frame_fields::AttachOptions, log_readings::LogReading, parts::GatewayParts};
use jackfield_events::SessionEvent;
use jackfield_hub::SessionId;
use jackfield_protocol::{Fault, Frame, acp::Method};

/// How long a request that manages a session waits for an eligible host. A restarted host is back
/// sooner, and commands wait longer.
const UNHOSTED_WAIT_MS: u64 = 5_000;

/// Requests that manage a session. Prompts wait as long as for a lost host.
const MANAGING_METHODS: [Method; 3] =
    [Method::SessionDelete, Method::SessionClose, Method::SessionFork];

impl ClientConnection {
    /// No host may own the session at this moment.
    pub(in crate::gateway) fn on_no_eligible_host(
        &mut self,
        parts: &mut GatewayParts,
        session: &SessionId,
        why: &str,
    ) {
        let Some(it) = self.sessions.get_unbound(session) else { return };
        let (mut readings, mut refused) = (Vec::new(), Vec::new());
        for (since, message) in it.take_waiting() {
            let frame = match &message {
                WaitingMessage::Request(id) => self.requests.get(id).map(PendingRequest::frame),
                WaitingMessage::Notification(_) => None,
            };
            let is_expired = since.plus(UNHOSTED_WAIT_MS) <= parts.cx.now();
            match (message, frame) {
                (WaitingMessage::Request(id), Some(frame)) if is_observing(frame) => {
                    readings.push(LogReading::new(self.conn, session, id, frame, why));
                }
                (WaitingMessage::Request(id), Some(frame)) if is_expired && is_managing(frame) => {
                    refused.push(id);
                }
                (message, _) => it.push_waiting(since, message),
            }
        }
        for reading in readings {
            parts.log_readings.start_reading(&mut parts.cx, reading);
        }
        for id in refused {
            let fault = parts.searches.no_owner_fault(session);
            self.send_error(parts, &id, &fault);
        }
    }

    /// The next events of a log that an observer reads; empty at the end of the log.
    pub(in crate::gateway) fn on_log_read(
        &mut self,
        parts: &mut GatewayParts,
        token: u64,
        events: Result<Vec<SessionEvent>, Fault>,
    ) {
        let Some(mut reading) = parts.log_readings.take_reading(token) else { return };
        if !self.requests.contains(reading.request()) {
            return;
        }
        match events {
            Err(fault) => self.send_error(parts, reading.request(), &fault),
            Ok(events) if events.is_empty() => self.finish_reading(parts, &reading),
            Ok(events) => {
                let wants_notifications = self.handshake.wants_notifications();
                for text in
                    events.iter().flat_map(|it| reading.render_event(it, wants_notifications))
                {
                    self.relay.send_to_client(&mut parts.cx, text, None);
                }
                let unwritten = self.relay.unwritten();
                let (cx, readings) = (&mut parts.cx, &mut parts.log_readings);
                readings.continue_reading(cx, token, reading, unwritten);
            }
        }
    }

    /// Answers the request. The observer is attached again when a host owns the session.
    fn finish_reading(&mut self, parts: &mut GatewayParts, reading: &LogReading) {
        let session = reading.session();
        if let Some(it) = self.sessions.get_mut(session) {
            it.complete_replay(reading.last_seq());
            it.set_attached(reading.options());
            if let Some(host_conn) = it.host_conn() {
                self.reattach_session(parts, session, host_conn);
            }
        }
        let answer = Frame::result_for(reading.request(), &reading.result().to_string());
        self.send_response(parts, &answer, None);
    }
}

/// Whether a request only reads a log.
fn is_observing(frame: &Frame) -> bool {
    frame.is_method(Method::ControlAttach) && {
        let AttachOptions { observe, facts } = AttachOptions::parse(frame);
        observe || facts
    }
}

fn is_managing(frame: &Frame) -> bool {
    frame.known_method().is_some_and(|it| MANAGING_METHODS.contains(&it))
}

//! Sessions whose host is away and that no other host may own. The gateway reads their logs from
//! the journal for observers, and soon refuses requests that manage them.

use super::{
    Gateway, GatewayOutput,
    handshake::Handshake,
    session::{AttachOptions, WaitingMessage, parse_attach_options},
};
use jackfield_events::{AgentMessage, EventBody, SessionEvent, TurnStarted};
use jackfield_hub::{ConnId, Rendering, Seq, SessionId, wants_notices};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame};
use serde_json::{Value, json};

/// How long a request that manages a session waits for an eligible host. A restarted host is back
/// sooner, and commands wait longer.
const UNHOSTED_WAIT_MS: u64 = 5_000;

/// Requests that manage a session. Prompts wait as long as for a lost host.
const MANAGING_METHODS: [Method; 3] =
    [Method::SessionDelete, Method::SessionClose, Method::SessionFork];

/// An observer's replay of a log from the journal.
#[derive(Debug)]
pub(super) struct LogReading {
    pub(super) conn: ConnId,
    session: SessionId,
    /// The request that is answered at the end of the log.
    request: Box<str>,
    options: AttachOptions,
    /// The last event that was sent.
    last_seq: u64,
    /// The client's outbox is too full to continue.
    paused: bool,
    /// Why no host owns the session.
    why: String,
}

impl Gateway {
    /// No host may own the session at this moment.
    pub(super) fn on_no_eligible_host(&mut self, conn: ConnId, session: &SessionId, why: &str) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let Some(it) = client.sessions.get_mut(session).filter(|it| it.host_conn.is_none()) else {
            return;
        };
        let (mut to_read, mut refused) = (Vec::new(), Vec::new());
        for (since, message) in std::mem::take(&mut it.waiting) {
            let frame = match &message {
                WaitingMessage::Request(id) => client.requests.get(id).map(|it| &it.frame),
                WaitingMessage::Notification(_) => None,
            };
            let is_expired = since.plus(UNHOSTED_WAIT_MS) <= self.now;
            match (message, frame) {
                (WaitingMessage::Request(id), Some(frame)) if is_observing(frame) => {
                    to_read.push((id, frame.clone()));
                }
                (WaitingMessage::Request(id), Some(frame)) if is_expired && is_managing(frame) => {
                    refused.push(id);
                }
                (message, _) => it.waiting.push_back((since, message)),
            }
        }
        for (id, frame) in to_read {
            self.read_log(conn, session, id, &frame, why);
        }
        for id in refused {
            let fault = self.no_owner_fault(session);
            self.send_error(conn, &id, &fault);
        }
    }

    fn read_log(
        &mut self,
        conn: ConnId,
        session: &SessionId,
        request: Box<str>,
        frame: &Frame,
        why: &str,
    ) {
        let params = frame.params().and_then(|it| serde_json::from_str(it).ok());
        let last_seq = params.and_then(|it: Value| it["after"].as_u64()).unwrap_or(0);
        let reading = LogReading {
            conn,
            session: session.clone(),
            request,
            options: parse_attach_options(frame),
            last_seq,
            paused: false,
            why: why.to_owned(),
        };
        let token = self.next_id();
        self.log_readings.insert(token, reading);
        self.outputs.push_back(GatewayOutput::ReadLog {
            token,
            session: session.clone(),
            after: last_seq,
        });
    }

    /// The next events of a log that an observer reads; empty at the end of the log.
    pub(super) fn on_log_read(&mut self, token: u64, events: Result<Vec<SessionEvent>, Fault>) {
        let Some(reading) = self.log_readings.get(&token) else { return };
        let (conn, session) = (reading.conn, reading.session.clone());
        let is_pending = |it: &super::client::Client| it.requests.contains_key(&reading.request);
        if !self.clients.get(&conn).is_some_and(is_pending) {
            self.log_readings.remove(&token);
            return;
        }
        match events {
            Err(fault) => {
                let reading = self.log_readings.remove(&token).expect("found above");
                self.send_error(conn, &reading.request, &fault);
            }
            Ok(events) if events.is_empty() => self.finish_reading(token),
            Ok(events) => {
                for event in &events {
                    self.send_event(conn, &session, event, token);
                }
                self.read_next_events(token);
            }
        }
    }

    /// Sends one event as a host would send it to an observer through a gateway.
    fn send_event(&mut self, conn: ConnId, session: &SessionId, event: &SessionEvent, token: u64) {
        let Some(reading) = self.log_readings.get_mut(&token) else { return };
        let Seq(seq) = event.seq;
        reading.last_seq = seq;
        let rendering = Rendering::new(session, event);
        if reading.options.facts {
            return self.send_to_client(conn, rendering.fact(), None);
        }
        if self.wants_notifications(conn)
            && let Some(text) = rendering.notice()
        {
            self.send_to_client(conn, text, None);
        }
        match &event.body {
            EventBody::Said(AgentMessage { frame, .. }) => {
                self.send_to_client(conn, rendering.said(frame.bytes(), true), None);
            }
            EventBody::Prompted(TurnStarted { frame, .. }) => {
                for text in rendering.user_chunks(frame.bytes(), true) {
                    self.send_to_client(conn, text.clone(), None);
                }
            }
            _ => {}
        }
    }

    /// Whether the client accepts `_jackfield/*` notifications, as hosts derive it from
    /// `initialize`.
    fn wants_notifications(&self, conn: ConnId) -> bool {
        let initialize = self
            .clients
            .get(&conn)
            .and_then(|it| it.handshake.frames[Handshake::INITIALIZE].as_ref());
        let params =
            initialize.and_then(|it| it.params()).and_then(|it| serde_json::from_str(it).ok());
        wants_notices(&params.unwrap_or_default())
    }

    /// Requests the next events, unless the client's outbox is too full.
    fn read_next_events(&mut self, token: u64) {
        let outbox_threshold = self.config.limits.outbox_bytes_max / 2;
        let Some(reading) = self.log_readings.get_mut(&token) else { return };
        let unwritten = self.clients.get(&reading.conn).map_or(0, |it| it.unwritten);
        reading.paused = outbox_threshold < unwritten;
        if !reading.paused {
            let (session, after) = (reading.session.clone(), reading.last_seq);
            self.outputs.push_back(GatewayOutput::ReadLog { token, session, after });
        }
    }

    /// The client has read something.
    pub(super) fn resume_readings(&mut self, conn: ConnId) {
        let paused = self.log_readings.iter().filter(|(_, it)| it.conn == conn && it.paused);
        for token in paused.map(|(token, _)| *token).collect::<Vec<_>>() {
            self.read_next_events(token);
        }
    }

    /// Answers the request. The observer is attached again when a host owns the session.
    fn finish_reading(&mut self, token: u64) {
        let LogReading { conn, session, request, options, last_seq, why, .. } =
            self.log_readings.remove(&token).expect("the caller found it");
        let result = json!({ "sessionId": &*session, "head": last_seq, "away": why });
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        if let Some(it) = client.sessions.get_mut(&session) {
            it.position.complete_replay(Some(last_seq));
            it.attached = Some(options);
            if let Some(host_conn) = it.host_conn {
                self.reattach_session(conn, &session, host_conn);
            }
        }
        self.send_response(conn, &Frame::result_for(&request, &result.to_string()), None);
    }
}

/// Whether a request only reads a log.
fn is_observing(frame: &Frame) -> bool {
    frame.is_method(Method::ControlAttach) && {
        let AttachOptions { observe, facts } = parse_attach_options(frame);
        observe || facts
    }
}

fn is_managing(frame: &Frame) -> bool {
    frame.known_method().is_some_and(|it| MANAGING_METHODS.contains(&it))
}

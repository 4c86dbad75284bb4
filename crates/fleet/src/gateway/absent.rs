//! Sessions whose host is away and that no other host may have: observers read their log from the journal through
//! the gateway, and requests that manage them are answered soon with the reason.

use super::{
    Gateway, GatewayOutput,
    opening::Opening,
    session::{Manner, Wait, manner},
};
use jackfield_events::{AgentMessage, EventBody, SessionEvent, TurnStarted};
use jackfield_hub::{ConnId, Rendering, Seq, SessionId, wants_notices};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame};
use serde_json::{Value, json};

/// How long a request that manages a session waits for a host that may have it. A host that is started again is there
/// sooner, and commands wait longer.
const AWAY_MS: u64 = 5_000;

/// Requests that manage a session. What drives one waits as long as for a host that was lost.
const MANAGES: [Method; 3] = [Method::SessionDelete, Method::SessionClose, Method::SessionFork];

/// An observer hears a log from the journal.
#[derive(Debug)]
pub(super) struct LogReading {
    pub(super) conn: ConnId,
    session: SessionId,
    /// The request that is answered when everything was said.
    request: Box<str>,
    manner: Manner,
    /// The last event that was said.
    upto: u64,
    /// The client has to read before more is said.
    paused: bool,
    /// Why no host has the session.
    why: String,
}

impl Gateway {
    /// No host may have the session at this moment.
    pub(super) fn on_absent(&mut self, conn: ConnId, session: &SessionId, why: &str) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let Some(it) = client.sessions.get_mut(session).filter(|it| it.host_conn.is_none()) else {
            return;
        };
        let (mut reads, mut refused) = (Vec::new(), Vec::new());
        for (since, wait) in std::mem::take(&mut it.waits) {
            let frame = match &wait {
                Wait::Request(id) => client.requests.get(id).map(|it| &it.frame),
                Wait::Notice(_) => None,
            };
            let is_due = since.plus(AWAY_MS) <= self.now;
            match (wait, frame) {
                (Wait::Request(id), Some(frame)) if is_observing(frame) => {
                    reads.push((id, frame.clone()));
                }
                (Wait::Request(id), Some(frame)) if is_due && is_managing(frame) => {
                    refused.push(id);
                }
                (wait, _) => it.waits.push_back((since, wait)),
            }
        }
        for (id, frame) in reads {
            self.read_log(conn, session, id, &frame, why);
        }
        for id in refused {
            let fault = self.lost_fault(session);
            self.fail(conn, &id, &fault);
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
        let upto = params.and_then(|it: Value| it["after"].as_u64()).unwrap_or(0);
        let reading = LogReading {
            conn,
            session: session.clone(),
            request,
            manner: manner(frame),
            upto,
            paused: false,
            why: why.to_owned(),
        };
        let token = self.next_id();
        self.readings.insert(token, reading);
        self.outputs.push_back(GatewayOutput::ReadLog {
            token,
            session: session.clone(),
            after: upto,
        });
    }

    /// The next events of a log that an observer reads; none if there are no more.
    pub(super) fn on_log_read(&mut self, token: u64, events: Result<Vec<SessionEvent>, Fault>) {
        let Some(reading) = self.readings.get(&token) else { return };
        let (conn, session) = (reading.conn, reading.session.clone());
        let is_wanted = |it: &super::client::Client| it.requests.contains_key(&reading.request);
        if !self.clients.get(&conn).is_some_and(is_wanted) {
            self.readings.remove(&token);
            return;
        }
        match events {
            Err(fault) => {
                let reading = self.readings.remove(&token).expect("found above");
                self.fail(conn, &reading.request, &fault);
            }
            Ok(events) if events.is_empty() => self.finish_reading(token),
            Ok(events) => {
                for event in &events {
                    self.tell_event(conn, &session, event, token);
                }
                self.read_on(token);
            }
        }
    }

    /// One event, as a host would say it to an observer by way of a gateway.
    fn tell_event(&mut self, conn: ConnId, session: &SessionId, event: &SessionEvent, token: u64) {
        let Some(reading) = self.readings.get_mut(&token) else { return };
        let Seq(seq) = event.seq;
        reading.upto = seq;
        let rendering = Rendering::new(session, event);
        if reading.manner.facts {
            return self.tell_client(conn, rendering.fact(), None);
        }
        if self.hears_notices(conn)
            && let Some(text) = rendering.notice()
        {
            self.tell_client(conn, text, None);
        }
        match &event.body {
            EventBody::Said(AgentMessage { frame, .. }) => {
                self.tell_client(conn, rendering.said(frame.bytes(), true), None);
            }
            EventBody::Prompted(TurnStarted { frame, .. }) => {
                for text in rendering.user_chunks(frame.bytes(), true) {
                    self.tell_client(conn, text.clone(), None);
                }
            }
            _ => {}
        }
    }

    /// Whether the client hears what ACP has no words for, as hosts understand its `initialize`.
    fn hears_notices(&self, conn: ConnId) -> bool {
        let hello =
            self.clients.get(&conn).and_then(|it| it.opening.frames[Opening::HELLO].as_ref());
        let params = hello.and_then(|it| it.params()).and_then(|it| serde_json::from_str(it).ok());
        wants_notices(&params.unwrap_or_default())
    }

    /// Asks for the next events, unless the client has to read first.
    fn read_on(&mut self, token: u64) {
        let low = self.config.limits.outbox_bytes_max / 2;
        let Some(reading) = self.readings.get_mut(&token) else { return };
        let unwritten = self.clients.get(&reading.conn).map_or(0, |it| it.unwritten);
        reading.paused = low < unwritten;
        if !reading.paused {
            let (session, after) = (reading.session.clone(), reading.upto);
            self.outputs.push_back(GatewayOutput::ReadLog { token, session, after });
        }
    }

    /// The client has read something.
    pub(super) fn resume_readings(&mut self, conn: ConnId) {
        let paused = self.readings.iter().filter(|(_, it)| it.conn == conn && it.paused);
        for token in paused.map(|(token, _)| *token).collect::<Vec<_>>() {
            self.read_on(token);
        }
    }

    /// Everything was said. The observer hears on when a host has the session.
    fn finish_reading(&mut self, token: u64) {
        let LogReading { conn, session, request, manner, upto, why, .. } =
            self.readings.remove(&token).expect("the caller found it");
        let result = json!({ "sessionId": &*session, "head": upto, "away": why });
        let client = self.clients.get_mut(&conn).expect("the caller found it");
        if let Some(it) = client.sessions.get_mut(&session) {
            it.heard.told_upto(Some(upto));
            it.attached = Some(manner);
            if let Some(host_conn) = it.host_conn {
                self.attach_by(conn, &session, host_conn);
            }
        }
        self.finish(conn, &Frame::result_for(&request, &result.to_string()), None);
    }
}

/// Whether a request only reads a log.
fn is_observing(frame: &Frame) -> bool {
    frame.is_method(Method::ControlAttach) && {
        let Manner { observe, facts } = manner(frame);
        observe || facts
    }
}

fn is_managing(frame: &Frame) -> bool {
    frame.known_method().is_some_and(|it| MANAGES.contains(&it))
}

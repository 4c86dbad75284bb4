//! Logs that the gateway reads from the journal for observers, because no host may own the session.

use super::{
    context::GatewayContext,
    frame_fields::{AttachOptions, parse_params},
    output::GatewayOutput,
};
use bytes::Bytes;
use jackfield_events::{AgentMessage, EventBody, SessionEvent, TurnStarted};
use jackfield_hub::{ConnId, Rendering, Seq, SessionId};
use jackfield_protocol::Frame;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct LogReadings {
    by_token: BTreeMap<u64, LogReading>,
}

/// An observer's replay of a log from the journal.
#[derive(Debug)]
pub(super) struct LogReading {
    conn: ConnId,
    session: SessionId,
    /// The request that is answered at the end of the log.
    request: Box<str>,
    options: AttachOptions,
    /// The last event that was sent.
    last_seq: u64,
    /// The client's outbox is too full to continue.
    is_paused: bool,
    /// Why no host owns the session.
    why: String,
}

impl LogReadings {
    /// Reads a log from the position that the request names.
    pub(super) fn start_reading(&mut self, cx: &mut GatewayContext, reading: LogReading) {
        let token = cx.next_id();
        reading.request_events(cx, token);
        self.by_token.insert(token, reading);
    }

    pub(super) fn client_of(&self, token: u64) -> Option<ConnId> {
        self.by_token.get(&token).map(|it| it.conn)
    }

    pub(super) fn take_reading(&mut self, token: u64) -> Option<LogReading> {
        self.by_token.remove(&token)
    }

    /// Requests the next events of a log, unless the client's outbox is too full.
    pub(super) fn continue_reading(
        &mut self,
        cx: &mut GatewayContext,
        token: u64,
        mut reading: LogReading,
        unwritten: usize,
    ) {
        reading.read_next(cx, token, unwritten);
        self.by_token.insert(token, reading);
    }

    /// The client has read something.
    pub(super) fn resume_client(
        &mut self,
        cx: &mut GatewayContext,
        conn: ConnId,
        unwritten: usize,
    ) {
        for (token, it) in &mut self.by_token {
            if it.conn == conn && it.is_paused {
                it.read_next(cx, *token, unwritten);
            }
        }
    }

    pub(super) fn remove_client(&mut self, conn: ConnId) {
        self.by_token.retain(|_, it| it.conn != conn);
    }
}

impl LogReading {
    /// `attach` is the request of the client.
    pub(super) fn new(
        conn: ConnId,
        session: &SessionId,
        request: Box<str>,
        attach: &Frame,
        why: &str,
    ) -> LogReading {
        let after = parse_params(attach).and_then(|it: Value| it["after"].as_u64());
        LogReading {
            conn,
            session: session.clone(),
            request,
            options: AttachOptions::parse(attach),
            last_seq: after.unwrap_or(0),
            is_paused: false,
            why: why.to_owned(),
        }
    }

    pub(super) fn session(&self) -> &SessionId {
        &self.session
    }

    pub(super) fn request(&self) -> &str {
        &self.request
    }

    pub(super) fn options(&self) -> AttachOptions {
        self.options
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// The result of the request at the end of the log.
    pub(super) fn result(&self) -> Value {
        json!({ "sessionId": &*self.session, "head": self.last_seq, "away": self.why })
    }

    /// Advances to an event. Returns its frames, as a host would send them to an observer through a
    /// gateway.
    pub(super) fn render_event(
        &mut self,
        event: &SessionEvent,
        wants_notifications: bool,
    ) -> Vec<Bytes> {
        let Seq(seq) = event.seq;
        self.last_seq = seq;
        let rendering = Rendering::new(&self.session, event);
        if self.options.facts {
            return vec![rendering.fact()];
        }
        let mut frames = Vec::new();
        if wants_notifications {
            frames.extend(rendering.notice());
        }
        match &event.body {
            EventBody::Said(AgentMessage { frame, .. }) => {
                frames.push(rendering.said(frame.bytes(), true));
            }
            EventBody::Prompted(TurnStarted { frame, .. }) => {
                frames.extend_from_slice(rendering.user_chunks(frame.bytes(), true));
            }
            _ => {}
        }
        frames
    }

    fn read_next(&mut self, cx: &mut GatewayContext, token: u64, unwritten: usize) {
        self.is_paused = cx.limits().outbox_bytes_max / 2 < unwritten;
        if !self.is_paused {
            self.request_events(cx, token);
        }
    }

    fn request_events(&self, cx: &mut GatewayContext, token: u64) {
        let (session, after) = (self.session.clone(), self.last_seq);
        cx.push_output(GatewayOutput::ReadLog { token, session, after });
    }
}

//! Asks: what an agent wants of a client. Durable ones go to everyone who can answer and the first
//! answer wins; the others go to one client; what nobody can serve is refused at once.

use crate::{
    AgentId, ConnId, Hub, Seq, SessionId,
    fanout::cancel_notice,
    log::{Body, Effect, Json},
    peer::{Conn, Issued},
};
use bytes::Bytes;
use jackfield_wire::{Fault, Frame, Splice, acp};

/// An ask that waits for an answer.
#[derive(Debug)]
pub(crate) struct Ask {
    seq: Seq,
    agent: AgentId,
    /// The agent's own id for it.
    theirs: Box<str>,
    /// As the clients hear it, save for the id.
    frame: Frame,
}

impl Hub {
    pub(crate) fn on_ask(&mut self, agent: AgentId, id: &SessionId, frame: &Frame) {
        if let Some(request) = frame.request_id() {
            // About a request of a client's own: only that client understands it.
            let Some((conn, theirs)) = self.asker(agent, request) else {
                return self.refuse_ask(agent, frame);
            };
            let splice = Splice { request_id: Some(&theirs), ..Splice::default() };
            let frame = frame.spliced(splice);
            return self.issue_passing(agent, id, conn, &frame);
        }
        let ours = self.as_ours(id, frame.clone());
        let row = frame.method().and_then(|it| acp::method(&it));
        if row.is_some_and(|it| it.durability == acp::Durability::Journaled) {
            return self.open_ask(agent, id, frame, ours);
        }
        match self.server_for(id, frame) {
            Some(conn) => self.issue_passing(agent, id, conn, &ours),
            None => self.refuse_ask(agent, frame),
        }
    }

    fn open_ask(&mut self, agent: AgentId, id: &SessionId, frame: &Frame, ours: Frame) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let elicits = frame.method().as_deref() == Some("elicitation/create");
        let nobody = elicits && !session.subscribers.keys().any(|it| can_elicit(&self.conns, *it));
        if nobody || self.config.limits.asks_max <= session.asks.len() {
            return self.refuse_ask(agent, frame);
        }
        let number = session.state.asks + 1;
        let body = Body::Asked { ask: number, frame: Json::trusted(ours.bytes().clone()) };
        let seq = session.gate.head().next();
        let theirs = frame.id().expect("a request has an id").into();
        session.asks.insert(number, Ask { seq, agent, theirs, frame: ours });
        self.append(id, body);
    }

    /// The client that serves an ask meant for one: the driver if it can, else anyone who can.
    fn server_for(&self, id: &SessionId, frame: &Frame) -> Option<ConnId> {
        let session = self.sessions.get(id)?;
        let method = frame.method()?;
        let can = |conn: &ConnId| {
            let observes = session.subscribers.get(conn).is_none_or(|it| it.observer);
            !observes && self.conns.get(conn).is_some_and(|it| serves(it, &method))
        };
        session.driver().filter(can).or_else(|| session.subscribers.keys().copied().find(can))
    }

    /// Sends an ask to one client and the answer straight back.
    fn issue_passing(&mut self, agent: AgentId, id: &SessionId, conn: ConnId, frame: &Frame) {
        let theirs = frame.id().expect("a request has an id").into();
        let Some(it) = self.conns.get_mut(&conn) else { return self.refuse_ask(agent, frame) };
        let our_id = it.issue(Issued::Passing(agent, theirs)).to_string();
        let text = frame.with_id(&our_id).bytes().clone();
        self.after_log(id, Effect::ToClient { conn, text });
    }

    /// An open ask reaches a client: as the event goes by, or when the client comes later.
    pub(crate) fn issue_ask(&mut self, id: &SessionId, conn: ConnId, number: u64, frame: &Bytes) {
        let Some(session) = self.sessions.get(id) else { return };
        let Ok(frame) = Frame::parse(frame.clone()) else { return };
        let Some(it) = self.conns.get_mut(&conn) else { return };
        let elicits = frame.method().as_deref() == Some("elicitation/create");
        let sent = it.asked.values().any(|it| is_ask(it, id, number));
        if !session.asks.contains_key(&number) || sent || (elicits && !it.can.elicitation) {
            return;
        }
        let our_id = it.issue(Issued::Ask(id.clone(), number)).to_string();
        self.to_client(conn, frame.with_id(&our_id).bytes().clone());
    }

    /// Asks that a client will not hear of as events, because it starts behind them.
    pub(crate) fn issue_open_asks(&mut self, id: &SessionId, conn: ConnId) {
        let Some(session) = self.sessions.get(id) else { return };
        let Some(subscriber) = session.subscribers.get(&conn).filter(|it| !it.observer) else {
            return;
        };
        let heard = subscriber.heard;
        let open = session.asks.iter().filter(|(_, ask)| ask.seq <= heard);
        let open: Vec<(u64, Bytes)> =
            open.map(|(&number, ask)| (number, ask.frame.bytes().clone())).collect();
        for (number, frame) in open {
            self.issue_ask(id, conn, number, &frame);
        }
    }

    /// The first answer wins: it is written down, then the agent hears it.
    pub(crate) fn settle_ask(&mut self, id: &SessionId, number: u64, conn: ConnId, frame: &Frame) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Some(ask) = session.asks.remove(&number) else { return };
        let by = self.conns.get(&conn).map_or_else(|| "gone".into(), |it| it.shown(conn));
        let answer = match (frame.result(), frame.error()) {
            (Some(result), _) => format!(r#"{{"result":{result}}}"#),
            (None, error) => format!(r#"{{"error":{}}}"#, error.unwrap_or("null")),
        };
        self.append(id, Body::Answered { ask: number, by, answer: Json::trusted(answer) });
        let text = frame.with_id(&ask.theirs).bytes().clone();
        self.after_log(id, Effect::ToAgent { agent: ask.agent, text });
    }

    /// The event that an ask is settled goes by: who was asked and did not answer need not.
    pub(crate) fn withdraw_ask(&mut self, id: &SessionId, conn: ConnId, number: u64) {
        let Some(it) = self.conns.get_mut(&conn) else { return };
        let sent =
            it.asked.iter().find(|(_, it)| is_ask(it, id, number)).map(|(&our_id, _)| our_id);
        if let Some(our_id) = sent {
            it.asked.remove(&our_id);
            self.to_client(conn, cancel_notice(our_id));
        }
    }

    /// Settles every open ask without an answer; an agent that is still there hears `cancelled`.
    pub(crate) fn void_asks(&mut self, id: &SessionId, why: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        for (number, ask) in std::mem::take(&mut session.asks) {
            self.append(id, voided(number, why));
            if self.agents.contains_key(&ask.agent) {
                let permission =
                    ask.frame.method().as_deref() == Some("session/request_permission");
                let result = if permission {
                    r#"{"outcome":{"outcome":"cancelled"}}"#
                } else {
                    r#"{"action":"cancel"}"#
                };
                let text = Frame::result_for(&ask.theirs, result).bytes().clone();
                self.after_log(id, Effect::ToAgent { agent: ask.agent, text });
            }
        }
    }

    /// The agent itself no longer wants an answer.
    pub(crate) fn on_ask_withdrawn(&mut self, agent: AgentId, id: &SessionId, frame: &Frame) {
        let Some(request) = frame.request_id() else { return };
        let open = self.sessions.get(id).into_iter().flat_map(|it| it.asks.iter());
        let number = open.into_iter().find(|(_, it)| &*it.theirs == request).map(|(&it, _)| it);
        if let (Some(number), Some(session)) = (number, self.sessions.get_mut(id)) {
            let ask = session.asks.remove(&number).expect("found above");
            self.append(id, voided(number, "the agent withdrew it"));
            let text = Frame::error_for(&ask.theirs, &Fault::Cancelled).bytes().clone();
            return self.after_log(id, Effect::ToAgent { agent, text });
        }
        let asked_of = self.conns.iter().find_map(|(&conn, it)| {
            let is_it = |it: &Issued| matches!(it, Issued::Passing(of, theirs) if *of == agent && &**theirs == request);
            it.asked.iter().find(|(_, it)| is_it(it)).map(|(&our_id, _)| (conn, our_id))
        });
        if let Some((conn, our_id)) = asked_of {
            // The client still owes one answer, and the agent still gets it.
            self.after_log(id, Effect::ToClient { conn, text: cancel_notice(our_id) });
        }
    }
}

/// The fact that nobody's answer counts any more.
pub(crate) fn voided(ask: u64, why: &str) -> Body {
    let answer = serde_json::json!({ "void": why }).to_string();
    Body::Answered { ask, by: "jackfield".into(), answer: Json::trusted(answer) }
}

fn is_ask(issued: &Issued, id: &SessionId, number: u64) -> bool {
    matches!(issued, Issued::Ask(session, ask) if session == id && *ask == number)
}

fn can_elicit(conns: &std::collections::BTreeMap<ConnId, Conn>, conn: ConnId) -> bool {
    conns.get(&conn).is_some_and(|it| it.can.elicitation)
}

/// Whether a client announced that it serves this method; methods nobody announces are tried.
fn serves(conn: &Conn, method: &str) -> bool {
    match method {
        "fs/read_text_file" => conn.can.read_files,
        "fs/write_text_file" => conn.can.write_files,
        _ if method.starts_with("terminal/") => conn.can.terminal,
        _ => true,
    }
}

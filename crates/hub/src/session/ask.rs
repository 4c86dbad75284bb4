//! Asks: what an agent wants of a client. Durable ones go to everyone who can answer and the first
//! answer wins; the others go to one client; what nobody can serve is refused at once.

use super::{
    approval::title_with_facts,
    rules::{answer_of, params_of},
};
use crate::{
    AgentId, ConnId, Hub, Note, Seq, SessionId, TERMINAL_PREFIX, Time,
    budget::ByteCharge,
    fanout::cancel_notice,
    log::Effect,
    peer::{Conn, Issued},
};
use bytes::Bytes;
use jackfield_events::{EventBody, RawJson, UserAnswered, UserAsked};
use jackfield_protocol::{Fault, Frame, acp::Method, is_planted};

/// An ask that waits for an answer.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(super) seq: Seq,
    pub(super) at: Time,
    pub(super) agent: AgentId,
    /// The agent's own id for it.
    pub(super) theirs: Box<str>,
    /// As the clients hear it, save for the id.
    pub(crate) frame: Frame,
    pub(super) origin: AskOrigin,
    /// What a rule says to it, if one does: that a person must be asked.
    decision: Option<RawJson>,
    /// What it is about, as the policy reads it; nothing for a form.
    pub(super) facts: Option<RawJson>,
    /// The bytes of the ask and of what is kept with it.
    _charge: ByteCharge,
}

/// What waits for the answer to an ask.
#[derive(Debug)]
pub(super) enum AskOrigin {
    /// A request of the agent: it gets the answer.
    Agent,
    /// A request for a file or a terminal: it is carried out if the answer allows it.
    Served(Frame),
}

impl Ask {
    pub(super) fn is_permission(&self) -> bool {
        self.frame.is_method(Method::SessionRequestPermission)
    }

    /// What is asked, in the agent's words.
    fn what(&self) -> String {
        let params = serde_json::from_str(self.frame.params().unwrap_or("{}"));
        let params: serde_json::Value = params.unwrap_or_default();
        let place = if self.is_permission() { "/toolCall/title" } else { "/message" };
        params.pointer(place).and_then(|it| it.as_str()).unwrap_or_default().to_owned()
    }
}

impl Hub {
    pub(crate) fn on_ask(&mut self, agent: AgentId, id: &SessionId, frame: &Frame) {
        let ours = self.as_ours(id, frame.clone());
        if crate::agent::is_journaled(frame) {
            return self.open_ask(agent, id, ours, AskOrigin::Agent);
        }
        match self.server_for(id, frame).filter(|_| !is_of_our_terminal(frame)) {
            Some(conn) => self.issue_passing(agent, Some(id), conn, &ours),
            None if is_served(frame) => self.judge_served(agent, id, frame),
            None => self.refuse_ask(agent, frame),
        }
    }

    pub(super) fn open_ask(
        &mut self,
        agent: AgentId,
        id: &SessionId,
        ours: Frame,
        origin: AskOrigin,
    ) {
        let Some(session) = self.sessions.get(id) else { return };
        let elicits = ours.is_method(Method::ElicitationCreate);
        let frame = match &origin {
            AskOrigin::Agent => &ours,
            AskOrigin::Served(request) => request,
        };
        let nobody = elicits && !session.subscribers.keys().any(|it| can_elicit(&self.conns, *it));
        if nobody {
            return self.refuse_ask(agent, frame);
        }
        if self.cx.config.limits.asks_max <= session.asks.len() {
            let what = format!(
                "{} requests of this session wait for an answer, as many as may; wait for one",
                session.asks.len()
            );
            return self.refuse_ask_for_now(agent, frame, what);
        }
        let served = if matches!(origin, AskOrigin::Agent) { 0 } else { frame.bytes().len() };
        let bytes = ours.bytes().len() + served;
        let mut charge = match self.cx.retained_bytes.charge(&session.kept, bytes) {
            Ok(charge) => charge,
            Err(over) => return self.refuse_ask_for_now(agent, frame, over.to_string()),
        };
        let number = session.summary().asks + 1;
        let theirs: Box<str> = frame.id().expect("a request has an id").into();
        let decision = (!elicits).then(|| self.judge(id, &params_of(&ours)));
        let said = decision.as_ref().and_then(|it| self.spoken(it));
        let ruled = decision.as_ref().and_then(|it| answer_of(it, &ours));
        let facts = decision.filter(|_| ruled.is_none()).map(|it| self.facts(id, &ours, &it));
        let asked = RawJson::trusted(ours.bytes().clone());
        let (decision, call) = (said.clone(), facts.clone());
        let seq = self
            .append(id, EventBody::Asked(UserAsked { ask: number, decision, call, frame: asked }));
        self.remember_asked(id, &ours);
        if let Some(result) = ruled {
            self.answer_by_rule(agent, id, number, &theirs, &result);
            if !is_planted("ask-users-after-rule-answered") {
                return;
            }
        }
        charge.resize(bytes + facts.as_ref().map_or(0, |it| it.bytes().len()));
        let ask = Ask {
            seq,
            at: self.cx.now,
            agent,
            theirs,
            frame: ours,
            origin,
            decision: said,
            facts,
            _charge: charge,
        };
        let (what, call) = (ask.what(), ask.facts.clone());
        self.sessions.get_mut(id).expect("found above").asks.insert(number, ask);
        self.limit_ask(id, number);
        self.note(Note::AskOpened { session: id.clone(), ask: number, what, call });
    }

    /// A rule answers; no client hears of a question.
    fn answer_by_rule(
        &mut self,
        agent: AgentId,
        id: &SessionId,
        number: u64,
        theirs: &str,
        result: &str,
    ) {
        let by: std::sync::Arc<str> = "policy".into();
        self.remember_settled(id, number, "answered by a rule".into());
        let answer = RawJson::trusted(format!(r#"{{"result":{result}}}"#));
        self.append(id, EventBody::Answered(UserAnswered { ask: number, by, answer, peer: None }));
        let text = Frame::result_for(theirs, result).bytes().clone();
        self.after_log(id, Effect::ToAgent { agent, text });
    }

    /// A tool call that is asked about is not done behind anyone's back.
    fn remember_asked(&mut self, id: &SessionId, ask: &Frame) {
        let params = params_of(ask);
        let Some(call) = params["toolCall"]["toolCallId"].as_str() else { return };
        if let Some(turn) = self.sessions.get_mut(id).and_then(|it| it.turn.as_mut()) {
            turn.asked.insert(call.into());
        }
    }

    /// The client that serves an ask meant for one: the driver if it can, else anyone who can.
    fn server_for(&self, id: &SessionId, frame: &Frame) -> Option<ConnId> {
        let session = self.sessions.get(id)?;
        let method = frame.method()?;
        let can = |conn: &ConnId| {
            let observes = session.subscribers.get(conn).is_none_or(|it| it.observer);
            !observes && self.conns.get(conn).is_some_and(|it| !it.finished && serves(it, &method))
        };
        session.driver().filter(can).or_else(|| session.subscribers.keys().copied().find(can))
    }

    /// An open ask reaches a client: as the event goes by, or when the client comes later.
    pub(crate) fn issue_ask(
        &mut self,
        id: &SessionId,
        conn: ConnId,
        number: u64,
        frame: &Bytes,
    ) -> Option<Bytes> {
        let session = self.sessions.get(id)?;
        let frame = Frame::parse(frame.clone()).ok()?;
        let it = self.conns.get_mut(&conn)?;
        let elicits = frame.is_method(Method::ElicitationCreate);
        let sent = it.asked.values().any(|it| is_ask(it, id, number));
        let ask = session.asks.get(&number).filter(|_| !sent)?;
        if elicits && !it.can.elicitation {
            return None;
        }
        let our_id = it.issue(Issued::Ask(id.clone(), number)).to_string();
        let frame = frame.with_id(&our_id);
        let Some(facts) = &ask.facts else { return Some(frame.bytes().clone()) };
        if !it.aware {
            return Some(with_honest_title(&frame, &our_id, facts).bytes().clone());
        }
        // A client that answers by rules of its own should know that this one is for a person.
        let policy = ask.decision.as_ref().map(|it| format!(r#","policy":{}"#, it.as_str()));
        let policy = policy.unwrap_or_default();
        let meta = format!(r#"{{"call":{}{policy}}}"#, facts.as_str());
        Some(frame.with_meta(&meta).bytes().clone())
    }

    /// Asks that a client will not hear of as events, because it starts behind them. They follow
    /// the answer that lets it in.
    pub(crate) fn issue_open_asks(&mut self, id: &SessionId, conn: ConnId) {
        let Some(session) = self.sessions.get(id) else { return };
        let Some(subscriber) = session.subscribers.get(&conn).filter(|it| !it.observer) else {
            return;
        };
        let (heard, last) = (subscriber.heard, session.log.head());
        let open = session.asks.iter().filter(|(_, ask)| ask.seq <= heard);
        let open: Vec<(u64, Bytes)> =
            open.map(|(&number, ask)| (number, ask.frame.bytes().clone())).collect();
        for (number, frame) in open {
            let Some(it) = self.conns.get(&conn) else { return };
            let Ok(mut charge) = self.cx.retained_bytes.charge(&it.kept, frame.len()) else {
                continue; // Another client can answer, or this one by `_jackfield/answer`.
            };
            let text = self.issue_ask(id, conn, number, &frame);
            let subscriber = self.sessions.get_mut(id).and_then(|it| it.subscribers.get_mut(&conn));
            if let (Some(text), Some(subscriber)) = (text, subscriber) {
                charge.resize(text.len());
                subscriber.defer(last, text, charge);
            }
        }
    }

    /// The first answer wins: it is written down, then the agent hears it. An error is no answer to
    /// a permission: that client could not ask its user, and somebody else still can.
    pub(crate) fn settle_ask(&mut self, id: &SessionId, number: u64, conn: ConnId, frame: &Frame) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let permission = session.asks.get(&number).is_some_and(Ask::is_permission);
        if permission && frame.result().is_none() && !is_planted("accept-error-as-answer") {
            return;
        }
        let Some(ask) = session.asks.remove(&number) else { return };
        let by = self.conns.get(&conn).map_or_else(|| "gone".into(), |it| it.shown(conn));
        let always = frame.result().filter(|_| permission);
        let once = always.and_then(|it| self.take_always(id, number, &ask, it));
        let frame = match &once {
            Some(once) => &Frame::result_for(&ask.theirs, once),
            None => frame,
        };
        let answer = match (frame.result(), frame.error()) {
            (Some(result), _) => format!(r#"{{"result":{result}}}"#),
            (None, error) => format!(r#"{{"error":{}}}"#, error.unwrap_or("null")),
        };
        self.remember_settled(id, number, format!("answered by {by}").into());
        let (answer, peer) = (RawJson::trusted(answer), self.peer_json(conn));
        self.append(id, EventBody::Answered(UserAnswered { ask: number, by, answer, peer }));
        if permission {
            self.remember_approved(id, &ask.frame, frame);
        }
        self.answer_agent(id, &ask, frame);
        self.told(id, true);
    }

    /// Gives the answer to the request that waits for it.
    pub(super) fn answer_agent(&mut self, id: &SessionId, ask: &Ask, answer: &Frame) {
        match &ask.origin {
            AskOrigin::Agent => {
                let text = answer.with_id(&ask.theirs).bytes().clone();
                self.after_log(id, Effect::ToAgent { agent: ask.agent, text });
            }
            AskOrigin::Served(request) => self.settle_served(ask.agent, id, request, answer),
        }
    }

    /// The event that an ask is settled goes by: who was asked and did not answer need not.
    pub(crate) fn withdraw_ask(&mut self, id: &SessionId, conn: ConnId, number: u64) {
        let Some(it) = self.conns.get_mut(&conn) else { return };
        let sent =
            it.asked.iter().find(|(_, it)| is_ask(it, id, number)).map(|(&our_id, _)| our_id);
        if let Some(our_id) = sent {
            it.asked.remove(&our_id);
            self.send(conn, cancel_notice(our_id));
        }
    }

    /// The session is gone, and with it the asks its clients were sent.
    pub(crate) fn withdraw_asks_of(&mut self, id: &SessionId) {
        let of_session = |it: &Issued| matches!(it, Issued::Ask(session, _) if session == id);
        for (conn, _, notice) in self.take_back(of_session) {
            self.send(conn, notice);
        }
    }

    /// Forgets what clients were asked; returns what to tell them.
    pub(super) fn take_back(
        &mut self,
        which: impl Fn(&Issued) -> bool,
    ) -> Vec<(ConnId, Issued, Bytes)> {
        let mut notices = Vec::new();
        for (&conn, it) in &mut self.conns {
            let asked = it.asked.extract_if(.., |_, issued| which(issued));
            notices.extend(asked.map(|(request, it)| (conn, it, cancel_notice(request))));
        }
        notices
    }

    /// Settles every open ask without an answer; an agent that is still there hears `cancelled`.
    pub(crate) fn void_asks(&mut self, id: &SessionId, why: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        for (number, ask) in std::mem::take(&mut session.asks) {
            self.remember_settled(id, number, why.into());
            self.append(id, voided(number, why));
            if self.agents.contains_key(&ask.agent) {
                let result = if ask.is_permission() {
                    r#"{"outcome":{"outcome":"cancelled"}}"#
                } else {
                    r#"{"action":"cancel"}"#
                };
                self.answer_agent(id, &ask, &Frame::result_for(&ask.theirs, result));
                self.told(id, true);
            }
        }
    }

    /// The agent itself no longer wants an answer.
    pub(crate) fn on_ask_withdrawn(&mut self, agent: AgentId, frame: &Frame) {
        let Some(request) = frame.request_id() else { return };
        let is_it = |it: &Ask| it.agent == agent && &*it.theirs == request;
        let open = self.served_by(agent).into_iter().find_map(|id| {
            let mut asks = self.sessions[&id].asks.iter();
            asks.find(|(_, it)| is_it(it)).map(|(&number, _)| (id.clone(), number))
        });
        let Some((id, number)) = open else { return self.on_passing_withdrawn(agent, request) };
        let session = self.sessions.get_mut(&id).expect("found above");
        let ask = session.asks.remove(&number).expect("found above");
        self.remember_settled(&id, number, "the agent withdrew it".into());
        self.append(&id, voided(number, "the agent withdrew it"));
        self.answer_agent(&id, &ask, &Frame::error_for(&ask.theirs, &Fault::Cancelled));
    }
}

/// The request for a client that does not know `_meta.jackfield`: its title shows what will be done. Everything
/// else stays as the agent wrote it.
fn with_honest_title(frame: &Frame, id: &str, facts: &RawJson) -> Frame {
    let mut params = params_of(frame);
    let facts = serde_json::from_str(facts.as_str()).unwrap_or_default();
    let Some(title) = title_with_facts(&facts, params["toolCall"]["title"].as_str()) else {
        return frame.clone();
    };
    let (Some(method), Some(call)) = (frame.method(), params["toolCall"].as_object_mut()) else {
        return frame.clone();
    };
    call.insert("title".to_owned(), title.into());
    Frame::request(id, &method, &params.to_string())
}

/// The fact that nobody's answer counts any more.
pub(crate) fn voided(ask: u64, why: &str) -> EventBody {
    let answer = serde_json::json!({ "void": why }).to_string();
    let (by, answer) = ("jackfield".into(), RawJson::trusted(answer));
    EventBody::Answered(UserAnswered { ask, by, answer, peer: None })
}

fn is_ask(issued: &Issued, id: &SessionId, number: u64) -> bool {
    matches!(issued, Issued::Ask(session, ask) if session == id && *ask == number)
}

fn can_elicit(conns: &std::collections::BTreeMap<ConnId, Conn>, conn: ConnId) -> bool {
    conns.get(&conn).is_some_and(|it| !it.finished && it.can.elicitation)
}

/// Files and terminals: what the hub's own machine has too.
fn is_served(frame: &Frame) -> bool {
    frame.method().is_some_and(|it| it.starts_with("fs/") || it.starts_with("terminal/"))
}

/// Whether it is about a terminal that the hub's own machine runs; then no client knows it.
fn is_of_our_terminal(frame: &Frame) -> bool {
    let names_one = frame.method().is_some_and(|it| it.starts_with("terminal/"));
    let params = frame.params().filter(|_| names_one);
    let params = params.and_then(|it| serde_json::from_str::<serde_json::Value>(it).ok());
    let terminal = params.as_ref().and_then(|it| it["terminalId"].as_str());
    terminal.is_some_and(|it| it.starts_with(TERMINAL_PREFIX))
}

/// Whether a client announced that it serves this method; methods nobody announces are tried.
fn serves(conn: &Conn, method: &str) -> bool {
    match method {
        _ if method == Method::FsReadTextFile.name() => conn.can.read_files,
        _ if method == Method::FsWriteTextFile.name() => conn.can.write_files,
        _ if method.starts_with("terminal/") => conn.can.terminal,
        _ => true,
    }
}

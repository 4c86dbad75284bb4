//! Requests of agents to the user and to clients. A permission request or elicitation is logged, sent to every client
//! that can answer, and decided by the first answer. Other requests go to one client, to the daemon, or are refused.

use super::{
    Session,
    approval::title_with_facts,
    rules::{answer_of, params_of},
};
use crate::{
    AgentId, ConnId, Hub, Note, Seq, SessionId, TERMINAL_PREFIX, Time,
    budget::ByteCharge,
    context::HubContext,
    fanout::cancel_notice,
    hub::HubParts,
    log::Effect,
    peer::{ClientConnection, Clients, IssuedRequest},
    session::Sessions,
};
use bytes::Bytes;
use jackfield_events::{EventBody, RawJson, UserAnswered, UserAsked};
use jackfield_protocol::{Fault, Frame, acp::Method, is_planted};

/// An open request to the user.
#[derive(Debug)]
pub(crate) struct UserRequest {
    pub(super) seq: Seq,
    pub(super) at: Time,
    pub(super) agent: AgentId,
    /// The request id of the agent.
    pub(super) agent_request_id: Box<str>,
    /// As clients get it, except for the id.
    pub(crate) frame: Frame,
    pub(super) origin: RequestOrigin,
    /// The decision of a rule that a person must answer.
    decision: Option<RawJson>,
    /// The facts of the tool call as the policy reads them; nothing for an elicitation.
    pub(super) facts: Option<RawJson>,
    /// The bytes of the request and its facts.
    _charge: ByteCharge,
}

/// What the answer is used for.
#[derive(Debug)]
pub(super) enum RequestOrigin {
    /// It is sent to the agent.
    Agent,
    /// The daemon serves this request for a file or a terminal if the answer permits it.
    Served(Frame),
}

impl UserRequest {
    pub(super) fn is_permission(&self) -> bool {
        self.frame.is_method(Method::SessionRequestPermission)
    }

    /// The title that the agent gave.
    fn what(&self) -> String {
        let params = serde_json::from_str(self.frame.params().unwrap_or("{}"));
        let params: serde_json::Value = params.unwrap_or_default();
        let place = if self.is_permission() { "/toolCall/title" } else { "/message" };
        params.pointer(place).and_then(|it| it.as_str()).unwrap_or_default().to_owned()
    }
}

impl Clients {
    /// A request was closed: a client that has it need not answer.
    pub(crate) fn withdraw_user_request(
        &mut self,
        cx: &mut HubContext,
        id: &SessionId,
        conn: ConnId,
        number: u64,
    ) {
        let Some(it) = self.connections.get_mut(&conn) else { return };
        let sent =
            it.asked.iter().find(|(_, it)| is_ask(it, id, number)).map(|(&our_id, _)| our_id);
        if let Some(our_id) = sent {
            it.asked.remove(&our_id);
            self.send(cx, conn, cancel_notice(our_id));
        }
    }

    /// The session is removed, and with it the requests that clients have.
    pub(crate) fn withdraw_user_requests(&mut self, cx: &mut HubContext, id: &SessionId) {
        let of_session =
            |it: &IssuedRequest| matches!(it, IssuedRequest::Ask(session, _) if session == id);
        for (conn, _, notice) in self.take_issued_requests(of_session) {
            self.send(cx, conn, notice);
        }
    }

    /// Forgets requests that were sent to clients. Returns the cancel notices.
    pub(super) fn take_issued_requests(
        &mut self,
        which: impl Fn(&IssuedRequest) -> bool,
    ) -> Vec<(ConnId, IssuedRequest, Bytes)> {
        let mut notices = Vec::new();
        for (&conn, it) in &mut self.connections {
            let asked = it.asked.extract_if(.., |_, issued| which(issued));
            notices.extend(asked.map(|(request, it)| (conn, it, cancel_notice(request))));
        }
        notices
    }
}

impl Sessions {
    /// Remembers that a tool call was asked about.
    fn mark_tool_call_asked(&mut self, id: &SessionId, ask: &Frame) {
        let params = params_of(ask);
        let Some(call) = params["toolCall"]["toolCallId"].as_str() else { return };
        if let Some(turn) = self.by_id.get_mut(id).and_then(|it| it.turn.as_mut()) {
            turn.asked.insert(call.into());
        }
    }
}

impl Session {
    /// Sends an open request to a client: as an event, or when the client attaches later.
    pub(crate) fn issue_user_request(
        &self,
        clients: &mut Clients,
        conn: ConnId,
        number: u64,
        frame: &Bytes,
    ) -> Option<Bytes> {
        let frame = Frame::parse(frame.clone()).ok()?;
        let it = clients.connections.get_mut(&conn)?;
        let elicits = frame.is_method(Method::ElicitationCreate);
        let sent = it.asked.values().any(|it| is_ask(it, &self.id, number));
        let ask = self.asks.get(&number).filter(|_| !sent)?;
        if elicits && !it.capabilities.elicitation {
            return None;
        }
        let request_id = it.issue(IssuedRequest::Ask(self.id.clone(), number)).to_string();
        let frame = frame.with_id(&request_id);
        let Some(facts) = &ask.facts else { return Some(frame.bytes().clone()) };
        if !it.aware {
            return Some(with_honest_title(&frame, &request_id, facts).bytes().clone());
        }
        // A client that answers by its own rules must know that a rule wants a person to answer.
        let policy = ask.decision.as_ref().map(|it| format!(r#","policy":{}"#, it.as_str()));
        let policy = policy.unwrap_or_default();
        let meta = format!(r#"{{"call":{}{policy}}}"#, facts.as_str());
        Some(frame.with_meta(&meta).bytes().clone())
    }

    /// The client that serves a request for one client: the one whose prompt runs, else any that can.
    fn find_server(&self, clients: &Clients, frame: &Frame) -> Option<ConnId> {
        let method = frame.known_method();
        let can = |conn: &ConnId| {
            let is_observer = self.subscribers.get(conn).is_none_or(|it| it.observer);
            let connection = clients.connections.get(conn);
            !is_observer && connection.is_some_and(|it| !it.finished && can_serve(it, method))
        };
        self.driver().filter(can).or_else(|| self.subscribers.keys().copied().find(can))
    }

    /// Sends open requests to a client that attaches behind their events. They follow the answer to its attach.
    pub(crate) fn issue_open_requests(&mut self, parts: &mut HubParts, conn: ConnId) {
        let Some(subscriber) = self.subscribers.get(&conn).filter(|it| !it.observer) else {
            return;
        };
        let (heard, last) = (subscriber.heard, self.log.head());
        let open = self.asks.iter().filter(|(_, ask)| ask.seq <= heard);
        let open: Vec<(u64, Bytes)> =
            open.map(|(&number, ask)| (number, ask.frame.bytes().clone())).collect();
        for (number, frame) in open {
            let Some(it) = parts.clients.connections.get(&conn) else { return };
            let Ok(mut charge) = parts.cx.retained_bytes.charge(&it.kept, frame.len()) else {
                continue; // Another client can answer, or this one by `_jackfield/answer`.
            };
            let text = self.issue_user_request(&mut parts.clients, conn, number, &frame);
            if let (Some(text), Some(subscriber)) = (text, self.subscribers.get_mut(&conn)) {
                charge.resize(text.len());
                subscriber.defer(last, text, charge);
            }
        }
    }
}

impl Hub {
    pub(crate) fn on_ask(&mut self, agent: AgentId, id: &SessionId, frame: &Frame) {
        let client_frame = self.sessions.with_hub_session_id(id, frame.clone());
        if crate::agent::is_journaled(frame) {
            return self.open_ask(agent, id, client_frame, RequestOrigin::Agent);
        }
        let session = self.sessions.by_id.get(id);
        let server = session.and_then(|it| it.find_server(&self.parts.clients, frame));
        match server.filter(|_| !is_of_daemon_terminal(frame)) {
            Some(conn) => self.issue_passing(agent, Some(id), conn, &client_frame),
            None if is_served(frame) => self.judge_served(agent, id, frame),
            None => self.parts.cx.refuse_agent_request(agent, frame),
        }
    }

    pub(super) fn open_ask(
        &mut self,
        agent: AgentId,
        id: &SessionId,
        client_frame: Frame,
        origin: RequestOrigin,
    ) {
        let Some(session) = self.sessions.by_id.get(id) else { return };
        let elicits = client_frame.is_method(Method::ElicitationCreate);
        let frame = match &origin {
            RequestOrigin::Agent => &client_frame,
            RequestOrigin::Served(request) => request,
        };
        let nobody = elicits
            && !session
                .subscribers
                .keys()
                .any(|it| can_elicit(&self.parts.clients.connections, *it));
        if nobody {
            return self.parts.cx.refuse_agent_request(agent, frame);
        }
        if self.parts.cx.config.limits.asks_max <= session.asks.len() {
            let what = format!(
                "{} requests of this session wait for an answer, as many as may; wait for one",
                session.asks.len()
            );
            return self.parts.cx.defer_agent_request(agent, frame, what);
        }
        let served = if matches!(origin, RequestOrigin::Agent) { 0 } else { frame.bytes().len() };
        let bytes = client_frame.bytes().len() + served;
        let mut charge = match self.parts.cx.retained_bytes.charge(&session.kept, bytes) {
            Ok(charge) => charge,
            Err(over) => return self.parts.cx.defer_agent_request(agent, frame, over.to_string()),
        };
        let number = session.summary().asks + 1;
        let agent_request_id: Box<str> = frame.id().expect("a request has an id").into();
        let decision = (!elicits)
            .then(|| self.sessions.judge_tool_call(&self.parts.cx, id, &params_of(&client_frame)));
        let said = decision.as_ref().and_then(|it| self.parts.cx.config.describe_decision(it));
        let ruled = decision.as_ref().and_then(|it| answer_of(it, &client_frame));
        let facts = decision
            .filter(|_| ruled.is_none())
            .map(|it| self.sessions.describe_tool_call(&self.parts.cx, id, &client_frame, &it));
        let asked = RawJson::trusted(client_frame.bytes().clone());
        let (decision, call) = (said.clone(), facts.clone());
        let seq = self.sessions.append_event(
            &mut self.parts.cx,
            id,
            EventBody::Asked(UserAsked { ask: number, decision, call, frame: asked }),
        );
        self.sessions.mark_tool_call_asked(id, &client_frame);
        if let Some(result) = ruled {
            self.answer_by_rule(agent, id, number, &agent_request_id, &result);
            if !is_planted("ask-users-after-rule-answered") {
                return;
            }
        }
        charge.resize(bytes + facts.as_ref().map_or(0, |it| it.bytes().len()));
        let ask = UserRequest {
            seq,
            at: self.parts.cx.now,
            agent,
            agent_request_id,
            frame: client_frame,
            origin,
            decision: said,
            facts,
            _charge: charge,
        };
        let (what, call) = (ask.what(), ask.facts.clone());
        self.sessions.by_id.get_mut(id).expect("found above").asks.insert(number, ask);
        self.sessions.schedule_unanswered_rule(&mut self.parts.cx, id, number);
        self.parts.cx.note(Note::AskOpened { session: id.clone(), ask: number, what, call });
    }

    /// A rule answers the request; no client is asked.
    fn answer_by_rule(
        &mut self,
        agent: AgentId,
        id: &SessionId,
        number: u64,
        agent_request_id: &str,
        result: &str,
    ) {
        let by: std::sync::Arc<str> = "policy".into();
        self.sessions.remember_closed_request(
            &self.parts.cx,
            id,
            number,
            "answered by a rule".into(),
        );
        let answer = RawJson::trusted(format!(r#"{{"result":{result}}}"#));
        self.sessions.append_event(
            &mut self.parts.cx,
            id,
            EventBody::Answered(UserAnswered { ask: number, by, answer, peer: None }),
        );
        let text = Frame::result_for(agent_request_id, result).bytes().clone();
        self.after_log(id, Effect::ToAgent { agent, text });
    }

    /// The first answer wins: it is logged, then sent to the agent. An error of a client does not answer a permission
    /// request: that client could not ask its user, and another one still can.
    pub(crate) fn settle_ask(&mut self, id: &SessionId, number: u64, conn: ConnId, frame: &Frame) {
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        let permission = session.asks.get(&number).is_some_and(UserRequest::is_permission);
        if permission && frame.result().is_none() && !is_planted("accept-error-as-answer") {
            return;
        }
        let Some(ask) = session.asks.remove(&number) else { return };
        let by = self
            .parts
            .clients
            .connections
            .get(&conn)
            .map_or_else(|| "gone".into(), |it| it.shown(conn));
        let always = frame.result().filter(|_| permission);
        let once = always.and_then(|it| {
            self.sessions.accept_always_answer(&mut self.parts.cx, id, number, &ask, it)
        });
        let frame = match &once {
            Some(once) => &Frame::result_for(&ask.agent_request_id, once),
            None => frame,
        };
        let answer = match (frame.result(), frame.error()) {
            (Some(result), _) => format!(r#"{{"result":{result}}}"#),
            (None, error) => format!(r#"{{"error":{}}}"#, error.unwrap_or("null")),
        };
        self.sessions.remember_closed_request(
            &self.parts.cx,
            id,
            number,
            format!("answered by {by}").into(),
        );
        let (answer, peer) = (RawJson::trusted(answer), self.parts.clients.describe_peer(conn));
        self.sessions.append_event(
            &mut self.parts.cx,
            id,
            EventBody::Answered(UserAnswered { ask: number, by, answer, peer }),
        );
        if permission {
            self.sessions.remember_approved_call(&self.parts.cx, id, &ask.frame, frame);
        }
        self.answer_agent(id, &ask, frame);
        self.with_session(id, |it, parts| it.mark_agent_used(parts, true));
    }

    /// Passes the answer on to whatever waits for it.
    pub(super) fn answer_agent(&mut self, id: &SessionId, ask: &UserRequest, answer: &Frame) {
        match &ask.origin {
            RequestOrigin::Agent => {
                let text = answer.with_id(&ask.agent_request_id).bytes().clone();
                self.after_log(id, Effect::ToAgent { agent: ask.agent, text });
            }
            RequestOrigin::Served(request) => self.settle_served(ask.agent, id, request, answer),
        }
    }

    /// Closes all open requests without an answer. An agent that still runs gets `cancelled`.
    pub(crate) fn void_asks(&mut self, id: &SessionId, why: &str) {
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        for (number, ask) in std::mem::take(&mut session.asks) {
            self.sessions.remember_closed_request(&self.parts.cx, id, number, why.into());
            self.sessions.append_event(&mut self.parts.cx, id, voided(number, why));
            if self.parts.agents.processes.contains_key(&ask.agent) {
                let result = if ask.is_permission() {
                    r#"{"outcome":{"outcome":"cancelled"}}"#
                } else {
                    r#"{"action":"cancel"}"#
                };
                self.answer_agent(id, &ask, &Frame::result_for(&ask.agent_request_id, result));
                self.with_session(id, |it, parts| it.mark_agent_used(parts, true));
            }
        }
    }

    /// The agent withdrew its request.
    pub(crate) fn on_ask_withdrawn(&mut self, agent: AgentId, frame: &Frame) {
        let Some(request) = frame.request_id() else { return };
        let is_it = |it: &UserRequest| it.agent == agent && &*it.agent_request_id == request;
        let open = self.served_by(agent).into_iter().find_map(|id| {
            let mut asks = self.sessions.by_id[&id].asks.iter();
            asks.find(|(_, it)| is_it(it)).map(|(&number, _)| (id.clone(), number))
        });
        let Some((id, number)) = open else { return self.on_passing_withdrawn(agent, request) };
        let session = self.sessions.by_id.get_mut(&id).expect("found above");
        let ask = session.asks.remove(&number).expect("found above");
        self.sessions.remember_closed_request(
            &self.parts.cx,
            &id,
            number,
            "the agent withdrew it".into(),
        );
        self.sessions.append_event(
            &mut self.parts.cx,
            &id,
            voided(number, "the agent withdrew it"),
        );
        self.answer_agent(&id, &ask, &Frame::error_for(&ask.agent_request_id, &Fault::Cancelled));
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

/// The event that a request was closed without an answer.
pub(crate) fn voided(ask: u64, why: &str) -> EventBody {
    let answer = serde_json::json!({ "void": why }).to_string();
    let (by, answer) = ("jackfield".into(), RawJson::trusted(answer));
    EventBody::Answered(UserAnswered { ask, by, answer, peer: None })
}

fn is_ask(issued: &IssuedRequest, id: &SessionId, number: u64) -> bool {
    matches!(issued, IssuedRequest::Ask(session, ask) if session == id && *ask == number)
}

fn can_elicit(conns: &std::collections::BTreeMap<ConnId, ClientConnection>, conn: ConnId) -> bool {
    conns.get(&conn).is_some_and(|it| !it.finished && it.capabilities.elicitation)
}

/// Whether this is about files or terminals, which the daemon serves if no client does.
fn is_served(frame: &Frame) -> bool {
    frame.known_method().is_some_and(|it| it.is_file() || it.is_terminal())
}

/// Whether this is about a terminal of the daemon, which no client knows.
fn is_of_daemon_terminal(frame: &Frame) -> bool {
    let is_terminal = frame.known_method().is_some_and(Method::is_terminal);
    let params = frame.params().filter(|_| is_terminal);
    let params = params.and_then(|it| serde_json::from_str::<serde_json::Value>(it).ok());
    let terminal = params.as_ref().and_then(|it| it["terminalId"].as_str());
    terminal.is_some_and(|it| it.starts_with(TERMINAL_PREFIX))
}

/// Whether a client announced that it serves this method. Methods without a capability are tried.
fn can_serve(conn: &ClientConnection, method: Option<Method>) -> bool {
    match method {
        Some(Method::FsReadTextFile) => conn.capabilities.read_files,
        Some(Method::FsWriteTextFile) => conn.capabilities.write_files,
        Some(method) if method.is_terminal() => conn.capabilities.terminal,
        _ => true,
    }
}

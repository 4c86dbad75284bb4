//! Requests of agents to the user and to clients. A permission request or elicitation is logged, sent to every client
//! that can answer, and decided by the first answer. Other requests go to one client, to the daemon, or are refused.

use super::{Session, rules::answer_of};
use crate::{
    AgentId, ConnId, Note, Seq, TERMINAL_PREFIX, Time,
    agent::is_journaled,
    budget::ByteCharge,
    log::Effect,
    parts::HubParts,
    peer::{ClientConnection, Clients},
};
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
    pub(super) decision: Option<RawJson>,
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
    /// It is sent to the network proxy of the agent's sandbox, which keeps permanent answers itself.
    NetworkProxy,
    /// The daemon serves this request for a file or a terminal if the answer permits it.
    Served(Frame),
}

impl UserRequest {
    pub(super) fn is_permission(&self) -> bool {
        self.frame.is_method(Method::SessionRequestPermission)
    }

    /// The title that the agent gave.
    fn what(&self) -> String {
        let params = self.frame.params_value();
        let place = if self.is_permission() { "/toolCall/title" } else { "/message" };
        params.pointer(place).and_then(|it| it.as_str()).unwrap_or_default().to_owned()
    }
}

impl Session {
    /// Remembers that a tool call was asked about.
    fn mark_tool_call_asked(&mut self, ask: &Frame) {
        let params = ask.params_value();
        let Some(call) = params["toolCall"]["toolCallId"].as_str() else { return };
        if let Some(turn) = &mut self.turn {
            turn.asked.insert(call.into());
        }
    }

    /// The agent sent a request in this session.
    pub(crate) fn on_agent_request(&mut self, parts: &mut HubParts, agent: AgentId, frame: &Frame) {
        self.mark_activity(&mut parts.cx);
        self.confirm_restored();
        let client_frame = self.with_hub_session_id(frame.clone());
        if is_journaled(frame) {
            return self.open_user_request(parts, agent, client_frame, RequestOrigin::Agent);
        }
        // A client is not in the sandbox of the agent, so it may neither run commands nor access files for it.
        let is_sandboxed = is_served(frame) && parts.agents.sandbox_of(agent).is_some();
        let server = self.find_server(&parts.clients, frame);
        match server.filter(|_| !is_of_daemon_terminal(frame) && !is_sandboxed) {
            Some(conn) => self.issue_direct_request(parts, agent, conn, &client_frame),
            None if is_served(frame) => self.judge_served_request(parts, agent, frame),
            None => parts.cx.refuse_agent_request(agent, frame),
        }
    }

    /// The sandbox of the agent asks about a host.
    pub(crate) fn open_host_request(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        request: &Frame,
    ) {
        let client_frame = self.with_hub_session_id(request.clone());
        self.open_user_request(parts, agent, client_frame, RequestOrigin::NetworkProxy);
    }

    /// The client that serves a request for one client: the one whose prompt runs, else any that can.
    fn find_server(&self, clients: &Clients, frame: &Frame) -> Option<ConnId> {
        let method = frame.known_method();
        let can_serve_it = |conn: &ConnId| {
            let is_observer = self.subscribers.get(conn).is_none_or(|it| it.observer);
            let connection = clients.connections.get(conn);
            !is_observer && connection.is_some_and(|it| !it.finished && can_serve(it, method))
        };
        self.driver()
            .filter(can_serve_it)
            .or_else(|| self.subscribers.keys().copied().find(can_serve_it))
    }

    pub(super) fn open_user_request(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        client_frame: Frame,
        origin: RequestOrigin,
    ) {
        let elicits = client_frame.is_method(Method::ElicitationCreate);
        let frame = match &origin {
            RequestOrigin::Agent | RequestOrigin::NetworkProxy => &client_frame,
            RequestOrigin::Served(request) => request,
        };
        let can_elicit = |it: &ConnId| can_elicit(&parts.clients, *it);
        if elicits && !self.subscribers.keys().any(can_elicit) {
            return parts.cx.refuse_agent_request(agent, frame);
        }
        if parts.cx.config.limits.asks_max <= self.asks.len() {
            let what = format!(
                "{} requests of this session wait for an answer, as many as may; wait for one",
                self.asks.len()
            );
            return parts.cx.defer_agent_request(agent, frame, what);
        }
        let served =
            if matches!(origin, RequestOrigin::Served(_)) { frame.bytes().len() } else { 0 };
        let bytes = client_frame.bytes().len() + served;
        let mut charge = match parts.cx.retained_bytes.charge(&self.kept, bytes) {
            Ok(charge) => charge,
            Err(over) => return parts.cx.defer_agent_request(agent, frame, over.to_string()),
        };
        let number = self.summary().asks + 1;
        let agent_request_id: Box<str> = frame.id().expect("a request has an id").into();
        let decision =
            (!elicits).then(|| self.judge_tool_call(&parts.cx, &client_frame.params_value()));
        let said = decision.as_ref().and_then(|it| parts.cx.config.describe_decision(it));
        let ruled = decision.as_ref().and_then(|it| answer_of(it, &client_frame));
        let facts = decision
            .filter(|_| ruled.is_none())
            .map(|it| self.describe_tool_call(&parts.cx, &client_frame, &origin, &it));
        let asked = RawJson::trusted(client_frame.bytes().clone());
        let (decision, call) = (said.clone(), facts.clone());
        let seq = self.append_event(
            &mut parts.cx,
            EventBody::Asked(UserAsked { ask: number, decision, call, frame: asked }),
        );
        self.mark_tool_call_asked(&client_frame);
        if let Some(result) = ruled {
            self.answer_by_rule(parts, agent, number, &agent_request_id, &result);
            if !is_planted("ask-users-after-rule-answered") {
                return;
            }
        }
        charge.resize(bytes + facts.as_ref().map_or(0, |it| it.bytes().len()));
        let ask = UserRequest {
            seq,
            at: parts.cx.now,
            agent,
            agent_request_id,
            frame: client_frame,
            origin,
            decision: said,
            facts,
            _charge: charge,
        };
        let (what, call) = (ask.what(), ask.facts.clone());
        self.asks.insert(number, ask);
        self.schedule_unanswered_rule(&mut parts.cx, number);
        parts.cx.note(Note::AskOpened { session: self.id.clone(), ask: number, what, call });
    }

    /// A rule answers the request; no client is asked.
    fn answer_by_rule(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        number: u64,
        agent_request_id: &str,
        result: &str,
    ) {
        let by: std::sync::Arc<str> = "policy".into();
        self.remember_closed_request(&parts.cx, number, "answered by a rule".into());
        let answer = RawJson::trusted(format!(r#"{{"result":{result}}}"#));
        self.append_event(
            &mut parts.cx,
            EventBody::Answered(UserAnswered { ask: number, by, answer, peer: None }),
        );
        let text = Frame::result_for(agent_request_id, result).bytes().clone();
        self.run_after_log(parts, Effect::ToAgent { agent, text });
    }

    /// The first answer wins: it is logged, then sent to the agent. An error of a client does not answer a permission
    /// request: that client could not ask its user, and another one still can.
    pub(crate) fn answer_user_request(
        &mut self,
        parts: &mut HubParts,
        number: u64,
        conn: ConnId,
        frame: &Frame,
    ) {
        let permission = self.asks.get(&number).is_some_and(UserRequest::is_permission);
        if permission && frame.result().is_none() && !is_planted("accept-error-as-answer") {
            return;
        }
        let Some(ask) = self.asks.remove(&number) else { return };
        let by = parts.clients.describe_client(conn);
        let keeps_rule = permission && !matches!(ask.origin, RequestOrigin::NetworkProxy);
        let always = frame.result().filter(|_| keeps_rule);
        let once = always.and_then(|it| self.accept_always_answer(&mut parts.cx, number, &ask, it));
        let frame = match &once {
            Some(once) => &Frame::result_for(&ask.agent_request_id, once),
            None => frame,
        };
        let answer = match (frame.result(), frame.error()) {
            (Some(result), _) => format!(r#"{{"result":{result}}}"#),
            (None, error) => format!(r#"{{"error":{}}}"#, error.unwrap_or("null")),
        };
        self.remember_closed_request(&parts.cx, number, format!("answered by {by}").into());
        let (answer, peer) = (RawJson::trusted(answer), parts.clients.describe_peer(conn));
        self.append_event(
            &mut parts.cx,
            EventBody::Answered(UserAnswered { ask: number, by, answer, peer }),
        );
        if permission {
            self.remember_approved_call(&parts.cx, &ask.frame, frame);
        }
        self.deliver_answer(parts, &ask, frame);
        self.mark_agent_used(parts, true);
        if permission {
            self.fail_unapproved_turn(parts, &ask, frame);
        }
    }

    /// The agent withdrew a request. Returns false if it is not an open request of this session.
    pub(crate) fn on_user_request_withdrawn(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        request: &str,
    ) -> bool {
        const WHY: &str = "the agent withdrew it";
        let is_it = |it: &UserRequest| it.agent == agent && &*it.agent_request_id == request;
        let number = self.asks.iter().find(|(_, it)| is_it(it)).map(|(&number, _)| number);
        let Some((number, ask)) = number.and_then(|it| self.asks.remove_entry(&it)) else {
            return false;
        };
        self.remember_closed_request(&parts.cx, number, WHY.into());
        self.append_event(&mut parts.cx, voided(number, WHY));
        let error = Frame::error_for(&ask.agent_request_id, &Fault::Cancelled);
        self.deliver_answer(parts, &ask, &error);
        true
    }

    /// Sends the answer to the agent, or serves the request that it permits.
    pub(super) fn deliver_answer(
        &mut self,
        parts: &mut HubParts,
        ask: &UserRequest,
        answer: &Frame,
    ) {
        match &ask.origin {
            RequestOrigin::Agent | RequestOrigin::NetworkProxy => {
                let text = answer.with_id(&ask.agent_request_id).bytes().clone();
                self.run_after_log(parts, Effect::ToAgent { agent: ask.agent, text });
            }
            RequestOrigin::Served(request) => {
                self.on_served_request_answered(parts, ask.agent, request, answer);
            }
        }
    }

    /// Closes all open requests without an answer. An agent that still runs gets `cancelled`.
    pub(crate) fn close_user_requests(&mut self, parts: &mut HubParts, why: &str) {
        for (number, ask) in std::mem::take(&mut self.asks) {
            self.remember_closed_request(&parts.cx, number, why.into());
            self.append_event(&mut parts.cx, voided(number, why));
            if parts.agents.processes.contains_key(&ask.agent) {
                let result = if ask.is_permission() {
                    r#"{"outcome":{"outcome":"cancelled"}}"#
                } else {
                    r#"{"action":"cancel"}"#
                };
                self.deliver_answer(parts, &ask, &Frame::result_for(&ask.agent_request_id, result));
                self.mark_agent_used(parts, true);
            }
        }
    }
}

/// The event that a request was closed without an answer.
pub(crate) fn voided(ask: u64, why: &str) -> EventBody {
    let answer = serde_json::json!({ "void": why }).to_string();
    let (by, answer) = ("jackfield".into(), RawJson::trusted(answer));
    EventBody::Answered(UserAnswered { ask, by, answer, peer: None })
}

fn can_elicit(clients: &Clients, conn: ConnId) -> bool {
    clients.connections.get(&conn).is_some_and(|it| !it.finished && it.capabilities.elicitation)
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

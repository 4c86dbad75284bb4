//! Messages of agents: responses to pending requests, updates for the log, and requests for clients.

use super::{PendingRequest, Phase};
use crate::{
    AgentId, ConnId, Hub, Note, Output, SessionId,
    agent::Agents,
    context::HubContext,
    limits,
    log::Effect,
    peer::RequestRoute,
    session::{Session, SessionStage, Sessions},
};
use jackfield_events::{AgentMessage, EventBody, RawJson, SettingChanged, TurnOutcome};
use jackfield_protocol::{
    Fault, Frame, Kind, Splice,
    acp::{Durability, Method},
    is_planted,
};
use serde_json::Value;
use std::collections::BTreeSet;

impl Agents {
    /// Takes the updates that the agent sent before it reported the id of this session.
    pub(crate) fn take_updates_before_session_id(
        &mut self,
        agent: AgentId,
        name: &str,
    ) -> Vec<Frame> {
        let Some(agent) = self.processes.get_mut(&agent) else { return Vec::new() };
        let only = agent.slots.only().is_some();
        let is_its = |it: &Frame| only || it.session_id().as_deref() == Some(name);
        let its = agent.updates_before_session_id.extract_if(.., |(it, _)| is_its(it));
        its.map(|(frame, _)| frame).collect()
    }

    /// All session ids are known: updates of unknown sessions are dropped.
    fn drop_unclaimed_updates(&mut self, cx: &mut HubContext, id: AgentId) {
        let Some(agent) = self.processes.get_mut(&id).filter(|it| !it.owes_a_name()) else {
            return;
        };
        for _ in std::mem::take(&mut agent.updates_before_session_id) {
            cx.note(Note::Unclaimed { agent: id });
        }
    }
}

impl HubContext {
    /// Refuses a request that nobody can serve.
    pub(crate) fn refuse_agent_request(&mut self, agent: AgentId, frame: &Frame) {
        let method = frame.method().map(std::borrow::Cow::into_owned).unwrap_or_default();
        self.fail_agent_request(agent, frame, &Fault::MethodNotFound { method });
    }

    /// Refuses a request that cannot be retained until a client answers it.
    pub(crate) fn defer_agent_request(&mut self, agent: AgentId, frame: &Frame, what: String) {
        self.fail_agent_request(agent, frame, &Fault::Overloaded { what });
    }

    fn fail_agent_request(&mut self, agent: AgentId, frame: &Frame, fault: &Fault) {
        let id = frame.id().expect("a request has an id");
        let answer = Frame::error_for(id, fault);
        self.outputs.push_back(Output::ToAgent { agent, text: answer.bytes().clone() });
    }
}

impl Sessions {
    /// The frame with the session id of the hub. A child session of the agent keeps its own id.
    pub(crate) fn with_hub_session_id(&self, id: &SessionId, frame: Frame) -> Frame {
        let Some(session) = self.by_id.get(id) else { return frame };
        if frame.session_id().is_some_and(|it| session.is_called(&it)) {
            frame.with_session_id(id)
        } else {
            frame
        }
    }
}

impl Hub {
    pub(crate) fn on_agent(&mut self, agent: AgentId, frame: Frame) {
        let Some(it) = self.parts.agents.processes.get_mut(&agent) else { return };
        it.last_active_at = self.parts.cx.now;
        match frame.kind() {
            Kind::Response => self.on_agent_answer(agent, &frame),
            Kind::Notification => self.on_agent_notification(agent, frame),
            Kind::Request => self.on_agent_request(agent, &frame),
        }
    }

    fn on_agent_answer(&mut self, id: AgentId, frame: &Frame) {
        let our_id = frame.id().and_then(|it| it.parse::<u64>().ok());
        let agent = self.parts.agents.processes.get_mut(&id).expect("the caller found this agent");
        let Some(waiting) = our_id.and_then(|it| agent.waiting.remove(&it)) else { return };
        if agent.stopping && waiting.is_start() {
            return; // It was asked to stop; its end answers the waiting requests.
        }
        match waiting.session() {
            Some(session) => {
                self.with_session(&session.clone(), |it, parts| it.mark_activity(&mut parts.cx));
            }
            None => self
                .served_by(id)
                .iter()
                .for_each(|it| self.with_session(it, |it, parts| it.mark_activity(&mut parts.cx))),
        }
        let names = waiting.names();
        if waiting.is_start() && !matches!(waiting, PendingRequest::Initialize) {
            self.parts.agents.on_agent_came_up(id);
        }
        match waiting {
            PendingRequest::Initialize => self.on_hello(id, frame),
            PendingRequest::New(session) => self.on_opened(id, &session, frame),
            PendingRequest::Reopen(session, way) => self.on_reopened(id, &session, way, frame),
            PendingRequest::Setting(session, name) => self.on_set(id, &session, &name, frame),
            PendingRequest::Prompt(session, turn) => {
                self.on_prompt_answer(id, &session, turn, frame);
            }
            PendingRequest::Client { conn, id: client_request_id, session, setting, .. } => {
                self.on_own_answer(id, conn, &client_request_id, session, setting, frame);
            }
            PendingRequest::Unwanted => {
                if let Some(agent_session_id) = frame.session_id() {
                    self.parts.agents.close_agent_session(
                        &mut self.parts.cx,
                        id,
                        &agent_session_id,
                        false,
                    );
                }
            }
        }
        if names {
            self.parts.agents.drop_unclaimed_updates(&mut self.parts.cx, id);
        }
    }

    fn on_prompt_answer(&mut self, agent: AgentId, id: &SessionId, turn: u64, frame: &Frame) {
        if self.disowns(agent, id, turn, frame) {
            return; // It never had this session: the try_next_step goes on with the same prompt.
        }
        let outcome = match frame.result() {
            Some(result) => TurnOutcome::Stopped(RawJson::trusted(result.to_owned())),
            None => TurnOutcome::Failed(RawJson::trusted(error_of(frame))),
        };
        self.end_turn(id, turn, outcome);
    }

    /// The answer to a request of a client.
    fn on_own_answer(
        &mut self,
        agent: AgentId,
        conn: ConnId,
        client_request_id: &str,
        session: Option<SessionId>,
        setting: Option<Frame>,
        frame: &Frame,
    ) {
        if let Some(gone) = session.as_ref().filter(|it| !self.sessions.by_id.contains_key(*it)) {
            let fault = Fault::SessionNotFound { session: gone.to_string() };
            return self.parts.clients.answer_request(
                &mut self.parts.cx,
                conn,
                client_request_id,
                Err(&fault),
            );
        }
        let answer = frame.with_id(client_request_id);
        let answer = match session.clone().or_else(|| self.whose(agent, frame)) {
            Some(session) => self.sessions.with_hub_session_id(&session, answer),
            None => answer,
        };
        let Some(session) = session else {
            self.parts.clients.finish_request(conn, client_request_id);
            return self.parts.clients.send(&mut self.parts.cx, conn, answer.bytes().clone());
        };
        if let (Some(setting), Some(result)) = (setting, frame.result()) {
            let frame = RawJson::trusted(setting.bytes().clone());
            let answer = RawJson::trusted(result.to_owned());
            self.sessions.append_event(
                &mut self.parts.cx,
                &session,
                EventBody::Configured(SettingChanged { frame, answer }),
            );
        }
        self.answer_in(&session, conn, &answer);
    }

    /// An agent answered `initialize`.
    fn on_hello(&mut self, id: AgentId, frame: &Frame) {
        let Some(result) = frame.result() else {
            let why = format!("`initialize` was refused: {}", error_of(frame));
            return self.refuse_agent(id, &why);
        };
        if limits::SETUP_BYTES_MAX < result.len() {
            let why = format!(
                "its answer to `initialize` has {} bytes, and at most {} are kept",
                result.len(),
                limits::SETUP_BYTES_MAX
            );
            return self.refuse_agent(id, &why);
        }
        let initialize_result: Value = serde_json::from_str(result).unwrap_or_default();
        let agent = self.parts.agents.processes.get_mut(&id).expect("the caller found this agent");
        agent.phase = Phase::Ready;
        agent.initialize_result = Some(result.into());
        agent.capabilities.load =
            initialize_result.pointer("/agentCapabilities/loadSession") == Some(&Value::Bool(true));
        agent.capabilities.resume = initialize_result
            .pointer("/agentCapabilities/sessionCapabilities/resume")
            .is_some_and(|it| !it.is_null());
        agent.capabilities.fork = initialize_result
            .pointer("/agentCapabilities/sessionCapabilities/fork")
            .is_some_and(|it| !it.is_null());
        agent.capabilities.close = initialize_result
            .pointer("/agentCapabilities/sessionCapabilities/close")
            .is_some_and(|it| !it.is_null());
        let name = agent.launch.name.clone();
        for (conn, request) in std::mem::take(&mut agent.pending_initialize) {
            let initialize_result = self.parts.clients.describe_capabilities(conn, &name, result);
            self.parts.clients.answer_request(
                &mut self.parts.cx,
                conn,
                &request,
                Ok(&initialize_result),
            );
        }
        if self.parts.agents.processes.get(&id).is_some_and(|it| it.slots.sessions.is_empty()) {
            self.parts.agents.on_agent_came_up(id); // Nobody needs more of it for now.
        }
        for session in self.served_by(id) {
            self.on_agent_ready(id, &session);
        }
    }

    fn on_agent_notification(&mut self, id: AgentId, frame: Frame) {
        let method = frame.known_method();
        if method == Some(Method::CancelRequest) {
            return self.on_ask_withdrawn(id, &frame);
        }
        if frame.is_control() {
            // Clients take such messages for messages of the hub.
            return self.parts.cx.note(Note::Unclaimed { agent: id });
        }
        let agent = self.parts.agents.processes.get(&id).expect("the caller found this agent");
        if let Some(session) = self.whose(id, &frame) {
            let journaled = method.is_some_and(is_journaled_method);
            self.on_words(id, &session, frame, journaled);
        } else if agent.slots.is_unused() || frame.session_id().is_none() {
            self.tell_everyone(id, &frame);
        } else if agent.owes_a_name() {
            self.keep_early(id, frame);
        } else {
            self.parts.cx.note(Note::Unclaimed { agent: id });
        }
    }

    /// The session that a frame concerns. A process that has had only one session means that one: it may use the ids of
    /// child sessions.
    fn whose(&self, agent: AgentId, frame: &Frame) -> Option<SessionId> {
        let agent = self.parts.agents.processes.get(&agent)?;
        match agent.slots.only() {
            Some(only) => Some(only.clone()),
            None => self.sessions.find_by_agent_session_id(agent, &frame.session_id()?),
        }
    }

    /// Sends a message about no session once to each client of the process.
    fn tell_everyone(&mut self, agent: AgentId, frame: &Frame) {
        let mut notified: BTreeSet<ConnId> = BTreeSet::new();
        for id in self.served_by(agent) {
            let subscribers = self.sessions.by_id[&id].subscribers.keys().copied();
            for conn in subscribers.collect::<Vec<_>>() {
                if notified.insert(conn) {
                    let text = frame.bytes().clone();
                    self.after_log(&id, Effect::ToClient { conn, text });
                }
            }
        }
        let spares = self.parts.agents.processes.get(&agent).map(|it| it.slots.spares.clone());
        for conn in spares.into_iter().flatten().filter(|it| !notified.contains(it)) {
            self.parts.clients.send(&mut self.parts.cx, conn, frame.bytes().clone());
        }
    }

    /// Retains updates that an agent sends before it reports the id of the session, in order and up to a limit.
    fn keep_early(&mut self, id: AgentId, frame: Frame) {
        let agent = self.parts.agents.processes.get_mut(&id).expect("the caller found this agent");
        let max = self.parts.cx.config.limits.early_max;
        let why = match self.parts.cx.retained_bytes.charge(&agent.kept, frame.bytes().len()) {
            Ok(charge) if agent.updates_before_session_id.len() < max => {
                if is_planted("keep-last-early-update") {
                    agent.updates_before_session_id.clear();
                }
                return agent.updates_before_session_id.push((frame, charge));
            }
            Ok(_) => format!("more than {max} messages"),
            Err(over) => over.to_string(),
        };
        self.refuse_agent(
            id,
            &format!("it says too much before it has answered `session/new`: {why}"),
        );
    }

    /// Handles an update in a session: logs it, forwards it, or retains it while the session is being opened.
    fn on_words(&mut self, agent: AgentId, id: &SessionId, mut frame: Frame, journaled: bool) {
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        if session.agent != Some(agent) && !is_planted("accept-frames-of-released-agent") {
            return; // The session let go of it; another may serve it by now.
        }
        let missing = session.activity.mark(self.parts.cx.now);
        match &mut session.stage {
            SessionStage::Opening(_) => return self.keep_early(agent, frame),
            SessionStage::Restoring(restoring) if restoring.is_nameless() => {
                return self.keep_early(agent, frame);
            }
            SessionStage::Restoring(restoring) => {
                let Some(new) = restoring.hear(frame, journaled, self.parts.cx.now) else {
                    return; // It tells what was said before, and the journal has that.
                };
                frame = new;
            }
            SessionStage::Importing(_) | SessionStage::Bound | SessionStage::Asleep => {}
        }
        if missing {
            self.with_session(id, |it, parts| it.watch_activity(&mut parts.cx));
        }
        let frame = self.sessions.with_hub_session_id(id, frame);
        if journaled {
            self.sessions.confirm_restored(id);
            let session = self.sessions.by_id.get_mut(id).expect("found above");
            let turn = session.summary().turns;
            let late = session.turn.is_none() && turn != 0;
            let words = RawJson::trusted(frame.bytes().clone());
            self.sessions.append_event(
                &mut self.parts.cx,
                id,
                EventBody::Said(AgentMessage { turn, late, frame: words }),
            );
            self.sessions.note_tool_call(&mut self.parts.cx, id, &frame);
        } else {
            self.after_log(id, Effect::ToSubscribers { text: frame.bytes().clone() });
        }
        self.ease_agent(id);
    }

    fn on_agent_request(&mut self, id: AgentId, frame: &Frame) {
        if frame.is_control() {
            return self.parts.cx.refuse_agent_request(id, frame);
        }
        if let Some(request) = frame.request_id() {
            // It concerns a request of a client, so only that client understands it.
            let Some((conn, client_request_id)) = self.asker(id, request) else {
                return self.parts.cx.refuse_agent_request(id, frame);
            };
            let session = self.parts.agents.session_of_request(id, request.parse().unwrap_or(0));
            let splice = Splice { request_id: Some(&client_request_id), ..Splice::default() };
            let mut frame = frame.spliced(splice);
            if let Some(session) = session.clone().or_else(|| self.whose(id, &frame)) {
                frame = self.sessions.with_hub_session_id(&session, frame);
            }
            return self.issue_passing(id, session.as_ref(), conn, &frame);
        }
        let serves = |it: &Session| it.agent == Some(id) && !it.is_opening();
        let session = self.whose(id, frame);
        let serving = session.filter(|it| self.sessions.by_id.get(it).is_some_and(serves));
        let Some(session) = serving else {
            // It names no session, or one that is unknown or no longer served by this agent: nobody can be asked.
            return self.parts.cx.refuse_agent_request(id, frame);
        };
        self.with_session(&session, |it, parts| it.mark_activity(&mut parts.cx));
        self.sessions.confirm_restored(&session);
        self.on_ask(id, &session, frame);
    }

    /// The client and its request that the agent has with this request id.
    pub(crate) fn asker(&self, agent: AgentId, our_id: &str) -> Option<(ConnId, Box<str>)> {
        let our_id: u64 = our_id.parse().ok()?;
        let by_route = |conn: &crate::peer::ClientConnection| {
            let mut routes = conn.requests.iter();
            routes
                .find(|(_, it)| **it == RequestRoute::Agent(agent, our_id))
                .map(|(id, _)| id.clone())
        };
        match self.parts.agents.processes.get(&agent)?.waiting.get(&our_id)? {
            PendingRequest::New(session) => {
                let session = self.sessions.by_id.get(session)?;
                let SessionStage::Opening(opening) = &session.stage else { return None };
                return Some((opening.conn, opening.request.clone()));
            }
            PendingRequest::Prompt(session, turn) => {
                let session = self.sessions.by_id.get(session)?;
                let driver = session.driver()?;
                let request = session.subscribers.get(&driver)?.owed.get(turn)?.first()?;
                return Some((driver, request.clone()));
            }
            _ => {}
        }
        self.parts
            .clients
            .connections
            .iter()
            .find_map(|(&id, conn)| by_route(conn).map(|request| (id, request)))
    }
}

/// Whether messages of this kind are logged.
pub(crate) fn is_journaled(frame: &Frame) -> bool {
    frame.known_method().is_some_and(is_journaled_method)
}

fn is_journaled_method(method: Method) -> bool {
    method.row().durability == Durability::Journaled
}

/// The error object of a response, or one that says that there was none.
pub(crate) fn error_of(frame: &Frame) -> String {
    let none = r#"{"code":-32603,"message":"the agent answered with neither result nor error"}"#;
    frame.error().unwrap_or(none).to_owned()
}

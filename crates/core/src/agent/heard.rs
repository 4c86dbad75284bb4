//! What agents say: answers to whoever waits, words for the log, and asks for clients.

use super::{Phase, Purpose, Waiting};
use crate::{
    AgentId, Hub, Output, SessionId,
    log::{Body, Effect, Json, Outcome},
    peer::{Route, hub_capabilities},
    session::Stage,
};
use jackfield_wire::{Fault, Frame, Kind, Splice, acp};
use serde_json::Value;

impl Hub {
    pub(crate) fn on_agent(&mut self, agent: AgentId, frame: Frame) {
        let Some(it) = self.agents.get_mut(&agent) else { return };
        if it.pulse.beat(self.now) {
            self.watch(agent);
        }
        match frame.kind() {
            Kind::Response => self.on_agent_answer(agent, &frame),
            Kind::Notification => self.on_agent_notification(agent, frame),
            Kind::Request => self.on_agent_request(agent, &frame),
        }
    }

    fn on_agent_answer(&mut self, id: AgentId, frame: &Frame) {
        let our_id = frame.id().and_then(|it| it.parse::<u64>().ok());
        let agent = self.agents.get_mut(&id).expect("the caller found this agent");
        let Some(waiting) = our_id.and_then(|it| agent.waiting.remove(&it)) else { return };
        if agent.stopping && waiting.is_start() {
            return; // Too late: it was let go, and whoever waits hears of its end.
        }
        match waiting {
            Waiting::Initialize => self.on_hello(id, frame),
            Waiting::New(session) => self.on_opened(id, &session, frame),
            Waiting::Reopen(session, way) => self.on_reopened(id, &session, way, frame),
            Waiting::Setting(session, name) => self.on_set(id, &session, &name, frame),
            Waiting::Prompt(session, turn) => {
                if self.disowns(id, &session, turn, frame) {
                    return; // It never had this session: the climb goes on with the same prompt.
                }
                let outcome = match frame.result() {
                    Some(result) => Outcome::Stopped(Json::trusted(result.to_owned())),
                    None => Outcome::Failed(Json::trusted(error_of(frame))),
                };
                self.end_turn(&session, turn, outcome);
            }
            Waiting::Client { conn, id: theirs, session, setting } => {
                let answer = frame.with_id(&theirs);
                if let Some(gone) = session.as_ref().filter(|it| !self.sessions.contains_key(*it)) {
                    let fault = Fault::SessionNotFound { session: gone.to_string() };
                    return self.answer(conn, &theirs, Err(&fault));
                }
                let answer = match &self.agents[&id].purpose {
                    Purpose::Session(session) => self.as_ours(session, answer),
                    Purpose::Spare(_) | Purpose::Warm => answer,
                };
                let Some(session) = session else {
                    self.finish_request(conn, &theirs);
                    return self.send(conn, answer.bytes().clone());
                };
                if let (Some(setting), Some(result)) = (setting, frame.result()) {
                    let frame = Json::trusted(setting.bytes().clone());
                    let result = Json::trusted(result.to_owned());
                    self.append(&session, Body::Configured { frame, result });
                }
                self.answer_in(&session, conn, &answer);
            }
        }
    }

    /// An agent answered `initialize`.
    fn on_hello(&mut self, id: AgentId, frame: &Frame) {
        let Some(result) = frame.result() else {
            let why = format!("`initialize` was refused: {}", error_of(frame));
            return self.refuse_agent(id, &why);
        };
        let told: Value = serde_json::from_str(result).unwrap_or_default();
        let agent = self.agents.get_mut(&id).expect("the caller found this agent");
        agent.phase = Phase::Ready;
        agent.told = Some(result.into());
        agent.can.load = told.pointer("/agentCapabilities/loadSession") == Some(&Value::Bool(true));
        agent.can.resume = told
            .pointer("/agentCapabilities/sessionCapabilities/resume")
            .is_some_and(|it| !it.is_null());
        agent.can.fork = told
            .pointer("/agentCapabilities/sessionCapabilities/fork")
            .is_some_and(|it| !it.is_null());
        let purpose = agent.purpose.clone();
        if let Some((conn, request)) = agent.introduces.take() {
            self.answer(conn, &request, Ok(&hub_capabilities(Some(result))));
        }
        if let Purpose::Session(session) = purpose {
            self.on_agent_ready(id, &session);
        }
    }

    fn on_agent_notification(&mut self, id: AgentId, frame: Frame) {
        let agent = self.agents.get(&id).expect("the caller found this agent");
        let session = match &agent.purpose {
            Purpose::Session(session) => session.clone(),
            Purpose::Warm => return, // There is nobody it could mean.
            Purpose::Spare(conn) => {
                let conn = *conn;
                if frame.method().as_deref() == Some("$/cancel_request") {
                    return self.on_passing_withdrawn(id, &frame);
                }
                return self.send(conn, frame.bytes().clone());
            }
        };
        let method = frame.method();
        if method.as_deref() == Some("$/cancel_request") {
            return self.on_ask_withdrawn(id, &session, &frame);
        }
        let journaled = method
            .and_then(|it| acp::method(&it))
            .is_some_and(|row| row.durability == acp::Durability::Journaled);
        self.on_words(id, &session, frame, journaled);
    }

    /// Words of a session's agent: into the log, or past it, or aside while it is being opened.
    fn on_words(&mut self, agent: AgentId, id: &SessionId, mut frame: Frame, journaled: bool) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.agent != Some(agent) {
            return; // The session let go of it; another may serve it by now.
        }
        match &mut session.stage {
            Stage::Opening(opening) => {
                if !opening.keep(frame, self.config.limits.early_max) {
                    self.refuse_agent(
                        agent,
                        "it talks without end before it answers `session/new`",
                    );
                }
                return;
            }
            Stage::Waking(waking) => {
                let max = self.config.limits.early_max;
                let Some(new) = waking.hear(frame, journaled, self.now, max) else {
                    return; // It tells what was said before, and the journal has that.
                };
                frame = new;
            }
            Stage::Importing(_) | Stage::Bound | Stage::Asleep => {}
        }
        let frame = self.as_ours(id, frame);
        if journaled {
            self.prove(id);
            let session = self.sessions.get_mut(id).expect("found above");
            let turn = session.state.turns;
            let late = session.turn.is_none() && turn != 0;
            let words = Json::trusted(frame.bytes().clone());
            self.append(id, Body::Said { turn, late, frame: words });
            self.look_at(id, &frame);
        } else {
            self.after_log(id, Effect::ToSubscribers { text: frame.bytes().clone() });
        }
        self.ease_agent(id);
    }

    /// The frame with the hub's session id. A child session of the agent's keeps its own name.
    pub(crate) fn as_ours(&self, id: &SessionId, frame: Frame) -> Frame {
        let Some(session) = self.sessions.get(id) else { return frame };
        if frame.session_id().is_some_and(|it| session.is_called(&it)) {
            frame.with_session_id(id)
        } else {
            frame
        }
    }

    fn on_agent_request(&mut self, id: AgentId, frame: &Frame) {
        let agent = self.agents.get(&id).expect("the caller found this agent");
        let purpose = agent.purpose.clone();
        if let Some(request) = frame.request_id() {
            // About a request of a client's own: only that client understands it.
            let Some((conn, theirs)) = self.asker(id, request) else {
                return self.refuse_ask(id, frame);
            };
            let splice = Splice { request_id: Some(&theirs), ..Splice::default() };
            let frame = frame.spliced(splice);
            return match purpose {
                Purpose::Session(session) => {
                    let frame = self.as_ours(&session, frame);
                    self.issue_passing(id, Some(&session), conn, &frame);
                }
                Purpose::Spare(_) | Purpose::Warm => self.issue_passing(id, None, conn, &frame),
            };
        }
        let Purpose::Session(session) = purpose else {
            return self.refuse_ask(id, frame);
        };
        let serves = |it: &crate::session::Session| it.agent == Some(id) && !it.is_opening();
        if !self.sessions.get(&session).is_some_and(serves) {
            // Nobody knows this session yet, or it let go of this agent: nobody can be asked.
            return self.refuse_ask(id, frame);
        }
        self.prove(&session);
        self.on_ask(id, &session, frame);
    }

    /// Answers an ask that nobody can serve.
    pub(crate) fn refuse_ask(&mut self, agent: AgentId, frame: &Frame) {
        let method = frame.method().map(std::borrow::Cow::into_owned).unwrap_or_default();
        let id = frame.id().expect("a request has an id");
        let answer = Frame::error_for(id, &Fault::MethodNotFound { method });
        self.outputs.push_back(Output::ToAgent { agent, text: answer.bytes().clone() });
    }

    /// The request of a client that an agent has under `our_id`.
    pub(crate) fn asker(&self, agent: AgentId, our_id: &str) -> Option<(crate::ConnId, Box<str>)> {
        let our_id: u64 = our_id.parse().ok()?;
        let by_route = |conn: &crate::peer::Conn| {
            let mut routes = conn.requests.iter();
            routes.find(|(_, it)| **it == Route::Agent(agent, our_id)).map(|(id, _)| id.clone())
        };
        match self.agents.get(&agent)?.waiting.get(&our_id)? {
            Waiting::New(session) => {
                let session = self.sessions.get(session)?;
                let Stage::Opening(opening) = &session.stage else { return None };
                return Some((opening.conn, opening.request.clone()));
            }
            Waiting::Prompt(session, turn) => {
                let session = self.sessions.get(session)?;
                let driver = session.driver()?;
                let request = session.subscribers.get(&driver)?.owed.get(turn)?;
                return Some((driver, request.clone()));
            }
            _ => {}
        }
        self.conns.iter().find_map(|(&id, conn)| by_route(conn).map(|request| (id, request)))
    }
}

/// The error object of an answer, or one that says there was none.
pub(crate) fn error_of(frame: &Frame) -> String {
    let none = r#"{"code":-32603,"message":"the agent answered with neither result nor error"}"#;
    frame.error().unwrap_or(none).to_owned()
}

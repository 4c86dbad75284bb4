//! Waking: a session without an agent gets one again, by the highest rung the agent can stand on.
//! No prompt is sent before the agent has the session back, and none is sent twice.

use super::{Stage, open::without_session_id};
use crate::{
    AgentId, Hub, Launch, Note, SessionId,
    agent::{Purpose, Verdict, Waiting, error_of},
    log::{Body, Json, Rung},
    timer::Timer,
};
use jackfield_wire::{Fault, Frame};
use serde_json::{Value, json};
use std::path::PathBuf;

impl Hub {
    pub(crate) fn wake(&mut self, id: &SessionId) {
        if self.stopping {
            return self.refuse_waiting(id, &Fault::Stopping);
        }
        let session = self.sessions.get_mut(id).expect("the caller found this session");
        match session.restarts.verdict(self.now) {
            Verdict::Now => {}
            Verdict::At(at) => return self.timers.set(at, Timer::Wake(id.clone())),
            Verdict::GiveUp { ends, until } => {
                let wait = (until.0.saturating_sub(self.now.0)).div_ceil(1000);
                let why = format!("its agent ended {ends} times; try again in {wait} s");
                let session = id.to_string();
                return self.refuse_waiting(id, &Fault::CannotResume { session, why });
            }
        }
        let asker = session.queue.front().map(|it| it.conn);
        let asker = asker.or_else(|| session.parked.front().map(|it| it.0));
        session.stage = Stage::Waking { loading: false };
        let launch = self.launch_again(id, asker);
        let spare = asker.and_then(|it| self.take_spare(it, &launch, id));
        let agent =
            spare.unwrap_or_else(|| self.spawn(launch, asker, Purpose::Session(id.clone())));
        self.sessions.get_mut(id).expect("found above").agent = Some(agent);
        if self.agents[&agent].is_ready() {
            self.climb(agent, id);
        }
    }

    /// How the session's agent is started: as the asking client would, if it is the same agent.
    fn launch_again(&self, id: &SessionId, asker: Option<crate::ConnId>) -> Launch {
        let state = &self.sessions[id].state;
        let of_conn = asker.and_then(|it| self.conns.get(&it)).and_then(|it| it.launch.as_ref());
        let same = |it: &&Launch| it.name == state.agent;
        let known = of_conn.filter(same).or_else(|| self.config.agents.get(&state.agent));
        Launch {
            name: state.agent.clone(),
            argv: known.map_or_else(|| state.argv.clone(), |it| it.argv.clone()),
            cwd: PathBuf::from(&state.cwd),
            env: known.and_then(|it| it.env.clone()),
        }
    }

    /// Asks the agent for the session, in the best way it announced.
    pub(crate) fn climb(&mut self, agent: AgentId, id: &SessionId) {
        let can = self.agents[&agent].can;
        let params = self.reopen_params(id);
        if can.resume {
            self.ask_agent(agent, "session/resume", &params, Waiting::Resume(id.clone()));
        } else if can.load {
            self.load(agent, id, &params);
        } else {
            self.give_up(id, "the agent can neither resume nor load sessions");
        }
    }

    fn load(&mut self, agent: AgentId, id: &SessionId, params: &str) {
        let session = self.sessions.get_mut(id).expect("the caller found this session");
        session.stage = Stage::Waking { loading: true };
        self.ask_agent(agent, "session/load", params, Waiting::Load(id.clone()));
    }

    /// What `session/new` was asked with, for the session the agent knows by its own id.
    fn reopen_params(&self, id: &SessionId) -> String {
        let state = &self.sessions[id].state;
        let mut params: Value = serde_json::from_str(state.params.as_str()).unwrap_or_default();
        if !params.is_object() {
            params = json!({});
        }
        params["sessionId"] = json!(&*state.agent_session);
        params["cwd"] = json!(state.cwd);
        if params.get("mcpServers").is_none() {
            params["mcpServers"] = json!([]);
        }
        params.to_string()
    }

    pub(crate) fn on_resumed(&mut self, agent: AgentId, id: &SessionId, frame: &Frame) {
        if !self.sessions.contains_key(id) {
            return self.stop_agent(agent);
        }
        if let Some(result) = frame.result() {
            self.bind(agent, id, Rung::Resumed, result);
        } else if self.agents[&agent].can.load {
            let params = self.reopen_params(id);
            self.load(agent, id, &params);
        } else {
            self.give_up(id, &format!("`session/resume` was refused: {}", error_of(frame)));
        }
    }

    pub(crate) fn on_loaded(&mut self, agent: AgentId, id: &SessionId, frame: &Frame) {
        if !self.sessions.contains_key(id) {
            return self.stop_agent(agent);
        }
        match frame.result() {
            Some(result) => self.bind(agent, id, Rung::Reloaded, result),
            None => self.give_up(id, &format!("`session/load` was refused: {}", error_of(frame))),
        }
    }

    /// The agent has the session back: settings again, then whatever waited.
    fn bind(&mut self, agent: AgentId, id: &SessionId, rung: Rung, result: &str) {
        let session = self.sessions.get_mut(id).expect("the caller found this session");
        session.stage = Stage::Bound;
        let theirs = session.state.agent_session.clone();
        let mode = session.state.mode.clone();
        let config: Vec<Json> = session.state.config.values().cloned().collect();
        let setup = Json::trusted(without_session_id(result));
        self.append(id, Body::Bound { rung, setup });
        self.note(Note::SessionWoke { session: id.clone(), agent, rung: rung.as_str() });
        if let Some(mode) = mode {
            let params = json!({ "sessionId": &*theirs, "modeId": mode }).to_string();
            self.ask_agent(agent, "session/set_mode", &params, Waiting::Nobody);
        }
        for option in config {
            let mut params: Value = serde_json::from_str(option.as_str()).unwrap_or_default();
            params["sessionId"] = json!(&*theirs);
            let params = params.to_string();
            self.ask_agent(agent, "session/set_config_option", &params, Waiting::Nobody);
        }
        self.pump(id);
    }

    /// No rung holds: whoever waits is told, the session sleeps, the log is still there.
    fn give_up(&mut self, id: &SessionId, why: &str) {
        let now = self.now;
        let fault = Fault::CannotResume { session: id.to_string(), why: why.to_owned() };
        if let Some(session) = self.sessions.get_mut(id) {
            session.restarts.ended(now);
        }
        self.release_agent(id);
        self.refuse_waiting(id, &fault);
    }
}

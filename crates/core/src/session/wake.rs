//! Waking: a session without an agent gets one again, by the highest rung the agent can stand on.
//! No prompt is sent before the agent has the session back, and none is sent twice.

use super::{Stage, open::without_session_id};
use crate::{
    AgentId, Hub, Launch, Note, SessionId, Time,
    agent::{Agent, Purpose, Start, Verdict, Waiting, error_of},
    limits,
    log::{Body, Json, Rung},
    timer::Timer,
};
use jackfield_wire::{Fault, Frame};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Updates that say what a session is now, and never what was said in it. A title or a mode is not
/// among them: in a replay it is an old one, and the journal has the last.
const PRESENT: [&str; 3] = ["available_commands_update", "config_option_update", "usage_update"];

/// A session on its way back to an agent.
#[derive(Debug, Default)]
pub(crate) struct Waking {
    /// `session/load` was asked, so the agent tells the session's past.
    loading: bool,
    /// It said the user's words, and nobody has prompted it: it tells the past, asked or not.
    retells: bool,
    /// It has answered `session/load` and may not have told all.
    loaded: Option<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    setup: String,
    quiet_at: Time,
    latest: Time,
}

impl Waking {
    /// Whether an update tells the past. Some agents do so on `session/resume`, which should not,
    /// and some go on after they have answered `session/load`.
    pub(crate) fn is_past(&mut self, update: &Frame, now: Time) -> bool {
        let kind = update.update().unwrap_or_default();
        if PRESENT.contains(&&*kind) {
            return false;
        }
        self.retells |= kind == "user_message_chunk";
        if let Some(loaded) = &mut self.loaded {
            loaded.quiet_at = now.plus(limits::LOAD_QUIET_MS).min(loaded.latest);
        }
        self.loading || self.retells
    }
}

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
        if !self.has_place(&Start::Session(id.clone())) {
            return;
        }
        let session = self.sessions.get_mut(id).expect("found above");
        let asker = session.queue.front().map(|it| it.conn);
        let asker = asker.or_else(|| session.parked.front().map(|it| it.0));
        session.stage = Stage::Waking(Waking::default());
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
            // One that is known by name only may have been started with a command all the same.
            argv: known
                .map(|it| &it.argv)
                .filter(|it| !it.is_empty())
                .unwrap_or(&state.argv)
                .clone(),
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
        if let Some(waking) = self.waking(id) {
            waking.loading = true;
        }
        self.ask_agent(agent, "session/load", params, Waiting::Load(id.clone()));
    }

    fn waking(&mut self, id: &SessionId) -> Option<&mut Waking> {
        match &mut self.sessions.get_mut(id)?.stage {
            Stage::Waking(waking) => Some(waking),
            _ => None,
        }
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
        let Some(result) = frame.result() else {
            return self.give_up(id, &format!("`session/load` was refused: {}", error_of(frame)));
        };
        let now = self.now;
        match self.waking(id).filter(|it| it.retells) {
            Some(waking) => {
                let quiet_at = now.plus(limits::LOAD_QUIET_MS);
                let latest = now.plus(limits::LOAD_QUIET_MS_MAX);
                waking.loaded = Some(Loaded { setup: result.into(), quiet_at, latest });
                self.timers.set(quiet_at, Timer::Loaded(id.clone()));
            }
            None => self.bind(agent, id, Rung::Reloaded, result),
        }
    }

    /// Time has passed since a load: if nothing was said in it, the agent's words are new from here.
    pub(crate) fn on_quiet(&mut self, id: &SessionId) {
        let now = self.now;
        let agent = self.sessions.get(id).and_then(|it| it.agent);
        let ready = |it: &AgentId| self.agents.get(it).is_some_and(Agent::is_ready);
        // One that was let go meanwhile is not bound: whoever waits hears of its end.
        let Some(agent) = agent.filter(ready) else { return };
        let Some(waking) = self.waking(id) else { return };
        if let Some(loaded) = waking.loaded.take_if(|it| it.quiet_at <= now) {
            self.bind(agent, id, Rung::Reloaded, &loaded.setup);
        } else if let Some(loaded) = &waking.loaded {
            let at = loaded.quiet_at;
            self.timers.set(at, Timer::Loaded(id.clone()));
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
        let tried = Json::null();
        self.append(id, Body::Bound { rung, setup, agent_session: None, tried });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_without_end_is_waited_for_only_so_long() {
        let said = r#"{"method":"session/update","params":{"update":{"sessionUpdate":"user_message_chunk"}}}"#;
        let said = Frame::parse_str(said).unwrap();
        let loaded = Loaded { setup: String::new(), quiet_at: Time(100), latest: Time(5_000) };
        let mut waking = Waking { loading: true, retells: true, loaded: Some(loaded) };
        let mut quiet_at = |now: u64| {
            assert!(waking.is_past(&said, Time(now)));
            waking.loaded.as_ref().unwrap().quiet_at
        };
        assert_eq!(quiet_at(90), Time(90 + limits::LOAD_QUIET_MS));
        assert_eq!(quiet_at(4_990), Time(5_000));
    }
}

//! Liveness: what a session waits for, since when, and whether that is longer than usual. Only messages of the agent count
//! as progress. A person who is asked may take any time.

use super::{Session, list::rfc3339, sentence};
use crate::{
    Hub, SessionId, Time,
    agent::{Agent, AgentStart, Agents, Phase as Stand},
    config::WaitPhase,
    context::HubContext,
    session::Sessions,
};
use jackfield_events::{AgentQuiet, EventBody};
use jackfield_protocol::is_planted;
use serde_json::{Value, json};

impl Agents {
    /// The number of starts before this session in the start queue.
    fn start_queue_position(&self, id: &SessionId) -> Option<usize> {
        self.starts.iter().position(|it| matches!(it, AgentStart::Session(it) if it == id))
    }
}

impl Session {
    /// What the session waits for, as a sentence.
    fn describe_wait(&self, phase: WaitPhase, now: Time) -> String {
        let silent = now.since(self.activity.since);
        let request = self.asks.iter().next().map(|(number, it)| (*number, it.at));
        sentence::of(phase, silent, &self.calls, request, now)
    }
}

impl Sessions {
    /// Logs once that the agent is silent.
    fn append_quiet_event(
        &mut self,
        cx: &mut HubContext,
        id: &SessionId,
        phase: WaitPhase,
        since: Time,
    ) {
        let session = self.by_id.get_mut(id).expect("the caller found this session");
        session.activity.quiet = Some(since);
        if session.is_opening() {
            return;
        }
        let turn = session.turn.as_ref().map_or(0, |it| it.number);
        let waits = session.describe_wait(phase, cx.now).into();
        let phase = phase.as_str().into();
        self.append_event(cx, id, EventBody::Quiet(AgentQuiet { turn, phase, since, waits }));
    }
}

impl Hub {
    /// What a session with a process waits for; nothing if it is idle.
    fn phase(id: &SessionId, session: &Session, agent: &Agent) -> Option<WaitPhase> {
        if !session.asks.is_empty() && !is_planted("ignore-open-request-in-liveness") {
            return Some(WaitPhase::Human);
        }
        if agent.phase == Stand::Initializing {
            let starts = agent.pid.is_none();
            return Some(if starts { WaitPhase::Starting } else { WaitPhase::Initializing });
        }
        if agent.waiting.values().any(|it| it.is_start() && it.session() == Some(id)) {
            return Some(WaitPhase::Opening);
        }
        session.turn.as_ref()?;
        let runs = session.calls.running().next().is_some();
        Some(if runs { WaitPhase::Tool } else { WaitPhase::Thinking })
    }

    /// Checks whether the agent is silent for too long.
    pub(crate) fn on_silence(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.by_id.get_mut(id) else { return };
        session.activity.looked();
        let (since, said) = (session.activity.since, session.activity.quiet.is_some());
        let agent = session.agent.and_then(|it| self.parts.agents.processes.get(&it));
        let Some(agent) = agent.filter(|it| !it.stopping) else { return };
        let paused = agent.paused;
        let Some(phase) = Hub::phase(id, session, agent) else { return };
        let Some((soft, hard)) = self.parts.cx.config.liveness.of(phase) else { return };
        if paused || 0 < session.log.failed_appends() {
            // The agent may have sent much that is not read or stored until the journal accepts events again.
            let at = self.parts.cx.now.plus(soft);
            return self.with_session(id, |it, parts| it.schedule_silence_check(&mut parts.cx, at));
        }
        let over = hard.map(|it| since.plus(it));
        if over.is_some_and(|it| it <= self.parts.cx.now) {
            return self.end_overdue(id, phase);
        }
        if self.parts.cx.now < since.plus(soft) {
            let due = since.plus(soft);
            let at = over.map_or(due, |it| it.min(due));
            return self.with_session(id, |it, parts| it.schedule_silence_check(&mut parts.cx, at));
        }
        if !said {
            self.sessions.append_quiet_event(&mut self.parts.cx, id, phase, since);
        }
        if let Some(over) = over {
            self.with_session(id, |it, parts| it.schedule_silence_check(&mut parts.cx, over));
        }
    }

    /// Cancels a turn that was silent for longer than the configuration permits.
    fn end_overdue(&mut self, id: &SessionId, phase: WaitPhase) {
        let why = self.sessions.by_id[id].describe_wait(phase, self.parts.cx.now);
        let why = format!("the limit of `[liveness]` was reached: {why}");
        self.stop_overdue(id, why);
    }

    /// The state of a session for lists.
    pub(crate) fn shown(&self, id: &SessionId, session: &Session) -> &'static str {
        if self.parts.storage.describe_wait(session).is_some() {
            return "stalled";
        }
        if session.agent.is_some() && session.activity.quiet.is_some() {
            return "quiet";
        }
        if self.parts.agents.start_queue_position(id).is_some() {
            "waiting"
        } else {
            session.shown()
        }
    }

    /// What a session does, for lists: `phase`, `doing`, `quietSince`.
    pub(crate) fn tell_doing(&self, id: &SessionId, session: &Session, row: &mut Value) {
        if let Some(doing) = self.parts.storage.describe_wait(session) {
            row["phase"] = json!("storage");
            row["doing"] = json!(doing);
            return;
        }
        if self.parts.agents.start_queue_position(id).is_some() {
            let places = self.parts.cx.config.sleep.max_live.unwrap_or(0).max(1);
            row["phase"] = json!("waiting");
            row["doing"] = json!(sentence::in_line(places));
            return;
        }
        let Some(agent) = session.agent.and_then(|it| self.parts.agents.processes.get(&it)) else {
            return;
        };
        let Some(phase) = Hub::phase(id, session, agent) else { return };
        row["phase"] = json!(phase.as_str());
        row["doing"] = json!(session.describe_wait(phase, self.parts.cx.now));
        if let Some(since) = session.activity.quiet {
            row["quietSince"] = json!(rfc3339(since.0));
        }
    }
}

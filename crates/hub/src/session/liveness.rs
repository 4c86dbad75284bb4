//! Liveness: what a session waits for, since when, and whether that is longer than usual. Only what
//! the agent says counts as progress; a human who is asked may take all the time there is.

use super::{Session, list::rfc3339, sentence};
use crate::{
    Hub, SessionId, Time,
    agent::{Agent, Phase as Stand, Start},
    limits,
};
use jackfield_events::{AgentQuiet, EventBody};
use jackfield_protocol::is_planted;
use serde_json::{Value, json};

/// What a session with an agent waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// For the process.
    Starting,
    /// For its answer to `initialize`.
    Initializing,
    /// For the session to be opened, or taken up again.
    Opening,
    /// For the agent's next word.
    Thinking,
    /// The same, and it has said that it runs a tool.
    Tool,
    /// For a person.
    Human,
}

impl Phase {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Phase::Starting => "starting",
            Phase::Initializing => "initializing",
            Phase::Opening => "opening",
            Phase::Thinking => "thinking",
            Phase::Tool => "tool",
            Phase::Human => "human",
        }
    }
}

/// How long each phase may be silent: until that is said, and until the turn is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Liveness {
    pub starting_ms: u64,
    pub initializing_ms: u64,
    pub opening_ms: u64,
    pub thinking_ms: u64,
    pub tool_ms: u64,
    /// Without one, a turn is never ended for its silence.
    pub thinking_ms_max: Option<u64>,
    pub tool_ms_max: Option<u64>,
}

impl Default for Liveness {
    fn default() -> Liveness {
        Liveness {
            starting_ms: limits::STARTING_QUIET_MS,
            initializing_ms: limits::INITIALIZING_QUIET_MS,
            opening_ms: limits::OPENING_QUIET_MS,
            thinking_ms: limits::THINKING_QUIET_MS,
            tool_ms: limits::TOOL_QUIET_MS,
            thinking_ms_max: None,
            tool_ms_max: None,
        }
    }
}

impl Liveness {
    fn of(&self, phase: Phase) -> Option<(u64, Option<u64>)> {
        match phase {
            Phase::Starting => Some((self.starting_ms, None)),
            Phase::Initializing => Some((self.initializing_ms, None)),
            Phase::Opening => Some((self.opening_ms, None)),
            Phase::Thinking => Some((self.thinking_ms, self.thinking_ms_max)),
            Phase::Tool => Some((self.tool_ms, self.tool_ms_max)),
            Phase::Human => None,
        }
    }

    /// The first moment at which a silence can matter.
    pub(crate) fn soonest_ms(&self) -> u64 {
        let soft = [self.starting_ms, self.initializing_ms, self.opening_ms];
        let turn = [self.thinking_ms, self.tool_ms];
        let hard = self.thinking_ms_max.into_iter().chain(self.tool_ms_max);
        soft.into_iter().chain(turn).chain(hard).min().unwrap_or(0)
    }
}

impl Hub {
    /// What a session with a process waits for; nothing if it is at rest.
    fn phase(id: &SessionId, session: &Session, agent: &Agent) -> Option<Phase> {
        if !session.asks.is_empty() && !is_planted("ignore-open-request-in-liveness") {
            return Some(Phase::Human);
        }
        if agent.phase == Stand::Initializing {
            let starts = agent.pid.is_none();
            return Some(if starts { Phase::Starting } else { Phase::Initializing });
        }
        if agent.waiting.values().any(|it| it.is_start() && it.session() == Some(id)) {
            return Some(Phase::Opening);
        }
        session.turn.as_ref()?;
        let runs = session.calls.running().next().is_some();
        Some(if runs { Phase::Tool } else { Phase::Thinking })
    }

    /// Time has passed since a session was last looked at.
    pub(crate) fn on_silence(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.pulse.looked();
        let (since, said) = (session.pulse.since, session.pulse.quiet.is_some());
        let agent = session.agent.and_then(|it| self.agents.get(&it));
        let Some(agent) = agent.filter(|it| !it.stopping) else { return };
        let paused = agent.paused;
        let Some(phase) = Hub::phase(id, session, agent) else { return };
        let Some((soft, hard)) = self.cx.config.liveness.of(phase) else { return };
        if paused || 0 < session.log.failed_appends() {
            // It may have said a lot that is not read, or not written, until the journal takes events again.
            return self.look_again(id, self.cx.now.plus(soft));
        }
        let over = hard.map(|it| since.plus(it));
        if over.is_some_and(|it| it <= self.cx.now) {
            return self.end_overdue(id, phase);
        }
        if self.cx.now < since.plus(soft) {
            let due = since.plus(soft);
            return self.look_again(id, over.map_or(due, |it| it.min(due)));
        }
        if !said {
            self.say_quiet(id, phase, since);
        }
        if let Some(over) = over {
            self.look_again(id, over);
        }
    }

    /// The silence is a fact, said once.
    fn say_quiet(&mut self, id: &SessionId, phase: Phase, since: Time) {
        let session = self.sessions.get_mut(id).expect("the caller found this session");
        session.pulse.quiet = Some(since);
        if session.is_opening() {
            return;
        }
        let turn = session.turn.as_ref().map_or(0, |it| it.number);
        let waits = self.sentence(&self.sessions[id], phase).into();
        let phase = phase.as_str().into();
        self.append(id, EventBody::Quiet(AgentQuiet { turn, phase, since, waits }));
    }

    /// The silence was longer than the configuration allows: the turn is cancelled, and says why.
    fn end_overdue(&mut self, id: &SessionId, phase: Phase) {
        let why = self.sentence(&self.sessions[id], phase);
        let why = format!("the limit of `[liveness]` was reached: {why}");
        self.stop_overdue(id, why);
    }

    fn sentence(&self, session: &Session, phase: Phase) -> String {
        let silent = self.cx.now.since(session.pulse.since);
        let ask = session.asks.iter().next().map(|(number, it)| (*number, it.at));
        sentence::of(phase, silent, &session.calls, ask, self.cx.now)
    }

    /// One word for where a session stands.
    pub(crate) fn shown(&self, id: &SessionId, session: &Session) -> &'static str {
        if self.storage_wait(session).is_some() {
            return "stalled";
        }
        if session.agent.is_some() && session.pulse.quiet.is_some() {
            return "quiet";
        }
        if self.place_in_line(id).is_some() { "waiting" } else { session.shown() }
    }

    /// How many are ahead of a session that waits for an agent to become free.
    fn place_in_line(&self, id: &SessionId) -> Option<usize> {
        self.starts.iter().position(|it| matches!(it, Start::Session(it) if it == id))
    }

    /// What a session does, for its row: `phase`, `doing`, `quietSince`.
    pub(crate) fn tell_doing(&self, id: &SessionId, session: &Session, row: &mut Value) {
        if let Some(doing) = self.storage_wait(session) {
            row["phase"] = json!("storage");
            row["doing"] = json!(doing);
            return;
        }
        if self.place_in_line(id).is_some() {
            let places = self.cx.config.sleep.max_live.unwrap_or(0).max(1);
            row["phase"] = json!("waiting");
            row["doing"] = json!(sentence::in_line(places));
            return;
        }
        let Some(agent) = session.agent.and_then(|it| self.agents.get(&it)) else { return };
        let Some(phase) = Hub::phase(id, session, agent) else { return };
        row["phase"] = json!(phase.as_str());
        row["doing"] = json!(self.sentence(session, phase));
        if let Some(since) = session.pulse.quiet {
            row["quietSince"] = json!(rfc3339(since.0));
        }
    }
}

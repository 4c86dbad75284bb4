//! Liveness: what a session waits for, since when, and whether that is longer than usual. Only messages of the agent count
//! as progress. A person who is asked may take any time.

use super::{Session, calls::ToolCalls, sentence};
use crate::{
    ConnId, SessionId, Time,
    agent::{Agent, AgentStart, Agents, Phase, describe_limit},
    config::{Liveness, WaitPhase},
    context::HubContext,
    limits,
    parts::HubParts,
};
use jackfield_events::{AgentQuiet, EventBody};
use jackfield_protocol::{Fault, is_planted, redact, rfc3339};
use serde_json::{Value, json};

impl Agents {
    /// The number of starts before this session in the start queue.
    fn start_queue_position(&self, id: &SessionId) -> Option<usize> {
        self.starts.iter().position(|it| matches!(it, AgentStart::Session(it) if it == id))
    }
}

impl HubParts {
    /// The agents that start for clients of this tenant, or of any, and have no session yet.
    pub(crate) fn describe_starting_agents(&self, tenant: Option<&str>) -> Vec<Value> {
        let is_shown = |it: &&Agent| {
            let is_of_tenant = tenant.is_none() || self.clients.tenant_of_agent(it) == tenant;
            let is_starting = it.phase == Phase::Initializing && !it.stopping;
            is_of_tenant
                && is_starting
                && it.slots.sessions.is_empty()
                && !it.slots.spares.is_empty()
        };
        let describe = |it: &Agent| {
            let phase =
                if it.pid.is_none() { WaitPhase::Starting } else { WaitPhase::Initializing };
            let silent = self.cx.now.since(it.last_active_at);
            json!({
                "agent": &*it.launch.name,
                "cwd": it.launch.cwd,
                "state": "opening",
                "phase": phase.as_str(),
                "doing": sentence::of(phase, silent, &ToolCalls::default(), None, self.cx.now),
                "clients": it.slots.spares.len(),
                "pid": it.pid,
                "openedAt": rfc3339(it.last_active_at.0),
                "updatedAt": rfc3339(it.last_active_at.0),
            })
        };
        self.agents.processes.values().filter(is_shown).map(describe).collect()
    }
}

impl Session {
    /// What the session waits for, as a sentence.
    fn describe_wait(&self, phase: WaitPhase, now: Time) -> String {
        let silent = now.since(self.activity.since);
        let request = self.asks.iter().next().map(|(number, it)| (*number, it.at));
        sentence::of(phase, silent, &self.calls, request, now)
    }

    /// What a session with a process waits for; nothing if it is idle.
    fn wait_phase(&self, agent: &Agent) -> Option<WaitPhase> {
        if !self.asks.is_empty() && !is_planted("ignore-open-request-in-liveness") {
            return Some(WaitPhase::Human);
        }
        if agent.phase == Phase::Initializing {
            let is_starting = agent.pid.is_none();
            return Some(if is_starting { WaitPhase::Starting } else { WaitPhase::Initializing });
        }
        if agent.waiting.values().any(|it| it.is_start() && it.session() == Some(&self.id)) {
            return Some(WaitPhase::Opening);
        }
        self.turn.as_ref()?;
        let runs_tool = self.calls.running().next().is_some();
        Some(if runs_tool { WaitPhase::Tool } else { WaitPhase::Thinking })
    }

    /// Logs once that the agent is silent.
    fn append_quiet_event(&mut self, cx: &mut HubContext, phase: WaitPhase, since: Time) {
        self.activity.quiet = Some(since);
        if self.is_opening() {
            return;
        }
        let turn = self.turn.as_ref().map_or(0, |it| it.number);
        let waits = self.describe_wait(phase, cx.now).into();
        let phase = phase.as_str().into();
        self.append_event(cx, EventBody::Quiet(AgentQuiet { turn, phase, since, waits }));
    }

    /// Checks whether the agent is silent for too long.
    pub(crate) fn on_silence_timer(&mut self, parts: &mut HubParts) {
        self.activity.looked();
        let (since, said) = (self.activity.since, self.activity.quiet.is_some());
        let agent = self.agent.and_then(|it| parts.agents.processes.get(&it));
        let Some(agent) = agent.filter(|it| !it.stopping) else { return };
        let paused = agent.paused;
        let Some(phase) = self.wait_phase(agent) else { return };
        let Some((soft, hard)) = parts.cx.config.liveness.of(phase) else { return };
        if paused || 0 < self.log.failed_appends() {
            // The agent may have sent much that is not read or stored until the journal accepts events again.
            let at = parts.cx.now.plus(soft);
            return self.schedule_silence_check(&mut parts.cx, at);
        }
        let over = hard.map(|it| since.plus(it));
        if let Some(limit) = hard
            && since.plus(limit) <= parts.cx.now
        {
            return self.end_overdue(parts, phase, limit);
        }
        if parts.cx.now < since.plus(soft) {
            let due = since.plus(soft);
            let at = over.map_or(due, |it| it.min(due));
            return self.schedule_silence_check(&mut parts.cx, at);
        }
        if !said {
            self.append_quiet_event(&mut parts.cx, phase, since);
        }
        if let Some(over) = over {
            self.schedule_silence_check(&mut parts.cx, over);
        }
    }

    /// Cancels a turn that was silent for longer than the configuration permits.
    fn end_overdue(&mut self, parts: &mut HubParts, phase: WaitPhase, limit: u64) {
        let (why, limit) = (self.describe_wait(phase, parts.cx.now), describe_limit(limit));
        let why = format!(
            "{why}; the limit is {limit} (`{}` in `[liveness]`)",
            Liveness::max_name(phase)
        );
        self.fail_turn(parts, Fault::Interrupted { why });
    }

    /// The state of a session for lists.
    pub(crate) fn state_name(&self, parts: &HubParts) -> &'static str {
        if parts.storage.describe_wait(&self.log).is_some() {
            return "stalled";
        }
        if self.agent.is_some() && self.activity.quiet.is_some() {
            return "quiet";
        }
        if parts.agents.start_queue_position(&self.id).is_some() {
            "waiting"
        } else {
            self.stage_name()
        }
    }

    /// What a session does, for lists: `phase`, `doing`, `quietSince`.
    fn describe_activity(&self, parts: &HubParts, row: &mut Value) {
        if let Some(doing) = parts.storage.describe_wait(&self.log) {
            row["phase"] = json!("storage");
            row["doing"] = json!(doing);
            return;
        }
        if parts.agents.start_queue_position(&self.id).is_some() {
            let places = parts.cx.config.sleep.max_live.unwrap_or(0).max(1);
            row["phase"] = json!("waiting");
            row["doing"] = json!(sentence::in_line(places));
            return;
        }
        let Some(agent) = self.agent.and_then(|it| parts.agents.processes.get(&it)) else {
            return;
        };
        let Some(phase) = self.wait_phase(agent) else { return };
        row["phase"] = json!(phase.as_str());
        row["doing"] = json!(self.describe_wait(phase, parts.cx.now));
        if let Some(since) = self.activity.quiet {
            row["quietSince"] = json!(rfc3339(since.0));
        }
    }

    /// One session of `session/list`.
    pub(crate) fn info(&self, parts: &HubParts) -> Value {
        let state = self.summary();
        let mut info = json!({
            "sessionId": &*self.id,
            "cwd": state.cwd,
            "updatedAt": rfc3339(state.updated_at),
            "_meta": { "jackfield": { "agent": &*state.agent, "state": self.state_name(parts) } },
        });
        if let Some(title) = state.name.clone().or_else(|| self.title()) {
            info["title"] = json!(title);
        }
        info
    }

    /// The last change of a session, or since when it is being opened, in Unix milliseconds.
    pub(crate) fn listed_updated_at(&self) -> u64 {
        self.opening_launch().map_or(self.summary().updated_at, |_| self.activity.since.0)
    }

    /// The names that attached clients gave themselves; the number of the connection for one without a name.
    fn client_names(&self, parts: &HubParts) -> Vec<String> {
        let name = |conn: &ConnId| match &parts.clients.connections.get(conn)?.name {
            Some(it) => {
                Some(it[..it.floor_char_boundary(limits::LISTED_NAME_BYTES_MAX)].to_owned())
            }
            None => Some(conn.to_string()),
        };
        self.subscribers.keys().filter_map(name).take(limits::LISTED_CLIENTS_MAX).collect()
    }

    /// One session, for `ps` and `sessions`.
    pub(crate) fn row(&self, parts: &HubParts) -> Value {
        let state = self.summary();
        let opening = self.opening_launch();
        let (agent, argv) = opening.map_or((&state.agent, &state.argv), |it| (&it.name, &it.argv));
        let cwd = opening.map_or(state.cwd.clone(), |it| it.cwd.to_string_lossy().into_owned());
        let since = opening.map(|_| self.activity.since.0);
        let mut row = json!({
            "sessionId": &*self.id,
            "agent": &**agent,
            "argv": redact::argv(argv),
            "cwd": cwd,
            "name": state.name,
            "title": self.title(),
            "state": self.state_name(parts),
            "turns": state.turns,
            "queued": state.queue.len(),
            "asks": self.asks.len(),
            "clients": self.subscribers.len(),
            "clientNames": self.client_names(parts),
            "unheard": parts.agents.find_unenforced_policy(&parts.cx, self),
            "pid": self.agent.and_then(|it| parts.agents.processes.get(&it)?.pid),
            "events": self.log.head().0,
            "openedAt": rfc3339(since.unwrap_or(state.opened_at)),
            "updatedAt": rfc3339(self.listed_updated_at()),
            "agentSession": &*state.agent_session,
        });
        if let Some(cost) = &state.cost {
            row["cost"] = cost.to_value();
        }
        if let Some(since) = self.asks.values().map(|it| it.at).min() {
            row["waitingSince"] = json!(rfc3339(since.0));
        }
        if let Some(fallback) = &state.fallback {
            row["fallback"] = serde_json::from_str(fallback.as_str()).unwrap_or_default();
        }
        if let Some(profile) = &state.sandbox {
            row["sandbox"] = json!(profile);
        }
        self.describe_activity(parts, &mut row);
        row
    }
}

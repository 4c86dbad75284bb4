//! Sleep, live agents and quiet agents: which sessions may be put to sleep, how many agents may run, which agents may be
//! reported as quiet, and that a restored session has its mode.

use super::check_invariant;
use crate::hub_sim::{
    HubWorld,
    agent::{AgentProcess, PROGRAMS},
};
use jackfield_events::{
    AgentQuiet, AgentSessionId, AgentSuspended, EventBody, SessionEvent, SessionSummary,
    TurnStarted, UserAnswered, UserAsked,
};
use jackfield_hub::{AgentId, SessionId};
use jackfield_protocol::Frame;
use std::collections::{BTreeMap, BTreeSet};

/// Tracks what the hub has appended to each session since its start, durable or not.
#[derive(Debug, Default)]
pub(in crate::hub_sim) struct SleepTracker {
    states: BTreeMap<SessionId, SleepState>,
    /// The modes that were sent to each process, by agent session id.
    modes: BTreeMap<(AgentId, AgentSessionId), BTreeSet<String>>,
}

#[derive(Debug, Default)]
struct SleepState {
    upto: u64,
    open_asks: BTreeSet<u64>,
    turn: Option<u64>,
}

impl SleepTracker {
    /// The hub starts from what is written.
    pub(in crate::hub_sim) fn on_adopted(&mut self, session: &SessionId, state: &SessionSummary) {
        let (upto, open_asks, turn) = (state.seq, state.open_asks.clone(), state.open_turn);
        self.states.insert(session.clone(), SleepState { upto, open_asks, turn });
    }
}

impl HubWorld {
    /// The hub appends an event; a retry appends it again.
    pub(in crate::hub_sim) fn check_sleep_event(
        &mut self,
        session: &SessionId,
        event: &SessionEvent,
    ) {
        let state = self.sleep_tracker.states.entry(session.clone()).or_default();
        if event.seq.0 <= state.upto {
            return;
        }
        state.upto = event.seq.0;
        match &event.body {
            EventBody::Asked(UserAsked { ask, .. }) => drop(state.open_asks.insert(*ask)),
            EventBody::Answered(UserAnswered { ask, .. }) => drop(state.open_asks.remove(ask)),
            EventBody::Prompted(TurnStarted { turn, .. }) => state.turn = Some(*turn),
            EventBody::Ended(_) => state.turn = None,
            EventBody::Slept(AgentSuspended { why }) if why.contains("releases it") => {
                self.check_nothing_open(session);
            }
            EventBody::Slept(_) => self.only_idle_sessions_sleep(session),
            EventBody::Quiet(AgentQuiet { since, phase, .. }) => {
                self.check_quiet_report(session, phase, event.at.since(*since));
            }
            _ => {}
        }
    }

    fn check_nothing_open(&self, session: &SessionId) {
        let state = &self.sleep_tracker.states[session];
        check_invariant(
            "only_idle_sessions_sleep",
            state.turn.is_none() && state.open_asks.is_empty(),
            || format!("{session} was put to sleep with {state:?}"),
        );
    }

    fn only_idle_sessions_sleep(&mut self, session: &SessionId) {
        let name = "only_idle_sessions_sleep";
        self.tally.count("sessions put to sleep");
        self.check_nothing_open(session);
        let session_ids = &self.log_tracker.session_ids;
        let is_serving = |it: &&AgentProcess| {
            let mut sessions = it.sessions.iter().filter(|(_, it)| it.is_serving);
            !it.stop_requested && sessions.any(|(it, _)| session_ids.get(it) == Some(session))
        };
        let serving = self.procs.iter().find(|(_, it)| is_serving(it));
        let can = serving.is_none_or(|(_, it)| PROGRAMS[it.program].1 || PROGRAMS[it.program].2);
        check_invariant(name, can, || {
            format!("{session} was put to sleep, but its agent cannot restore it")
        });
        let mut prompted = serving.into_iter().flat_map(|(_, it)| it.prompts.values());
        let works = prompted.any(|it| session_ids.get(it) == Some(session));
        check_invariant(name, !works, || {
            format!("{serving:?} has an open prompt and {session} was put to sleep")
        });
    }

    /// An agent is reported as quiet only if it is, and while no ask is open.
    fn check_quiet_report(&mut self, session: &SessionId, phase: &str, silent_ms: u64) {
        self.tally.count("agents reported as quiet");
        let state = &self.sleep_tracker.states[session];
        check_invariant(
            "agent_is_not_quiet_while_an_ask_is_open",
            state.open_asks.is_empty(),
            || format!("{session} was reported as quiet while {:?} are open", state.open_asks),
        );
        let limits = self.hub_settings.liveness;
        let limit = match phase {
            "starting" => limits.starting_ms,
            "initializing" => limits.initializing_ms,
            "opening" => limits.opening_ms,
            "thinking" => limits.thinking_ms,
            _ => limits.tool_ms,
        };
        check_invariant("quiet_agent_exceeds_its_limit", limit <= silent_ms, || {
            format!("{session} was reported as quiet after {silent_ms} ms in {phase}")
        });
    }

    /// Agents that were asked to stop or have exited do not count.
    pub(in crate::hub_sim) fn live_agents_are_limited(&self) {
        let Some(max) = self.hub_settings.sleep.max_live else { return };
        let alive = self.procs.values().filter(|it| !it.stop_requested && !it.has_exited).count();
        check_invariant("live_agents_are_limited", alive <= max, || {
            format!("{alive} agents run, and the limit is {max}")
        });
    }

    pub(in crate::hub_sim) fn note_mode(&mut self, agent: AgentId, frame: &Frame) {
        let params = frame.params_value();
        let mode = params["modeId"].as_str().unwrap_or_default().to_owned();
        let agent_session = frame.session_id().unwrap_or_default().as_ref().into();
        self.sleep_tracker.modes.entry((agent, agent_session)).or_default().insert(mode);
    }

    /// A restored session is in its earlier mode before the first prompt.
    pub(in crate::hub_sim) fn restored_session_has_its_mode(
        &mut self,
        agent: AgentId,
        agent_session: &AgentSessionId,
    ) {
        let Some(session) = self.log_tracker.session_ids.get(agent_session).cloned() else {
            return;
        };
        let Some(stream) = self.disk.streams.get(&session) else { return };
        let bound = stream.events.iter().rposition(|it| matches!(it.body, EventBody::Bound(_)));
        let Some(bound) = bound else { return };
        let mut state = SessionSummary::default();
        for event in &stream.events[..=bound] {
            state.fold(event);
        }
        let Some(mode) = state.mode else { return };
        let key = (agent, agent_session.clone());
        // A client's setting may have been sent to an agent session that was lost later.
        let is_same = |(it, name): &(AgentId, AgentSessionId)| {
            *it == agent && self.log_tracker.session_ids.get(name) == Some(&session)
        };
        let is_set =
            self.sleep_tracker.modes.iter().any(|(key, it)| is_same(key) && it.contains(&mode));
        let is_set = is_set || self.restore_tracker.has_chosen_mode(&key, &mode);
        check_invariant("restored_session_has_its_mode", is_set, || {
            format!("{agent} restored {session} without its mode {mode}")
        });
    }

    pub(in crate::hub_sim) fn reset_sleep_tracker(&mut self) {
        self.sleep_tracker = SleepTracker::default();
    }

    /// Only agents that cannot be restored are left and a start waits for a free slot: kills one, as a user would.
    pub(in crate::hub_sim) fn free_agent_slot(&mut self) -> bool {
        // The client that asked may have disconnected since.
        let waits = 0 < self.hub.gauges().starts_waiting;
        let Some(max) = self.hub_settings.sleep.max_live.filter(|_| waits) else { return false };
        let alive = self.procs.iter().filter(|(_, it)| !it.stop_requested && !it.has_exited);
        let cannot_restore = |program: usize| !PROGRAMS[program].1 && !PROGRAMS[program].2;
        let stuck =
            alive.clone().find(|(_, it)| cannot_restore(it.program) && it.prompts.is_empty());
        let (true, Some((&agent, _))) = (max <= alive.count(), stuck) else { return false };
        self.kill_process(agent, "signal 15 (TERM)");
        true
    }
}

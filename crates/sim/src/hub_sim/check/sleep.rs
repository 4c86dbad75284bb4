//! Sleep, places and silence: who may be put to sleep, how many may be alive, what may be called
//! quiet, and that who wakes is who slept.

use super::hold;
use crate::hub_sim::{
    World,
    agent::{PROGRAMS, Process},
};
use jackfield_events::{
    AgentQuiet, AgentSessionId, AgentSuspended, EventBody, SessionEvent, SessionSummary,
    TurnStarted, UserAnswered, UserAsked,
};
use jackfield_hub::{AgentId, SessionId};
use jackfield_protocol::Frame;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What the hub has said of each session in this life, durable or not.
#[derive(Debug, Default)]
pub(in crate::hub_sim) struct Rest {
    told: BTreeMap<SessionId, Told>,
    /// The modes each process was told, by its names for sessions.
    modes: BTreeMap<(AgentId, AgentSessionId), BTreeSet<String>>,
}

#[derive(Debug, Default)]
struct Told {
    upto: u64,
    open_asks: BTreeSet<u64>,
    turn: Option<u64>,
}

impl Rest {
    /// The hub begins with what is written, whatever another had said.
    pub(in crate::hub_sim) fn on_adopted(&mut self, session: &SessionId, state: &SessionSummary) {
        let (upto, open_asks, turn) = (state.seq, state.open_asks.clone(), state.open_turn);
        self.told.insert(session.clone(), Told { upto, open_asks, turn });
    }
}

impl World {
    /// The hub wants an event written; a retry says it again.
    pub(in crate::hub_sim) fn check_rest(&mut self, session: &SessionId, event: &SessionEvent) {
        let told = self.rest.told.entry(session.clone()).or_default();
        if event.seq.0 <= told.upto {
            return;
        }
        told.upto = event.seq.0;
        match &event.body {
            EventBody::Asked(UserAsked { ask, .. }) => drop(told.open_asks.insert(*ask)),
            EventBody::Answered(UserAnswered { ask, .. }) => drop(told.open_asks.remove(ask)),
            EventBody::Prompted(TurnStarted { turn, .. }) => told.turn = Some(*turn),
            EventBody::Ended(_) => told.turn = None,
            EventBody::Slept(AgentSuspended { why }) if why.contains("lets it go") => {
                self.nothing_is_open(session);
            }
            EventBody::Slept(_) => self.only_idle_sessions_sleep(session),
            EventBody::Quiet(AgentQuiet { since, phase, .. }) => {
                self.quiet_is_true(session, phase, event.at.since(*since));
            }
            _ => {}
        }
    }

    fn nothing_is_open(&self, session: &SessionId) {
        let told = &self.rest.told[session];
        hold("only_idle_sessions_sleep", told.turn.is_none() && told.open_asks.is_empty(), || {
            format!("{session} was put to sleep with {told:?}")
        });
    }

    fn only_idle_sessions_sleep(&mut self, session: &SessionId) {
        let name = "only_idle_sessions_sleep";
        self.tally.count("sessions put to sleep");
        self.nothing_is_open(session);
        let names = &self.facts.names;
        let has = |it: &&Process| {
            let mut rooms = it.rooms.iter().filter(|(_, it)| it.bound);
            !it.stop_asked && rooms.any(|(it, _)| names.get(it) == Some(session))
        };
        let serving = self.procs.iter().find(|(_, it)| has(it));
        let can = serving.is_none_or(|(_, it)| PROGRAMS[it.program].1 || PROGRAMS[it.program].2);
        hold(name, can, || format!("{session} sleeps and its agent cannot take it up again"));
        let mut prompted = serving.into_iter().flat_map(|(_, it)| it.prompts.values());
        let works = prompted.any(|it| names.get(it) == Some(session));
        hold(name, !works, || format!("{serving:?} works and {session} was put to sleep"));
    }

    /// A silence is called one only if it is one, and nobody is asked meanwhile.
    fn quiet_is_true(&mut self, session: &SessionId, phase: &str, silent_ms: u64) {
        self.tally.count("silences told");
        let told = &self.rest.told[session];
        hold("no_quiet_while_a_human_is_asked", told.open_asks.is_empty(), || {
            format!("{session} is called quiet while {:?} wait for an answer", told.open_asks)
        });
        let limits = self.habits.liveness;
        let limit = match phase {
            "starting" => limits.starting_ms,
            "initializing" => limits.initializing_ms,
            "opening" => limits.opening_ms,
            "thinking" => limits.thinking_ms,
            _ => limits.tool_ms,
        };
        hold("a_silence_is_as_long_as_it_must_be", limit <= silent_ms, || {
            format!("{session} is called quiet after {silent_ms} ms in {phase}")
        });
    }

    /// An agent that is asked to stop, or has ended, does not count.
    pub(in crate::hub_sim) fn places_are_limited(&self) {
        let Some(max) = self.habits.sleep.max_live else { return };
        let alive = self.procs.values().filter(|it| !it.stop_asked && !it.dead).count();
        hold("never_more_than_max_live", alive <= max, || {
            format!("{alive} agents are alive and {max} may be")
        });
    }

    pub(in crate::hub_sim) fn note_mode(&mut self, agent: AgentId, frame: &Frame) {
        let params: Value = serde_json::from_str(frame.params().unwrap_or("{}")).expect("JSON");
        let mode = params["modeId"].as_str().unwrap_or_default().to_owned();
        let theirs = frame.session_id().unwrap_or_default().as_ref().into();
        self.rest.modes.entry((agent, theirs)).or_default().insert(mode);
    }

    /// Whoever was woken is in the mode that was on before, when the first prompt comes.
    pub(in crate::hub_sim) fn who_wakes_is_who_slept(
        &mut self,
        agent: AgentId,
        theirs: &AgentSessionId,
    ) {
        let Some(session) = self.facts.names.get(theirs).cloned() else { return };
        let Some(stream) = self.disk.streams.get(&session) else { return };
        let bound = stream.events.iter().rposition(|it| matches!(it.body, EventBody::Bound(_)));
        let Some(bound) = bound else { return };
        let mut state = SessionSummary::default();
        for event in &stream.events[..=bound] {
            state.fold(event);
        }
        let Some(mode) = state.mode else { return };
        let key = (agent, theirs.clone());
        // A client's own setting may have gone to a name that turned out to be none.
        let of_it = |(it, name): &(AgentId, AgentSessionId)| {
            *it == agent && self.facts.names.get(name) == Some(&session)
        };
        let told = self.rest.modes.iter().any(|(key, it)| of_it(key) && it.contains(&mode));
        let told = told || self.wakes.has_said_mode(&key, &mode);
        hold("who_wakes_is_who_slept", told, || {
            format!("{agent} took {session} up and was not told its mode {mode}")
        });
    }

    pub(in crate::hub_sim) fn forget_rest(&mut self) {
        self.rest = Rest::default();
    }

    /// Only processes that cannot sleep are left, and someone waits for a place: their user ends one.
    pub(in crate::hub_sim) fn make_room(&mut self) -> bool {
        // Who asked may have left since.
        let waits = 0 < self.hub.gauges().starts_waiting;
        let Some(max) = self.habits.sleep.max_live.filter(|_| waits) else { return false };
        let alive = self.procs.iter().filter(|(_, it)| !it.stop_asked && !it.dead);
        let forgets = |program: usize| !PROGRAMS[program].1 && !PROGRAMS[program].2;
        let stuck = alive.clone().find(|(_, it)| forgets(it.program) && it.prompts.is_empty());
        let (true, Some((&agent, _))) = (max <= alive.count(), stuck) else { return false };
        self.kill(agent, "signal 15 (TERM)");
        true
    }
}

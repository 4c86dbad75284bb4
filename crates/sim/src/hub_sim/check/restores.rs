//! A restored session equals the one that fell asleep: the same settings, the same history, one event that names the
//! method, and no prompt before that.

use super::check_invariant;
use crate::hub_sim::markers;
use jackfield_events::{
    AgentBound, AgentSessionId, EventBody, RestoreStep, SessionEvent, SessionSummary,
};
use jackfield_hub::{AgentId, Recovered, SessionId, Time, limits};
use jackfield_protocol::{Frame, Kind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Tracks the state of each session, and the settings sent to each process that restores one.
#[derive(Debug, Default)]
pub(in crate::hub_sim) struct RestoreTracker {
    pub(in crate::hub_sim) now: Time,
    states: BTreeMap<SessionId, SessionSummary>,
    /// The methods by which sessions were restored, from their logs and from the hub's notes, until both agree. A log
    /// that stalls is behind.
    logged_methods: BTreeMap<SessionId, VecDeque<String>>,
    noted_methods: BTreeMap<SessionId, VecDeque<String>>,
    procs: BTreeMap<ProcessSessionKey, RestoreState>,
    /// Requests for new agent sessions: the id, and whether it is for a session that is being restored.
    new_sessions: BTreeMap<(AgentId, Box<str>), bool>,
    /// When a setting was last accepted by any process.
    configured: BTreeMap<SessionId, Time>,
    /// Sessions with earlier turns whose agent was given a new agent session.
    lost_sessions: BTreeSet<SessionId>,
}

/// A process and its session id.
pub(in crate::hub_sim) type ProcessSessionKey = (AgentId, AgentSessionId);

/// A session in a process since the last request to open or restore it.
#[derive(Debug, Default)]
struct RestoreState {
    /// It is older than the process.
    restores: bool,
    restore_count: u32,
    mode: Option<String>,
    /// Modes that the agent chose itself.
    chosen_modes: BTreeSet<String>,
    options: BTreeMap<String, String>,
    /// Settings by request id: when they were sent, and whether they were answered.
    settings: BTreeMap<String, (Time, bool)>,
    /// The id of the last request for the session. Settings with an earlier id were sent by a client and waited for the
    /// log.
    request_number: u64,
}

impl RestoreTracker {
    pub(in crate::hub_sim) fn on_appended(&mut self, session: &SessionId, event: &SessionEvent) {
        let state = self.states.entry(session.clone()).or_default();
        if event.seq <= state.upto() {
            return; // It is a retry.
        }
        state.fold(event);
        if let EventBody::Configured(_) = &event.body {
            self.configured.insert(session.clone(), self.now);
        }
        if let EventBody::Bound(AgentBound { restore: step, .. }) = &event.body {
            if *step != RestoreStep::Failed {
                let logged = self.logged_methods.entry(session.clone()).or_default();
                logged.push_back(step.as_str().to_owned());
            }
            let past = state.turns - u64::from(state.open_turn.is_some());
            if state.unseeded && 0 < past {
                self.lost_sessions.insert(session.clone());
            } else {
                self.lost_sessions.remove(session);
            }
        }
        self.one_event_names_the_restore_method(session);
    }

    /// A session starts as a copy of another.
    pub(in crate::hub_sim) fn on_copied(&mut self, session: &SessionId, state: &SessionSummary) {
        self.states.insert(session.clone(), state.clone());
    }

    /// The hub adopts a session in its durable state.
    pub(in crate::hub_sim) fn on_adopted(&mut self, session: &SessionId, state: &SessionSummary) {
        self.logged_methods.remove(session);
        self.noted_methods.remove(session);
        self.states.insert(session.clone(), state.clone());
    }

    fn one_event_names_the_restore_method(&mut self, session: &SessionId) {
        let logged = self.logged_methods.entry(session.clone()).or_default();
        let noted = self.noted_methods.entry(session.clone()).or_default();
        while let (Some(log), Some(note)) = (logged.front(), noted.front()) {
            check_invariant("one_event_names_the_restore_method", log == note, || {
                format!("{session} was restored by `{note}`, but its log has `{log}`")
            });
            logged.pop_front();
            noted.pop_front();
        }
        check_invariant("one_event_names_the_restore_method", logged.len() < 2, || {
            format!("the log of {session} has {logged:?} for one restore")
        });
    }

    pub(in crate::hub_sim) fn on_restart(&mut self, recovered: &[Recovered]) {
        self.procs.clear();
        self.new_sessions.clear();
        self.logged_methods.clear();
        self.noted_methods.clear();
        self.states = recovered.iter().map(|it| (it.session.clone(), it.state.clone())).collect();
    }

    pub(in crate::hub_sim) fn has_chosen_mode(&self, key: &ProcessSessionKey, mode: &str) -> bool {
        self.procs.get(key).is_some_and(|it| it.chosen_modes.contains(mode))
    }

    pub(in crate::hub_sim) fn forget(&mut self, session: &SessionId) {
        self.states.remove(session);
    }

    pub(in crate::hub_sim) fn on_agent_gone(&mut self, agent: AgentId) {
        self.procs.retain(|(it, _), _| *it != agent);
    }

    /// The hub sends a message to an agent. A request for a new agent session may be for one that it `restores`.
    pub(in crate::hub_sim) fn on_sent(&mut self, agent: AgentId, frame: &Frame, restores: bool) {
        let Some(id) = frame.id().filter(|_| frame.kind() == Kind::Request) else { return };
        let params = frame.params_value();
        let member = |name: &str| params[name].as_str().map(str::to_owned);
        let number = id.parse::<u64>().unwrap_or(0);
        let method = frame.method();
        if matches!(method.as_deref(), Some("session/new" | "session/fork")) {
            self.new_sessions.insert((agent, id.into()), restores);
            return;
        }
        let Some(agent_session) = frame.session_id() else { return };
        let past = self.procs.entry((agent, agent_session.as_ref().into())).or_default();
        match method.as_deref() {
            Some("session/load" | "session/resume") => {
                *past = RestoreState {
                    restores: true,
                    request_number: number,
                    ..RestoreState::default()
                };
            }
            Some("session/set_mode") => past.mode = member("modeId"),
            Some("session/set_config_option") => {
                let option = member("configId").unwrap_or_default();
                past.options.insert(option, member("value").unwrap_or_default());
            }
            _ => return,
        }
        if past.restores && past.restore_count == 0 && past.request_number < number {
            past.settings.insert(id.to_owned(), (self.now, false));
        }
    }

    /// The hub receives a message of an agent.
    pub(in crate::hub_sim) fn on_received(&mut self, agent: AgentId, frame: &Frame) {
        if let Some(id) = frame.id().filter(|_| frame.kind() == Kind::Response) {
            let asked = self.new_sessions.remove(&(agent, id.into()));
            if let (Some(restores), Some(agent_session)) = (asked, frame.session_id()) {
                let request_number = id.parse().unwrap_or(0);
                let past = RestoreState { restores, request_number, ..RestoreState::default() };
                self.procs.insert((agent, agent_session.as_ref().into()), past);
            }
            let own = self.procs.iter_mut().filter(|((it, _), _)| *it == agent);
            for (_, answered) in own.filter_map(|(_, it)| it.settings.get_mut(id)) {
                *answered = true;
            }
        }
        let Some(agent_session) = frame.session_id() else { return };
        if frame.update().as_deref() == Some("current_mode_update") {
            let past = self.procs.entry((agent, agent_session.as_ref().into())).or_default();
            let params = frame.params_value();
            past.mode = params["update"]["currentModeId"].as_str().map(str::to_owned);
            past.chosen_modes.extend(past.mode.clone());
        }
    }

    /// The hub reports that a process has restored a session.
    pub(in crate::hub_sim) fn on_restored(
        &mut self,
        session: &SessionId,
        key: &ProcessSessionKey,
        step: &str,
    ) {
        let (now, agent) = (self.now, key.0);
        let logs = self.logged_methods.get(session).is_some_and(|it| !it.is_empty());
        self.noted_methods.entry(session.clone()).or_default().push_back(step.to_owned());
        self.one_event_names_the_restore_method(session);
        let past = self.procs.entry(key.clone()).or_default();
        past.restores = true;
        past.restore_count += 1;
        check_invariant("one_event_names_the_restore_method", past.restore_count == 1, || {
            format!("{session} was restored {} times in {agent}", past.restore_count)
        });
        let late = |at: Time| at.plus(limits::SETTING_MS_MAX) <= now;
        let open = past.settings.values().find(|(at, answered)| !answered && !late(*at));
        check_invariant("settings_are_restored_before_the_session", open.is_none(), || {
            format!("{agent} was not given time to restore the settings of {session}")
        });
        let Some(state) = self.states.get(session).filter(|_| logs) else { return };
        // A process that is still stopping may accept a setting while the last one is sent to the next process.
        let first_sent = past.settings.values().map(|(at, _)| *at).min();
        if first_sent.is_some_and(|at| self.configured.get(session).is_some_and(|it| at <= *it)) {
            return;
        }
        let same = state.mode.is_none() || state.mode == past.mode;
        check_invariant("restored_session_keeps_its_settings", same, || {
            format!("{session} is in mode {:?}, {agent} in {:?}", state.mode, past.mode)
        });
        let missing = state.config.keys().find(|it| !past.options.contains_key(*it));
        check_invariant("restored_session_keeps_its_settings", missing.is_none(), || {
            format!("{agent} restored {session} without its option {missing:?}")
        });
    }

    /// An agent is prompted. If it has lost the session, it was given a digest first.
    pub(in crate::hub_sim) fn on_prompted(
        &self,
        key: &ProcessSessionKey,
        session: Option<&SessionId>,
        frame: &Frame,
    ) {
        let agent = key.0;
        let past = self.procs.get(key);
        let ready = past.is_none_or(|it| !it.restores || 0 < it.restore_count);
        check_invariant("prompt_follows_restore", ready, || format!("{agent} received {frame:?}"));
        let Some((session, state)) = session.and_then(|it| self.states.get_key_value(it)) else {
            return;
        };
        let digest = markers::contains(frame.bytes(), "[End of the digest.");
        let wanted = state.unseeded && self.lost_sessions.contains(session);
        check_invariant("lost_session_gets_a_digest", digest == wanted, || {
            let unseeded = state.unseeded;
            format!("{agent} received {frame:?} in turn {}, unseeded {unseeded}", state.turns)
        });
    }
}

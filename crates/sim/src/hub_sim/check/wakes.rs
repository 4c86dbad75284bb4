//! A session that wakes is the one that fell asleep: same settings, same past, one event that says
//! how, and nothing asked of an agent before all that.

use super::hold;
use crate::hub_sim::peek;
use jackfield_events::{AgentBound, AgentSessionId, EventBody, Rung, SessionEvent, SessionSummary};
use jackfield_hub::{AgentId, Recovered, SessionId, Time, limits};
use jackfield_protocol::{Frame, Kind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What each session is, and what each process that took one over was told.
#[derive(Debug, Default)]
pub(in crate::hub_sim) struct Wakes {
    pub(in crate::hub_sim) now: Time,
    states: BTreeMap<SessionId, SessionSummary>,
    /// How sessions woke, by their logs and by the hub's notes, until both have said it. A log that
    /// stalls is behind.
    logged: BTreeMap<SessionId, VecDeque<String>>,
    noted: BTreeMap<SessionId, VecDeque<String>>,
    procs: BTreeMap<Key, Past>,
    /// New sessions that processes were asked for: the ids of the requests, and whether they are
    /// for sessions that wake.
    asked: BTreeMap<(AgentId, Box<str>), bool>,
    /// When a setting was last accepted, by whatever process.
    configured: BTreeMap<SessionId, Time>,
    /// Sessions whose agent was given a new one, although there were turns.
    lost: BTreeSet<SessionId>,
}

/// A process and its name for a session.
pub(in crate::hub_sim) type Key = (AgentId, AgentSessionId);

/// A session in a process, since that was last asked for it.
#[derive(Debug, Default)]
struct Past {
    /// It was there before the process.
    wakes: bool,
    woke: u32,
    mode: Option<String>,
    /// Modes it went into by itself.
    said_modes: BTreeSet<String>,
    options: BTreeMap<String, String>,
    /// Settings by the id they were asked under: when, and whether they were answered.
    settings: BTreeMap<String, (Time, bool)>,
    /// The id of the last request for a session: settings with an earlier one are a client's own,
    /// which waited for the log meanwhile.
    asked: u64,
}

impl Wakes {
    pub(in crate::hub_sim) fn on_appended(&mut self, session: &SessionId, event: &SessionEvent) {
        let state = self.states.entry(session.clone()).or_default();
        if event.seq <= state.upto() {
            return; // It is sent again.
        }
        state.fold(event);
        if let EventBody::Configured(_) = &event.body {
            self.configured.insert(session.clone(), self.now);
        }
        if let EventBody::Bound(AgentBound { rung, .. }) = &event.body {
            if *rung != Rung::Failed {
                let logged = self.logged.entry(session.clone()).or_default();
                logged.push_back(rung.as_str().to_owned());
            }
            let past = state.turns - u64::from(state.open_turn.is_some());
            if state.unseeded && 0 < past {
                self.lost.insert(session.clone());
            } else {
                self.lost.remove(session);
            }
        }
        self.one_event_says_how_a_session_woke(session);
    }

    /// A session begins as a copy of another.
    pub(in crate::hub_sim) fn on_copied(&mut self, session: &SessionId, state: &SessionSummary) {
        self.states.insert(session.clone(), state.clone());
    }

    /// A session comes to the hub as it is written.
    pub(in crate::hub_sim) fn on_adopted(&mut self, session: &SessionId, state: &SessionSummary) {
        self.logged.remove(session);
        self.noted.remove(session);
        self.states.insert(session.clone(), state.clone());
    }

    fn one_event_says_how_a_session_woke(&mut self, session: &SessionId) {
        let logged = self.logged.entry(session.clone()).or_default();
        let noted = self.noted.entry(session.clone()).or_default();
        while let (Some(log), Some(note)) = (logged.front(), noted.front()) {
            hold("one_event_says_how_a_session_woke", log == note, || {
                format!("{session} woke by {note}, and its log says {log}")
            });
            logged.pop_front();
            noted.pop_front();
        }
        hold("one_event_says_how_a_session_woke", logged.len() < 2, || {
            format!("the log of {session} says {logged:?} of one wake")
        });
    }

    pub(in crate::hub_sim) fn start_again(&mut self, recovered: &[Recovered]) {
        self.procs.clear();
        self.asked.clear();
        self.logged.clear();
        self.noted.clear();
        self.states = recovered.iter().map(|it| (it.session.clone(), it.state.clone())).collect();
    }

    pub(in crate::hub_sim) fn has_said_mode(&self, key: &Key, mode: &str) -> bool {
        self.procs.get(key).is_some_and(|it| it.said_modes.contains(mode))
    }

    pub(in crate::hub_sim) fn forget(&mut self, session: &SessionId) {
        self.states.remove(session);
    }

    pub(in crate::hub_sim) fn on_agent_gone(&mut self, agent: AgentId) {
        self.procs.retain(|(it, _), _| *it != agent);
    }

    /// The hub tells an agent something; if it asks for a new session, that may be for one that
    /// `wakes`.
    pub(in crate::hub_sim) fn on_told(&mut self, agent: AgentId, frame: &Frame, wakes: bool) {
        let Some(id) = frame.id().filter(|_| frame.kind() == Kind::Request) else { return };
        let params: serde_json::Value =
            serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
        let member = |name: &str| params[name].as_str().map(str::to_owned);
        let number = id.parse::<u64>().unwrap_or(0);
        let method = frame.method();
        if matches!(method.as_deref(), Some("session/new" | "session/fork")) {
            self.asked.insert((agent, id.into()), wakes);
            return;
        }
        let Some(theirs) = frame.session_id() else { return };
        let past = self.procs.entry((agent, theirs.as_ref().into())).or_default();
        match method.as_deref() {
            Some("session/load" | "session/resume") => {
                *past = Past { wakes: true, asked: number, ..Past::default() };
            }
            Some("session/set_mode") => past.mode = member("modeId"),
            Some("session/set_config_option") => {
                let option = member("configId").unwrap_or_default();
                past.options.insert(option, member("value").unwrap_or_default());
            }
            _ => return,
        }
        if past.wakes && past.woke == 0 && past.asked < number {
            past.settings.insert(id.to_owned(), (self.now, false));
        }
    }

    /// The hub hears an agent.
    pub(in crate::hub_sim) fn on_heard(&mut self, agent: AgentId, frame: &Frame) {
        if let Some(id) = frame.id().filter(|_| frame.kind() == Kind::Response) {
            let asked = self.asked.remove(&(agent, id.into()));
            if let (Some(wakes), Some(theirs)) = (asked, frame.session_id()) {
                let asked = id.parse().unwrap_or(0);
                let past = Past { wakes, asked, ..Past::default() };
                self.procs.insert((agent, theirs.as_ref().into()), past);
            }
            let its = self.procs.iter_mut().filter(|((it, _), _)| *it == agent);
            for (_, answered) in its.filter_map(|(_, it)| it.settings.get_mut(id)) {
                *answered = true;
            }
        }
        let Some(theirs) = frame.session_id() else { return };
        if frame.update().as_deref() == Some("current_mode_update") {
            let past = self.procs.entry((agent, theirs.as_ref().into())).or_default();
            let params: serde_json::Value =
                serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
            past.mode = params["update"]["currentModeId"].as_str().map(str::to_owned);
            past.said_modes.extend(past.mode.clone());
        }
    }

    /// The hub says that a process has taken a session over.
    pub(in crate::hub_sim) fn on_woke(&mut self, session: &SessionId, key: &Key, rung: &str) {
        let (now, agent) = (self.now, key.0);
        let logs = self.logged.get(session).is_some_and(|it| !it.is_empty());
        self.noted.entry(session.clone()).or_default().push_back(rung.to_owned());
        self.one_event_says_how_a_session_woke(session);
        let past = self.procs.entry(key.clone()).or_default();
        past.wakes = true;
        past.woke += 1;
        hold("one_event_says_how_a_session_woke", past.woke == 1, || {
            format!("{session} woke {} times in {agent}", past.woke)
        });
        let late = |at: Time| at.plus(limits::SETTING_MS_MAX) <= now;
        let open = past.settings.values().find(|(at, answered)| !answered && !late(*at));
        hold("settings_are_answered_before_a_session_is_woken", open.is_none(), || {
            format!("{agent} was not given time to set {session} up")
        });
        let Some(state) = self.states.get(session).filter(|_| logs) else { return };
        // A process that still ends may accept one while the next is told the last.
        let told = past.settings.values().map(|(at, _)| *at).min();
        if told.is_some_and(|at| self.configured.get(session).is_some_and(|it| at <= *it)) {
            return;
        }
        let same = state.mode.is_none() || state.mode == past.mode;
        hold("a_woken_session_keeps_its_settings", same, || {
            format!("{session} is in mode {:?}, {agent} in {:?}", state.mode, past.mode)
        });
        let missing = state.config.keys().find(|it| !past.options.contains_key(*it));
        hold("a_woken_session_keeps_its_settings", missing.is_none(), || {
            format!("{agent} was not told option {missing:?} of {session}")
        });
    }

    /// An agent is prompted: after it was told what was, if it knows nothing.
    pub(in crate::hub_sim) fn on_prompted(
        &self,
        key: &Key,
        session: Option<&SessionId>,
        frame: &Frame,
    ) {
        let agent = key.0;
        let past = self.procs.get(key);
        let ready = past.is_none_or(|it| !it.wakes || 0 < it.woke);
        hold("nobody_is_prompted_before_the_session_woke", ready, || {
            format!("{agent} heard {frame:?}")
        });
        let Some((session, state)) = session.and_then(|it| self.states.get_key_value(it)) else {
            return;
        };
        let digest = peek::contains(frame.bytes(), "[End of the digest.");
        let wanted = state.unseeded && self.lost.contains(session);
        hold("who_knows_nothing_is_told_what_was", digest == wanted, || {
            let unseeded = state.unseeded;
            format!("{agent} heard {frame:?} in turn {}, unseeded {unseeded}", state.turns)
        });
    }
}

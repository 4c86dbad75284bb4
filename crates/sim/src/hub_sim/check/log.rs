//! The log of each session is consistent, whatever happened.

use super::check_invariant;
use crate::hub_sim::markers;
use bytes::Bytes;
use jackfield_events::{
    AgentBound, AgentMessage, AgentSessionId, EventBody, SessionEvent, SessionOpened,
    SessionSummary, TurnEnded, TurnOutcome, TurnStarted, UserAnswered, UserAsked,
};
use jackfield_hub::{AgentId, SessionId};
use std::collections::{BTreeMap, BTreeSet};

/// Tracks the updates and prompts of a run and the logs they belong in.
#[derive(Debug, Default)]
pub(in crate::hub_sim) struct LogTracker {
    /// Updates by mark.
    pub(in crate::hub_sim) updates: BTreeMap<u64, AgentUpdate>,
    pub(in crate::hub_sim) prompts: BTreeMap<u64, PromptRecord>,
    /// Updates that the hub received from the serving agent and that must be written.
    pub(in crate::hub_sim) pending_updates: BTreeSet<u64>,
    /// Sessions by the agent's session id; a reseeded session has several.
    pub(in crate::hub_sim) session_ids: BTreeMap<AgentSessionId, SessionId>,
    /// Counts the messages of agents in the order in which the hub received them.
    pub(in crate::hub_sim) received: u64,
    log_states: BTreeMap<SessionId, LogState>,
}

/// An update of an agent.
#[derive(Debug)]
pub(in crate::hub_sim) struct AgentUpdate {
    pub(in crate::hub_sim) text: Bytes,
    pub(in crate::hub_sim) agent_session: AgentSessionId,
    /// The process, and the number of the hub it belongs to.
    pub(in crate::hub_sim) speaker: (u64, AgentId),
    /// Sent during a load: the journal has it already.
    pub(in crate::hub_sim) replay: bool,
    /// The position in the order of receipt; 0 if it is not received yet.
    pub(in crate::hub_sim) received: u64,
    pub(in crate::hub_sim) seq: Option<u64>,
}

/// A prompt of a client.
#[derive(Debug, Default)]
pub(in crate::hub_sim) struct PromptRecord {
    pub(in crate::hub_sim) refused: bool,
    pub(in crate::hub_sim) sent: u32,
    /// How often an agent answered that it does not have the session.
    pub(in crate::hub_sim) missing_session_errors: u32,
    /// The position of the agent's response in the order of receipt.
    pub(in crate::hub_sim) answered: u64,
    pub(in crate::hub_sim) prompted: Option<u64>,
    pub(in crate::hub_sim) ended: Option<u64>,
    pub(in crate::hub_sim) turn: u64,
}

/// The state of a session's log.
#[derive(Debug, Default)]
struct LogState {
    turns: u64,
    open: Option<(u64, Option<u64>)>,
    asks: u64,
    open_asks: BTreeSet<u64>,
    last_heard: u64,
}

impl LogTracker {
    /// The hub appends an event.
    pub(in crate::hub_sim) fn on_appended(&mut self, session: &SessionId, event: &SessionEvent) {
        if let EventBody::Opened(SessionOpened { agent_session, .. })
        | EventBody::Bound(AgentBound { agent_session: Some(agent_session), .. }) = &event.body
        {
            self.session_ids.insert(agent_session.clone(), session.clone());
        }
    }

    /// An event has become durable.
    pub(in crate::hub_sim) fn on_durable(&mut self, session: &SessionId, event: &SessionEvent) {
        log_starts_with_opened_event(session, event);
        match &event.body {
            EventBody::Said(AgentMessage { frame, turn, .. }) => {
                self.updates_are_logged_verbatim_once(session, event.seq.0, frame.bytes());
                self.updates_carry_their_turn(session, *turn);
            }
            EventBody::Prompted(TurnStarted { turn, frame, .. }) => {
                self.one_open_turn_per_session(session, event.seq.0, *turn, frame.bytes());
            }
            EventBody::Ended(TurnEnded { turn, outcome }) => {
                self.turn_has_one_outcome(session, event.seq.0, *turn);
                self.turn_ends_after_its_updates(session, outcome);
            }
            EventBody::Asked(UserAsked { ask, .. }) => self.asks_are_numbered(session, *ask),
            EventBody::Answered(UserAnswered { ask, .. }) => {
                self.ask_is_answered_once(session, *ask);
            }
            _ => {}
        }
    }

    /// A session starts as a copy of another.
    pub(in crate::hub_sim) fn on_copied(&mut self, session: &SessionId, state: &SessionSummary) {
        let open = state.open_turn.map(|it| (it, None));
        let (turns, asks, open_asks) = (state.turns, state.asks, state.open_asks.clone());
        let log_state = LogState { turns, open, asks, open_asks, last_heard: 0 };
        self.log_states.insert(session.clone(), log_state);
    }

    /// A session is gone: its updates need not be written any more.
    pub(in crate::hub_sim) fn forget(&mut self, session: &SessionId) {
        let (updates, session_ids) = (&self.updates, &self.session_ids);
        // An unlogged agent session belongs to a session that was never opened.
        let belongs_elsewhere =
            |it: &AgentSessionId| session_ids.get(it).is_some_and(|it| it != session);
        self.pending_updates.retain(|mark| belongs_elsewhere(&updates[mark].agent_session));
    }

    /// Byte for byte except for the session id; each once; in the order in which they were sent.
    fn updates_are_logged_verbatim_once(&mut self, session: &SessionId, seq: u64, frame: &Bytes) {
        let name = "updates_are_logged_verbatim_once";
        let Some(mark) = markers::find_mark(frame) else { return };
        let update = self.updates.get_mut(&mark).expect("the update was recorded when sent");
        check_invariant("replayed_update_is_not_logged", !update.replay, || {
            format!("event {seq} of {session} is the replay of a load: {frame:?}")
        });
        check_invariant(name, update.seq.is_none(), || {
            format!("update {mark} was written twice: {frame:?}")
        });
        update.seq = Some(seq);
        let owner = self.session_ids.get(&update.agent_session);
        check_invariant(
            "messages_stay_in_their_session",
            owner.is_none_or(|it| it == session),
            || format!("update {mark} was sent in {owner:?} and is logged in {session}"),
        );
        let (from, to) = (format!("\"{}\"", update.agent_session), format!("\"{session}\""));
        let sent = String::from_utf8_lossy(&update.text).replacen(&from, &to, 1);
        check_invariant(name, sent.as_bytes() == &frame[..], || {
            format!("{sent} was logged as {frame:?}")
        });
        let log_state = self.log_states.entry(session.clone()).or_default();
        check_invariant("updates_keep_their_order", log_state.last_heard < update.received, || {
            format!("update {mark} of {session} was written after a later one")
        });
        log_state.last_heard = update.received;
        self.pending_updates.remove(&mark);
    }

    fn updates_carry_their_turn(&mut self, session: &SessionId, turn: u64) {
        let log_state = self.log_states.entry(session.clone()).or_default();
        check_invariant("updates_carry_their_turn", turn == log_state.turns, || {
            format!("an update of turn {} in {session} was tagged with {turn}", log_state.turns)
        });
    }

    fn one_open_turn_per_session(
        &mut self,
        session: &SessionId,
        seq: u64,
        turn: u64,
        frame: &Bytes,
    ) {
        let log_state = self.log_states.entry(session.clone()).or_default();
        check_invariant(
            "one_open_turn_per_session",
            log_state.open.is_none() && turn == log_state.turns + 1,
            || format!("turn {turn} of {session} began while {:?} was open", log_state.open),
        );
        let mark = markers::find_prompt(frame);
        log_state.turns = turn;
        log_state.open = Some((turn, mark));
        let Some(prompt) = mark.and_then(|it| self.prompts.get_mut(&it)) else { return };
        check_invariant("prompt_is_logged_once", prompt.prompted.is_none(), || {
            format!("prompt {mark:?} of {session} was written twice")
        });
        check_invariant("refused_prompt_never_runs", !prompt.refused, || {
            format!("prompt {mark:?} of {session} was refused and began turn {turn}")
        });
        prompt.prompted = Some(seq);
        prompt.turn = turn;
    }

    fn turn_has_one_outcome(&mut self, session: &SessionId, seq: u64, turn: u64) {
        let log_state = self.log_states.entry(session.clone()).or_default();
        let open = log_state.open.take();
        check_invariant("turn_has_one_outcome", open.is_some_and(|(it, _)| it == turn), || {
            format!("turn {turn} of {session} ended while {open:?} was open")
        });
        let mark = open.and_then(|(_, mark)| mark);
        if let Some(prompt) = mark.and_then(|it| self.prompts.get_mut(&it)) {
            prompt.ended = Some(seq);
        }
    }

    /// Updates that the agent sent before its response precede the end of the turn.
    fn turn_ends_after_its_updates(&mut self, session: &SessionId, outcome: &TurnOutcome) {
        let token = markers::find_token(outcome.json().bytes());
        let Some(prompt) = token.and_then(|it| self.prompts.get(&it)) else { return };
        let answered = prompt.answered;
        let late = self.pending_updates.iter().find(|mark| {
            let update = &self.updates[mark];
            self.session_ids.get(&update.agent_session) == Some(session)
                && update.received < answered
        });
        check_invariant("turn_ends_after_its_updates", late.is_none(), || {
            format!("a turn of {session} ended before update {late:?} of it")
        });
    }

    fn asks_are_numbered(&mut self, session: &SessionId, ask: u64) {
        let log_state = self.log_states.entry(session.clone()).or_default();
        check_invariant("asks_are_numbered", ask == log_state.asks + 1, || {
            format!("ask {ask} of {session} follows {}", log_state.asks)
        });
        log_state.asks = ask;
        log_state.open_asks.insert(ask);
    }

    fn ask_is_answered_once(&mut self, session: &SessionId, ask: u64) {
        let log_state = self.log_states.entry(session.clone()).or_default();
        check_invariant("ask_is_answered_once", log_state.open_asks.remove(&ask), || {
            format!("ask {ask} of {session} was answered and was not open")
        });
    }

    /// The turn and the number of asks that the log leaves open.
    pub(in crate::hub_sim) fn open_in(&self, session: &SessionId) -> (Option<u64>, usize) {
        let Some(log_state) = self.log_states.get(session) else { return (None, 0) };
        (log_state.open.map(|(turn, _)| turn), log_state.open_asks.len())
    }
}

/// The state that the hub recovers after a crash equals the fold of the whole log.
pub(in crate::hub_sim) fn recovered_state_equals_folded_log(
    session: &SessionId,
    recovered: &SessionSummary,
    events: &[SessionEvent],
) {
    let mut whole = SessionSummary::default();
    for event in events {
        whole.fold(event);
    }
    check_invariant("recovered_state_equals_folded_log", *recovered == whole, || {
        format!("{session} was recovered as {recovered:?}, but its log folds to {whole:?}")
    });
}

fn log_starts_with_opened_event(session: &SessionId, event: &SessionEvent) {
    let opens = matches!(event.body, EventBody::Opened(_));
    check_invariant("log_starts_with_opened_event", opens == (event.seq.0 == 1), || {
        format!("event {} of {session} is {:?}", event.seq.0, event.body)
    });
}

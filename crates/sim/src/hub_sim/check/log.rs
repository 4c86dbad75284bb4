//! The log of each session is a story that makes sense, whatever happened.

use super::hold;
use crate::hub_sim::peek;
use bytes::Bytes;
use jackfield_events::{
    AgentBound, AgentMessage, AgentSessionId, EventBody, SessionEvent, SessionOpened,
    SessionSummary, TurnEnded, TurnOutcome, TurnStarted, UserAnswered, UserAsked,
};
use jackfield_hub::{AgentId, SessionId};
use std::collections::{BTreeMap, BTreeSet};

/// Everything said in this world that must be accounted for.
#[derive(Debug, Default)]
pub(in crate::hub_sim) struct Facts {
    /// Updates by their mark.
    pub(in crate::hub_sim) words: BTreeMap<u64, Word>,
    pub(in crate::hub_sim) prompts: BTreeMap<u64, Prompt>,
    /// Words that the hub took from a session's agent and that must come to be written.
    pub(in crate::hub_sim) owed: BTreeSet<u64>,
    /// The agents' names for sessions: a reseeded one has several.
    pub(in crate::hub_sim) names: BTreeMap<AgentSessionId, SessionId>,
    /// Counts what agents say, in the order the hub heard it.
    pub(in crate::hub_sim) heard: u64,
    tales: BTreeMap<SessionId, Tale>,
}

/// An update of an agent.
#[derive(Debug)]
pub(in crate::hub_sim) struct Word {
    pub(in crate::hub_sim) text: Bytes,
    pub(in crate::hub_sim) theirs: AgentSessionId,
    /// The process, and the life of the hub it belongs to.
    pub(in crate::hub_sim) speaker: (u64, AgentId),
    /// Said while loading: the journal has it already.
    pub(in crate::hub_sim) replay: bool,
    /// When the hub heard it; 0 is not yet.
    pub(in crate::hub_sim) heard: u64,
    pub(in crate::hub_sim) seq: Option<u64>,
}

/// A prompt of a client.
#[derive(Debug, Default)]
pub(in crate::hub_sim) struct Prompt {
    pub(in crate::hub_sim) refused: bool,
    pub(in crate::hub_sim) sent: u32,
    /// How often an agent said that it has no session for it.
    pub(in crate::hub_sim) disowned: u32,
    /// When the hub heard the agent's answer.
    pub(in crate::hub_sim) answered: u64,
    pub(in crate::hub_sim) prompted: Option<u64>,
    pub(in crate::hub_sim) ended: Option<u64>,
    pub(in crate::hub_sim) turn: u64,
}

/// A session's story so far.
#[derive(Debug, Default)]
struct Tale {
    turns: u64,
    open: Option<(u64, Option<u64>)>,
    asks: u64,
    open_asks: BTreeSet<u64>,
    last_heard: u64,
}

impl Facts {
    /// The hub wants an event written.
    pub(in crate::hub_sim) fn on_appended(&mut self, session: &SessionId, event: &SessionEvent) {
        if let EventBody::Opened(SessionOpened { agent_session, .. })
        | EventBody::Bound(AgentBound { agent_session: Some(agent_session), .. }) = &event.body
        {
            self.names.insert(agent_session.clone(), session.clone());
        }
    }

    /// An event has become durable.
    pub(in crate::hub_sim) fn on_landed(&mut self, session: &SessionId, event: &SessionEvent) {
        a_log_begins_with_its_opening(session, event);
        match &event.body {
            EventBody::Said(AgentMessage { frame, turn, .. }) => {
                self.words_are_written_as_said(session, event.seq.0, frame.bytes());
                self.words_carry_their_turn(session, *turn);
            }
            EventBody::Prompted(TurnStarted { turn, frame, .. }) => {
                self.one_turn_at_a_time(session, event.seq.0, *turn, frame.bytes());
            }
            EventBody::Ended(TurnEnded { turn, outcome }) => {
                self.a_turn_has_one_outcome(session, event.seq.0, *turn);
                self.a_turn_ends_after_its_words(session, outcome);
            }
            EventBody::Asked(UserAsked { ask, .. }) => self.asks_are_numbered(session, *ask),
            EventBody::Answered(UserAnswered { ask, .. }) => {
                self.an_ask_is_settled_once(session, *ask);
            }
            _ => {}
        }
    }

    /// A session begins as a copy of another: what that one was told is not told again.
    pub(in crate::hub_sim) fn on_copied(&mut self, session: &SessionId, state: &SessionSummary) {
        let open = state.open_turn.map(|it| (it, None));
        let (turns, asks, open_asks) = (state.turns, state.asks, state.open_asks.clone());
        let tale = Tale { turns, open, asks, open_asks, last_heard: 0 };
        self.tales.insert(session.clone(), tale);
    }

    /// A session is gone for good: nothing of it needs to be written any more.
    pub(in crate::hub_sim) fn forget(&mut self, session: &SessionId) {
        let (words, names) = (&self.words, &self.names);
        // A name that no log has belongs to an agent's session that came to nothing.
        let lives = |it: &AgentSessionId| names.get(it).is_some_and(|it| it != session);
        self.owed.retain(|mark| lives(&words[mark].theirs));
    }

    /// Byte for byte, save for the session's name; each once; in the order they were said.
    fn words_are_written_as_said(&mut self, session: &SessionId, seq: u64, frame: &Bytes) {
        let name = "words_are_written_as_said";
        let Some(mark) = peek::mark(frame) else { return };
        let word = self.words.get_mut(&mark).expect("only agents of this world speak");
        hold("a_replay_is_swallowed", !word.replay, || {
            format!("event {seq} of {session} is the replay of a load: {frame:?}")
        });
        hold(name, word.seq.is_none(), || format!("update {mark} was written twice: {frame:?}"));
        word.seq = Some(seq);
        let of = self.names.get(&word.theirs);
        hold("words_stay_in_their_session", of.is_none_or(|it| it == session), || {
            format!("update {mark} was said in {of:?} and is written in {session}")
        });
        let (from, to) = (format!("\"{}\"", word.theirs), format!("\"{session}\""));
        let said = String::from_utf8_lossy(&word.text).replacen(&from, &to, 1);
        hold(name, said.as_bytes() == &frame[..], || format!("{said} was written as {frame:?}"));
        let tale = self.tales.entry(session.clone()).or_default();
        hold("words_keep_their_order", tale.last_heard < word.heard, || {
            format!("update {mark} of {session} was written after a later one")
        });
        tale.last_heard = word.heard;
        self.owed.remove(&mark);
    }

    fn words_carry_their_turn(&mut self, session: &SessionId, turn: u64) {
        let tale = self.tales.entry(session.clone()).or_default();
        hold("words_carry_their_turn", turn == tale.turns, || {
            format!("an update of turn {} in {session} was tagged with {turn}", tale.turns)
        });
    }

    fn one_turn_at_a_time(&mut self, session: &SessionId, seq: u64, turn: u64, frame: &Bytes) {
        let tale = self.tales.entry(session.clone()).or_default();
        hold("one_turn_at_a_time", tale.open.is_none() && turn == tale.turns + 1, || {
            format!("turn {turn} of {session} began while {:?} was open", tale.open)
        });
        let mark = peek::prompt(frame);
        tale.turns = turn;
        tale.open = Some((turn, mark));
        let Some(prompt) = mark.and_then(|it| self.prompts.get_mut(&it)) else { return };
        hold("a_prompt_is_written_once", prompt.prompted.is_none(), || {
            format!("prompt {mark:?} of {session} was written twice")
        });
        hold("a_refused_prompt_never_runs", !prompt.refused, || {
            format!("prompt {mark:?} of {session} was refused and began turn {turn}")
        });
        prompt.prompted = Some(seq);
        prompt.turn = turn;
    }

    fn a_turn_has_one_outcome(&mut self, session: &SessionId, seq: u64, turn: u64) {
        let tale = self.tales.entry(session.clone()).or_default();
        let open = tale.open.take();
        hold("a_turn_has_one_outcome", open.is_some_and(|(it, _)| it == turn), || {
            format!("turn {turn} of {session} ended while {open:?} was open")
        });
        let mark = open.and_then(|(_, mark)| mark);
        if let Some(prompt) = mark.and_then(|it| self.prompts.get_mut(&it)) {
            prompt.ended = Some(seq);
        }
    }

    /// What the agent said before it answered the prompt stands before the turn's end.
    fn a_turn_ends_after_its_words(&mut self, session: &SessionId, outcome: &TurnOutcome) {
        let token = peek::token(outcome.json().bytes());
        let Some(prompt) = token.and_then(|it| self.prompts.get(&it)) else { return };
        let answered = prompt.answered;
        let late = self.owed.iter().find(|mark| {
            let word = &self.words[mark];
            self.names.get(&word.theirs) == Some(session) && word.heard < answered
        });
        hold("a_turn_ends_after_its_words", late.is_none(), || {
            format!("a turn of {session} ended before update {late:?} of it")
        });
    }

    fn asks_are_numbered(&mut self, session: &SessionId, ask: u64) {
        let tale = self.tales.entry(session.clone()).or_default();
        hold("asks_are_numbered", ask == tale.asks + 1, || {
            format!("ask {ask} of {session} follows {}", tale.asks)
        });
        tale.asks = ask;
        tale.open_asks.insert(ask);
    }

    fn an_ask_is_settled_once(&mut self, session: &SessionId, ask: u64) {
        let tale = self.tales.entry(session.clone()).or_default();
        hold("an_ask_is_settled_once", tale.open_asks.remove(&ask), || {
            format!("ask {ask} of {session} was settled and was not open")
        });
    }

    /// Turn and asks that the log leaves open.
    pub(in crate::hub_sim) fn open_in(&self, session: &SessionId) -> (Option<u64>, usize) {
        let Some(tale) = self.tales.get(session) else { return (None, 0) };
        (tale.open.map(|(turn, _)| turn), tale.open_asks.len())
    }
}

/// What the hub starts from after a crash is what the whole log says.
pub(in crate::hub_sim) fn summary_and_tail_give_the_whole(
    session: &SessionId,
    recovered: &SessionSummary,
    events: &[SessionEvent],
) {
    let mut whole = SessionSummary::default();
    for event in events {
        whole.fold(event);
    }
    hold("summary_and_tail_give_the_whole", *recovered == whole, || {
        format!("{session} was recovered as {recovered:?}, but its log says {whole:?}")
    });
}

fn a_log_begins_with_its_opening(session: &SessionId, event: &SessionEvent) {
    let opens = matches!(event.body, EventBody::Opened(_));
    hold("a_log_begins_with_its_opening", opens == (event.seq.0 == 1), || {
        format!("event {} of {session} is {:?}", event.seq.0, event.body)
    });
}

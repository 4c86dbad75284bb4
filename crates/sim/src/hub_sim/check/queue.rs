//! The queue of each session: what waits runs once or is withdrawn once, in order, and what an
//! earlier hub left runs only when somebody asks.

use super::hold;
use crate::hub_sim::peek;
use jackfield_events::{
    EventBody, PromptQueued, PromptWithdrawn, SessionEvent, SessionSummary, TurnStarted,
};
use jackfield_hub::SessionId;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(in crate::hub_sim) struct Queues(BTreeMap<SessionId, Line>);

/// One session's queue, as its log tells it.
#[derive(Debug, Default)]
struct Line {
    /// The last number given.
    last: u64,
    /// The marks of what waits.
    waiting: BTreeMap<u64, u64>,
    /// What this hub runs, first to last, and whether it steers.
    order: Vec<(u64, bool)>,
    /// What was held and released since: each release by its token, in its own order.
    released: BTreeMap<u64, Vec<u64>>,
    /// A turn is open.
    runs: bool,
}

impl Queues {
    pub(in crate::hub_sim) fn on_landed(&mut self, session: &SessionId, event: &SessionEvent) {
        let line = self.0.entry(session.clone()).or_default();
        match &event.body {
            EventBody::Queued(PromptQueued { prompt, frame, .. }) => {
                waiting_prompts_are_numbered(session, line.last, *prompt);
                line.last = *prompt;
                let mark = peek::prompt(frame.bytes()).expect("prompts are marked");
                line.waiting.insert(*prompt, mark);
                let steers = line.runs && peek::contains(frame.bytes(), "\"steer\":true");
                let before = line.order.iter().filter(|(_, steers)| *steers).count();
                let at = if steers { before } else { line.order.len() };
                line.order.insert(at, (*prompt, steers));
            }
            EventBody::Withdrawn(PromptWithdrawn { prompt, .. }) => {
                a_waiting_prompt_leaves_once(session, line.waiting.remove(prompt), *prompt);
                line.forget(*prompt);
            }
            EventBody::Prompted(TurnStarted { prompt: Some(prompt), frame, .. }) => {
                let mark = line.waiting.remove(prompt);
                a_waiting_prompt_leaves_once(session, mark, *prompt);
                hold("what_waited_is_what_runs", mark == peek::prompt(frame.bytes()), || {
                    format!("prompt {prompt} of {session} was {mark:?} and is {frame:?}")
                });
                line.runs_in_its_turn(session, *prompt);
                line.forget(*prompt);
                line.runs = true;
            }
            EventBody::Prompted(TurnStarted { frame, .. }) => {
                line.nobody_jumps_the_queue(session, peek::prompt(frame.bytes()));
                line.runs = true;
            }
            EventBody::Ended(_) => line.runs = false,
            _ => {}
        }
    }

    /// A session begins as a copy of another.
    pub(in crate::hub_sim) fn on_copied(&mut self, session: &SessionId, state: &SessionSummary) {
        let runs = state.open_turn.is_some();
        self.0.insert(session.clone(), Line { last: state.prompts, runs, ..Line::default() });
    }

    /// Whatever waits is held from now on.
    pub(in crate::hub_sim) fn on_restart(&mut self) -> usize {
        for line in self.0.values_mut() {
            line.order.clear();
            line.released.clear();
        }
        self.0.values().map(|it| it.waiting.len()).sum()
    }

    /// The hub is asked to run what is held, all of it or one.
    pub(in crate::hub_sim) fn on_release(
        &mut self,
        session: &SessionId,
        token: u64,
        only: Option<u64>,
    ) -> usize {
        let Some(line) = self.0.get_mut(session) else { return 0 };
        let all = line.waiting.keys().copied().filter(|it| line.is_held(*it));
        let batch: Vec<u64> = all.filter(|it| only.is_none_or(|only| only == *it)).collect();
        let count = batch.len();
        line.released.insert(token, batch);
        count
    }

    /// A prompt that may be held is said again: then it runs.
    pub(in crate::hub_sim) fn on_said_again(
        &mut self,
        session: &SessionId,
        number: u64,
        mark: u64,
    ) {
        let Some(line) = self.0.get_mut(session) else { return };
        let held = line.waiting.iter().find(|(it, of)| **of == mark && line.is_held(**it));
        if let Some(prompt) = held.map(|(it, _)| *it) {
            line.released.insert(number, vec![prompt]);
        }
    }

    /// The session has left: whatever waits in it is held.
    pub(in crate::hub_sim) fn hold(&mut self, session: &SessionId) {
        if let Some(line) = self.0.get_mut(session) {
            line.order.clear();
            line.released.clear();
        }
    }

    /// It would not.
    pub(in crate::hub_sim) fn on_release_refused(&mut self, session: &SessionId, token: u64) {
        if let Some(line) = self.0.get_mut(session) {
            line.released.remove(&token);
        }
    }

    pub(in crate::hub_sim) fn forget(&mut self, session: &SessionId) {
        self.0.remove(session);
    }

    /// Whether this prompt waits in the log.
    pub(in crate::hub_sim) fn waits(&self, session: &SessionId, mark: u64) -> bool {
        self.0.get(session).is_some_and(|it| it.waiting.values().any(|it| *it == mark))
    }

    /// The numbers of what waits in a session.
    pub(in crate::hub_sim) fn numbers(&self, session: &SessionId) -> Vec<u64> {
        self.0.get(session).map(|it| it.waiting.keys().copied().collect()).unwrap_or_default()
    }

    /// When everything has come to rest, only what is held waits.
    pub(in crate::hub_sim) fn nothing_waits_for_ever(&self) {
        for (session, line) in &self.0 {
            let stuck = line.waiting.keys().find(|it| !line.is_held(**it));
            hold("nothing_waits_for_ever", stuck.is_none(), || {
                format!("prompt {stuck:?} of {session} neither ran nor was withdrawn")
            });
        }
    }
}

impl Line {
    fn is_held(&self, prompt: u64) -> bool {
        let ordered = self.order.iter().any(|(it, _)| *it == prompt);
        !ordered && !self.released.values().flatten().any(|it| *it == prompt)
    }

    fn forget(&mut self, prompt: u64) {
        self.order.retain(|(it, _)| *it != prompt);
        for batch in self.released.values_mut() {
            batch.retain(|it| *it != prompt);
        }
    }

    fn runs_in_its_turn(&self, session: &SessionId, prompt: u64) {
        hold("a_held_prompt_runs_only_when_released", !self.is_held(prompt), || {
            format!("prompt {prompt} of {session} ran and nobody had asked for it")
        });
        let batch = self.released.values().find(|it| it.contains(&prompt));
        let first = match batch {
            Some(batch) => batch.first().copied(),
            None => self.order.first().map(|(it, _)| *it),
        };
        hold("the_queue_keeps_its_order", first == Some(prompt), || {
            format!("prompt {prompt} of {session} ran before {first:?}")
        });
    }

    /// What runs at once was not in the queue, and nothing else was.
    fn nobody_jumps_the_queue(&self, session: &SessionId, mark: Option<u64>) {
        let queued = self.waiting.values().any(|it| Some(*it) == mark);
        let behind = self.order.first();
        hold("nobody_jumps_the_queue", !queued && behind.is_none(), || {
            format!("prompt {mark:?} of {session} ran at once, before {behind:?}")
        });
    }
}

fn waiting_prompts_are_numbered(session: &SessionId, last: u64, prompt: u64) {
    hold("waiting_prompts_are_numbered", prompt == last + 1, || {
        format!("prompt {prompt} of {session} follows {last}")
    });
}

fn a_waiting_prompt_leaves_once(session: &SessionId, mark: Option<u64>, prompt: u64) {
    hold("a_waiting_prompt_leaves_once", mark.is_some(), || {
        format!("prompt {prompt} of {session} left the queue and was not in it")
    });
}

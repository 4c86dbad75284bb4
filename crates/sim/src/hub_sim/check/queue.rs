//! The prompt queue of each session: a queued prompt runs once or is withdrawn once, in order; a prompt that an earlier
//! hub left is held until a client releases it.

use super::check_invariant;
use crate::hub_sim::markers;
use jackfield_events::{
    EventBody, PromptQueued, PromptWithdrawn, QueueReordered, SessionEvent, SessionSummary,
    TurnStarted,
};
use jackfield_hub::SessionId;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
pub(in crate::hub_sim) struct QueueTracker(BTreeMap<SessionId, SessionQueue>);

/// The queue of one session according to its log.
#[derive(Debug, Default)]
struct SessionQueue {
    /// The number of the last queued prompt.
    last_number: u64,
    /// The marks of the queued prompts.
    queued_marks: BTreeMap<u64, u64>,
    /// The order that the last move gave them.
    moved_order: Vec<u64>,
    /// The prompts that this hub will run, in order, and whether they steer.
    run_order: Vec<(u64, bool)>,
    /// Held prompts that were released: the token of each request, and its prompts in order.
    released: BTreeMap<u64, Vec<u64>>,
    /// A turn is open.
    has_open_turn: bool,
}

impl QueueTracker {
    pub(in crate::hub_sim) fn on_durable(&mut self, session: &SessionId, event: &SessionEvent) {
        let queue = self.0.entry(session.clone()).or_default();
        match &event.body {
            EventBody::Queued(PromptQueued { prompt, frame, .. }) => {
                queued_prompts_are_numbered(session, queue.last_number, *prompt);
                queue.last_number = *prompt;
                let mark = markers::find_prompt(frame.bytes()).expect("prompts are marked");
                queue.queued_marks.insert(*prompt, mark);
                let steers =
                    queue.has_open_turn && markers::contains(frame.bytes(), "\"steer\":true");
                let before = queue.run_order.iter().filter(|(_, steers)| *steers).count();
                let at = if steers { before } else { queue.run_order.len() };
                queue.run_order.insert(at, (*prompt, steers));
            }
            EventBody::Reordered(reordered) => queue.on_reordered(session, reordered),
            EventBody::Withdrawn(PromptWithdrawn { prompt, .. }) => {
                queued_prompt_leaves_queue_once(
                    session,
                    queue.queued_marks.remove(prompt),
                    *prompt,
                );
                queue.forget(*prompt);
            }
            EventBody::Prompted(TurnStarted { prompt: Some(prompt), frame, .. }) => {
                let mark = queue.queued_marks.remove(prompt);
                queued_prompt_leaves_queue_once(session, mark, *prompt);
                check_invariant(
                    "queued_prompt_equals_run_prompt",
                    mark == markers::find_prompt(frame.bytes()),
                    || format!("prompt {prompt} of {session} was {mark:?} and is {frame:?}"),
                );
                queue.check_run_order(session, *prompt);
                queue.forget(*prompt);
                queue.has_open_turn = true;
            }
            EventBody::Prompted(TurnStarted { frame, .. }) => {
                queue.immediate_prompt_finds_an_empty_queue(
                    session,
                    markers::find_prompt(frame.bytes()),
                );
                queue.has_open_turn = true;
            }
            EventBody::Ended(_) => queue.has_open_turn = false,
            _ => {}
        }
    }

    /// A session starts as a copy of another.
    pub(in crate::hub_sim) fn on_copied(&mut self, session: &SessionId, state: &SessionSummary) {
        let has_open_turn = state.open_turn.is_some();
        self.0.insert(
            session.clone(),
            SessionQueue { last_number: state.prompts, has_open_turn, ..SessionQueue::default() },
        );
    }

    /// All queued prompts are held after a restart.
    pub(in crate::hub_sim) fn on_restart(&mut self) -> usize {
        for queue in self.0.values_mut() {
            queue.run_order.clear();
            queue.released.clear();
        }
        self.0.values().map(|it| it.queued_marks.len()).sum()
    }

    /// A client asks the hub to run held prompts, all of them or one.
    pub(in crate::hub_sim) fn on_release(
        &mut self,
        session: &SessionId,
        token: u64,
        only: Option<u64>,
    ) -> usize {
        let Some(queue) = self.0.get_mut(session) else { return 0 };
        let all = queue.queued_marks.keys().copied().filter(|it| queue.is_held(*it));
        let mut batch: Vec<u64> = all.filter(|it| only.is_none_or(|only| only == *it)).collect();
        queue.sort_by_moved_order(&mut batch);
        let count = batch.len();
        queue.released.insert(token, batch);
        count
    }

    /// A held prompt is repeated: now it runs.
    pub(in crate::hub_sim) fn on_repeated(&mut self, session: &SessionId, number: u64, mark: u64) {
        let Some(queue) = self.0.get_mut(session) else { return };
        let held = queue.queued_marks.iter().find(|(it, of)| **of == mark && queue.is_held(**it));
        if let Some(prompt) = held.map(|(it, _)| *it) {
            queue.released.insert(number, vec![prompt]);
        }
    }

    /// The session has moved: all its queued prompts are held.
    pub(in crate::hub_sim) fn hold_prompts(&mut self, session: &SessionId) {
        if let Some(queue) = self.0.get_mut(session) {
            queue.run_order.clear();
            queue.released.clear();
        }
    }

    /// The hub refused the release.
    pub(in crate::hub_sim) fn on_release_refused(&mut self, session: &SessionId, token: u64) {
        if let Some(queue) = self.0.get_mut(session) {
            queue.released.remove(&token);
        }
    }

    pub(in crate::hub_sim) fn forget(&mut self, session: &SessionId) {
        self.0.remove(session);
    }

    /// Whether this prompt is queued in the log.
    pub(in crate::hub_sim) fn is_queued(&self, session: &SessionId, mark: u64) -> bool {
        self.0.get(session).is_some_and(|it| it.queued_marks.values().any(|it| *it == mark))
    }

    /// The numbers of the queued prompts.
    pub(in crate::hub_sim) fn queued_numbers(&self, session: &SessionId) -> Vec<u64> {
        self.0.get(session).map(|it| it.queued_marks.keys().copied().collect()).unwrap_or_default()
    }

    /// When the world is idle, only held prompts are queued.
    pub(in crate::hub_sim) fn no_prompt_is_queued_forever(&self) {
        for (session, queue) in &self.0 {
            let stuck = queue.queued_marks.keys().find(|it| !queue.is_held(**it));
            check_invariant("no_prompt_is_queued_forever", stuck.is_none(), || {
                format!("prompt {stuck:?} of {session} neither ran nor was withdrawn")
            });
        }
    }
}

impl SessionQueue {
    fn is_held(&self, prompt: u64) -> bool {
        let ordered = self.run_order.iter().any(|(it, _)| *it == prompt);
        !ordered && !self.released.values().flatten().any(|it| *it == prompt)
    }

    /// The number that a prompt is sorted by. Prompts that are not in the order of the last move follow it.
    fn moved_position(&self, prompt: u64) -> usize {
        let position = self.moved_order.iter().position(|it| *it == prompt);
        position.unwrap_or(self.moved_order.len())
    }

    fn sort_by_moved_order(&self, prompts: &mut [u64]) {
        prompts.sort_by_key(|it| (self.moved_position(*it), *it));
    }

    fn on_reordered(&mut self, session: &SessionId, reordered: &QueueReordered) {
        let QueueReordered { prompt, order, .. } = reordered;
        let queued: BTreeSet<u64> = self.queued_marks.keys().copied().collect();
        check_invariant(
            "order_of_the_queue_has_each_prompt_once",
            order.len() == queued.len() && order.iter().all(|it| queued.contains(it)),
            || format!("the queue of {session} is {queued:?}, and its order {order:?}"),
        );
        self.moved_order.clone_from(order);
        let follower = order.iter().skip_while(|it| *it != prompt).nth(1).copied();
        let steers = |it: &(u64, bool)| Some(it.0) == follower && it.1;
        let steers = self.run_order.iter().any(steers);
        let mut run_order = std::mem::take(&mut self.run_order);
        for it in run_order.iter_mut().filter(|it| it.0 == *prompt) {
            it.1 = steers;
        }
        run_order.sort_by_key(|it| self.moved_position(it.0));
        self.run_order = run_order;
        let mut released = std::mem::take(&mut self.released);
        for batch in released.values_mut() {
            self.sort_by_moved_order(batch);
        }
        self.released = released;
    }

    fn forget(&mut self, prompt: u64) {
        self.moved_order.retain(|it| *it != prompt);
        self.run_order.retain(|(it, _)| *it != prompt);
        for batch in self.released.values_mut() {
            batch.retain(|it| *it != prompt);
        }
    }

    fn check_run_order(&self, session: &SessionId, prompt: u64) {
        check_invariant("held_prompt_runs_only_when_released", !self.is_held(prompt), || {
            format!("prompt {prompt} of {session} ran and was not released")
        });
        let batch = self.released.values().find(|it| it.contains(&prompt));
        let first = match batch {
            Some(batch) => batch.first().copied(),
            None => self.run_order.first().map(|(it, _)| *it),
        };
        check_invariant("queue_runs_in_order", first == Some(prompt), || {
            format!("prompt {prompt} of {session} ran before {first:?}")
        });
    }

    /// A prompt that runs at once was not queued, and no other prompt was.
    fn immediate_prompt_finds_an_empty_queue(&self, session: &SessionId, mark: Option<u64>) {
        let queued = self.queued_marks.values().any(|it| Some(*it) == mark);
        let behind = self.run_order.first();
        check_invariant(
            "immediate_prompt_finds_an_empty_queue",
            !queued && behind.is_none(),
            || format!("prompt {mark:?} of {session} ran at once, before {behind:?}"),
        );
    }
}

fn queued_prompts_are_numbered(session: &SessionId, last_number: u64, prompt: u64) {
    check_invariant("queued_prompts_are_numbered", prompt == last_number + 1, || {
        format!("prompt {prompt} of {session} follows {last_number}")
    });
}

fn queued_prompt_leaves_queue_once(session: &SessionId, mark: Option<u64>, prompt: u64) {
    check_invariant("queued_prompt_leaves_queue_once", mark.is_some(), || {
        format!("prompt {prompt} of {session} left the queue and was not in it")
    });
}

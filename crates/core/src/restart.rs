//! How soon, and how often, a process that keeps ending is started again.

use crate::{Time, limits};
use std::collections::VecDeque;

/// The unexpected ends within the window.
#[derive(Debug, Clone, Default)]
pub(crate) struct Restarts {
    policy: Policy,
    ends: VecDeque<Time>,
}

/// So many ends within a window are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) max: usize,
    pub(crate) window_ms: u64,
}

/// What holds for agents.
impl Default for Policy {
    fn default() -> Policy {
        Policy { max: limits::RESTARTS_MAX, window_ms: limits::RESTART_WINDOW_MS }
    }
}

/// Whether a process may be started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Now,
    At(Time),
    GiveUp { ends: usize, until: Time },
}

impl Restarts {
    pub(crate) fn with(policy: Policy) -> Restarts {
        Restarts { policy, ends: VecDeque::new() }
    }

    pub(crate) fn ended(&mut self, now: Time) {
        self.ends.push_back(now);
        // No more are needed to see that it is too many; even where none is allowed, one is.
        if self.policy.max.max(1) < self.ends.len() {
            self.ends.pop_front();
        }
    }

    /// A turn went well: what was, was.
    pub(crate) fn forgive(&mut self) {
        self.ends.clear();
    }

    /// Whether one ended within the window.
    pub(crate) fn has_any(&self, now: Time) -> bool {
        self.ends.iter().any(|at| now < at.plus(self.policy.window_ms))
    }

    pub(crate) fn verdict(&mut self, now: Time) -> Verdict {
        let Policy { max, window_ms } = self.policy;
        while self.ends.pop_front_if(|at| at.plus(window_ms) <= now).is_some() {}
        let (Some(first), Some(last)) = (self.ends.front(), self.ends.back()) else {
            return Verdict::Now;
        };
        let ends = self.ends.len();
        if max <= ends {
            return Verdict::GiveUp { ends, until: first.plus(window_ms) };
        }
        let doubled = (ends - 1).min(limits::RESTART_DOUBLINGS_MAX);
        let at = last.plus(limits::RESTART_BACKOFF_MS << doubled);
        if at <= now { Verdict::Now } else { Verdict::At(at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_then_it_gives_up_then_the_window_passes() {
        let mut restarts = Restarts::default();
        assert_eq!(restarts.verdict(Time(0)), Verdict::Now);
        restarts.ended(Time(1_000));
        assert_eq!(restarts.verdict(Time(1_000)), Verdict::At(Time(1_100)));
        restarts.ended(Time(2_000));
        assert_eq!(restarts.verdict(Time(2_000)), Verdict::At(Time(2_200)));
        for at in 3..6 {
            restarts.ended(Time(at * 1_000));
        }
        let until = Time(1_000 + limits::RESTART_WINDOW_MS);
        assert_eq!(restarts.verdict(Time(6_000)), Verdict::GiveUp { ends: 5, until });
        assert_eq!(restarts.verdict(until), Verdict::Now);
    }

    #[test]
    fn a_pause_stops_doubling_and_a_policy_may_allow_nothing() {
        let mut patient = Restarts::with(Policy { max: 1_000, window_ms: 1_000_000 });
        (0..100).for_each(|_| patient.ended(Time(0)));
        let longest = limits::RESTART_BACKOFF_MS << limits::RESTART_DOUBLINGS_MAX;
        assert_eq!(patient.verdict(Time(0)), Verdict::At(Time(longest)));
        let mut strict = Restarts::with(Policy { max: 0, window_ms: 10 });
        strict.ended(Time(5));
        assert_eq!(strict.verdict(Time(5)), Verdict::GiveUp { ends: 1, until: Time(15) });
    }
}

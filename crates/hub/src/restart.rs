//! How soon and how often a process that keeps ending is restarted.

use crate::{Time, limits};
use std::collections::VecDeque;

/// Unexpected ends within the window.
#[derive(Debug, Clone, Default)]
pub struct RestartCounter {
    policy: RestartLimit,
    ends: VecDeque<Time>,
}

/// The number of ends within a window that is too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartLimit {
    pub max: usize,
    pub window_ms: u64,
}

/// The limit for agents.
impl Default for RestartLimit {
    fn default() -> RestartLimit {
        RestartLimit { max: limits::RESTARTS_MAX, window_ms: limits::RESTART_WINDOW_MS }
    }
}

/// Whether a process may be started.
#[derive(Debug, PartialEq, Eq)]
pub enum RestartVerdict {
    Now,
    At(Time),
    GiveUp { ends: usize, until: Time },
}

impl RestartCounter {
    pub fn with(policy: RestartLimit) -> RestartCounter {
        RestartCounter { policy, ends: VecDeque::new() }
    }

    pub fn ended(&mut self, now: Time) {
        self.ends.push_back(now);
        // Older ends are not needed for the verdict; at least one is kept.
        if self.policy.max.max(1) < self.ends.len() {
            self.ends.pop_front();
        }
    }

    /// A turn has completed: forgets all ends.
    pub fn forgive(&mut self) {
        self.ends.clear();
    }

    /// Whether a process ended within the window.
    pub fn has_any(&self, now: Time) -> bool {
        self.ends.iter().any(|at| now < at.plus(self.policy.window_ms))
    }

    pub fn verdict(&mut self, now: Time) -> RestartVerdict {
        let RestartLimit { max, window_ms } = self.policy;
        while self.ends.pop_front_if(|at| at.plus(window_ms) <= now).is_some() {}
        let (Some(first), Some(last)) = (self.ends.front(), self.ends.back()) else {
            return RestartVerdict::Now;
        };
        let ends = self.ends.len();
        if max <= ends {
            return RestartVerdict::GiveUp { ends, until: first.plus(window_ms) };
        }
        let doubled = (ends - 1).min(limits::RESTART_DOUBLINGS_MAX);
        let at = last.plus(limits::RESTART_BACKOFF_MS << doubled);
        if at <= now { RestartVerdict::Now } else { RestartVerdict::At(at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_then_it_gives_up_then_the_window_passes() {
        let mut restarts = RestartCounter::default();
        assert_eq!(restarts.verdict(Time(0)), RestartVerdict::Now);
        restarts.ended(Time(1_000));
        assert_eq!(restarts.verdict(Time(1_000)), RestartVerdict::At(Time(1_100)));
        restarts.ended(Time(2_000));
        assert_eq!(restarts.verdict(Time(2_000)), RestartVerdict::At(Time(2_200)));
        for at in 3..6 {
            restarts.ended(Time(at * 1_000));
        }
        let until = Time(1_000 + limits::RESTART_WINDOW_MS);
        assert_eq!(restarts.verdict(Time(6_000)), RestartVerdict::GiveUp { ends: 5, until });
        assert_eq!(restarts.verdict(until), RestartVerdict::Now);
    }

    #[test]
    fn a_pause_stops_doubling_and_a_policy_may_allow_nothing() {
        let mut patient = RestartCounter::with(RestartLimit { max: 1_000, window_ms: 1_000_000 });
        (0..100).for_each(|_| patient.ended(Time(0)));
        let longest = limits::RESTART_BACKOFF_MS << limits::RESTART_DOUBLINGS_MAX;
        assert_eq!(patient.verdict(Time(0)), RestartVerdict::At(Time(longest)));
        let mut strict = RestartCounter::with(RestartLimit { max: 0, window_ms: 10 });
        strict.ended(Time(5));
        assert_eq!(strict.verdict(Time(5)), RestartVerdict::GiveUp { ends: 1, until: Time(15) });
    }
}

//! How soon, and how often, an agent that keeps ending is started again.

use crate::{Time, limits};
use std::collections::VecDeque;

/// The unexpected ends within the window.
#[derive(Debug, Default)]
pub(crate) struct Restarts(VecDeque<Time>);

/// Whether an agent may be started.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Now,
    At(Time),
    GiveUp { ends: usize, until: Time },
}

impl Restarts {
    pub(crate) fn ended(&mut self, now: Time) {
        self.0.push_back(now);
        if limits::RESTARTS_MAX < self.0.len() {
            self.0.pop_front();
        }
    }

    /// A turn went well: what was, was.
    pub(crate) fn forgive(&mut self) {
        self.0.clear();
    }

    pub(crate) fn verdict(&mut self, now: Time) -> Verdict {
        while self.0.pop_front_if(|at| at.plus(limits::RESTART_WINDOW_MS) <= now).is_some() {}
        let (Some(first), Some(last)) = (self.0.front(), self.0.back()) else {
            return Verdict::Now;
        };
        let ends = self.0.len();
        if limits::RESTARTS_MAX <= ends {
            return Verdict::GiveUp { ends, until: first.plus(limits::RESTART_WINDOW_MS) };
        }
        let at = last.plus(limits::RESTART_BACKOFF_MS << (ends - 1));
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
}

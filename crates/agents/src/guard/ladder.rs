//! How a tree is ended, as a value: when to wait, when to ask, when to kill. Time is given to it.
//!
//! `Serving` → (stdin closed) `Eof` → `Term` → `Kill` → `Done`. Every rung has its grace, a stop
//! that is more urgent shortens what is left of it, and an empty tree ends the climb at once.

use crate::stop::Graces;
use std::time::Duration;

/// A process that forks while it is killed is met again in the next round.
const ROUND_FIRST: Duration = Duration::from_millis(2);
const ROUND_MAX: Duration = Duration::from_millis(100);

/// What to do now. Time is counted from the guard's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Wait { until: Option<Duration> },
    Term,
    Kill,
    Done,
}

#[derive(Debug)]
pub(super) struct Ladder {
    graces: Graces,
    rung: Rung,
    orphaned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rung {
    Serving,
    Eof { until: Duration },
    Term { until: Duration, sent: bool },
    Kill { until: Duration, next: Duration, round: Duration },
    Done,
}

impl Ladder {
    pub(super) fn new(graces: Graces) -> Ladder {
        Ladder { graces, rung: Rung::Serving, orphaned: false }
    }

    pub(super) fn is_serving(&self) -> bool {
        self.rung == Rung::Serving
    }

    /// The daemon closes the agent's stdin and asks us to see to the rest.
    pub(super) fn on_polite(&mut self, now: Duration) {
        if self.is_serving() {
            self.rung = Rung::Eof { until: now + self.graces.eof };
        }
    }

    /// The same without waiting for what the end of stdin does.
    pub(super) fn on_soon(&mut self, now: Duration) {
        if matches!(self.rung, Rung::Serving | Rung::Eof { .. }) {
            self.rung = Rung::Term { until: now + self.graces.term, sent: false };
        }
    }

    pub(super) fn on_now(&mut self, now: Duration) {
        if !matches!(self.rung, Rung::Kill { .. } | Rung::Done) {
            self.rung = self.kill(now);
        }
    }

    /// The daemon is gone: nobody waits for a good end any more, but the agent may save its work.
    pub(super) fn on_orphaned(&mut self, now: Duration) {
        self.orphaned = true;
        match &mut self.rung {
            Rung::Serving => self.rung = Rung::Eof { until: now + self.graces.orphan_eof },
            Rung::Eof { until } => *until = (*until).min(now + self.graces.orphan_eof),
            Rung::Term { until, .. } => *until = (*until).min(now + self.graces.orphan_term),
            Rung::Kill { .. } | Rung::Done => {}
        }
    }

    /// The agent ended. What it left behind serves nobody.
    pub(super) fn on_exited(&mut self, now: Duration) {
        let left = now + self.graces.left;
        match &mut self.rung {
            Rung::Serving | Rung::Eof { .. } => self.rung = Rung::Term { until: left, sent: false },
            Rung::Term { until, .. } => *until = (*until).min(left),
            Rung::Kill { .. } | Rung::Done => {}
        }
    }

    pub(super) fn on_empty(&mut self) {
        self.rung = Rung::Done;
    }

    pub(super) fn step(&mut self, now: Duration) -> Step {
        if let Rung::Eof { until } = self.rung
            && now >= until
        {
            let grace = if self.orphaned { self.graces.orphan_term } else { self.graces.term };
            self.rung = Rung::Term { until: now + grace, sent: false };
        }
        if let Rung::Term { until, sent: true } = self.rung
            && now >= until
        {
            self.rung = self.kill(now);
        }
        match &mut self.rung {
            Rung::Serving => Step::Wait { until: None },
            Rung::Term { sent, .. } if !*sent => {
                *sent = true;
                Step::Term
            }
            Rung::Eof { until } | Rung::Term { until, .. } => Step::Wait { until: Some(*until) },
            Rung::Kill { until, .. } if now >= *until => {
                self.rung = Rung::Done;
                Step::Done
            }
            Rung::Kill { next, round, .. } if now >= *next => {
                *next = now + *round;
                *round = (*round * 2).min(ROUND_MAX);
                Step::Kill
            }
            Rung::Kill { until, next, .. } => Step::Wait { until: Some((*next).min(*until)) },
            Rung::Done => Step::Done,
        }
    }

    fn kill(&self, now: Duration) -> Rung {
        Rung::Kill { until: now + self.graces.kill, next: now, round: ROUND_FIRST }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn ladder() -> Ladder {
        Ladder::new(Graces {
            eof: ms(100),
            term: ms(200),
            left: ms(50),
            orphan_eof: ms(10),
            orphan_term: ms(20),
            kill: ms(30),
        })
    }

    fn wait(count: u64) -> Step {
        Step::Wait { until: Some(ms(count)) }
    }

    #[test]
    fn a_polite_stop_climbs_rung_by_rung() {
        let mut ladder = ladder();
        assert_eq!(ladder.step(ms(1)), Step::Wait { until: None });
        ladder.on_polite(ms(1000));
        assert_eq!(ladder.step(ms(1000)), wait(1100));
        assert_eq!(ladder.step(ms(1100)), Step::Term);
        assert_eq!(ladder.step(ms(1100)), wait(1300));
        assert_eq!(ladder.step(ms(1300)), Step::Kill);
        assert_eq!(ladder.step(ms(1300)), wait(1302));
        assert_eq!(ladder.step(ms(1302)), Step::Kill);
        assert_eq!(ladder.step(ms(1330)), Step::Done);
        assert_eq!(ladder.step(ms(1330)), Step::Done);
    }

    #[test]
    fn a_second_polite_stop_gives_no_second_grace() {
        let mut ladder = ladder();
        ladder.on_polite(ms(0));
        ladder.on_polite(ms(90));
        assert_eq!(ladder.step(ms(100)), Step::Term);
    }

    #[test]
    fn a_stop_that_should_be_soon_does_not_wait_for_the_end_of_stdin() {
        let mut ladder = ladder();
        ladder.on_polite(ms(0));
        ladder.on_soon(ms(10));
        assert_eq!(ladder.step(ms(10)), Step::Term);
        assert_eq!(ladder.step(ms(10)), wait(210));
        ladder.on_soon(ms(100));
        assert_eq!(ladder.step(ms(210)), Step::Kill);
    }

    #[test]
    fn a_lost_daemon_shortens_every_grace_that_is_running() {
        let mut serving = ladder();
        serving.on_orphaned(ms(0));
        assert_eq!(serving.step(ms(0)), wait(10));
        assert_eq!(serving.step(ms(10)), Step::Term);
        assert_eq!(serving.step(ms(10)), wait(30));
        assert_eq!(serving.step(ms(30)), Step::Kill);

        let mut asked = ladder();
        asked.on_polite(ms(0));
        asked.on_orphaned(ms(5));
        assert_eq!(asked.step(ms(5)), wait(15));

        let mut told = ladder();
        told.on_polite(ms(0));
        assert_eq!(told.step(ms(100)), Step::Term);
        told.on_orphaned(ms(110));
        assert_eq!(told.step(ms(110)), wait(130));
    }

    #[test]
    fn what_an_agent_leaves_behind_is_asked_at_once_and_killed_soon() {
        let mut ladder = ladder();
        ladder.on_exited(ms(0));
        assert_eq!(ladder.step(ms(0)), Step::Term);
        assert_eq!(ladder.step(ms(0)), wait(50));
        assert_eq!(ladder.step(ms(50)), Step::Kill);
    }

    #[test]
    fn now_means_now_and_an_empty_tree_is_the_end() {
        let mut ladder = ladder();
        ladder.on_polite(ms(0));
        ladder.on_now(ms(1));
        assert_eq!(ladder.step(ms(1)), Step::Kill);
        ladder.on_now(ms(2));
        assert_eq!(ladder.step(ms(2)), wait(3));
        ladder.on_exited(ms(2));
        ladder.on_empty();
        assert_eq!(ladder.step(ms(2)), Step::Done);
    }
}

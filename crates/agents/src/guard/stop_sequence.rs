//! Decides how a process tree is ended: when to wait, when to send TERM and when KILL. It is a pure
//! value; time is an argument.
//!
//! `Serving` → (stdin closed) `Eof` → `Term` → `Kill` → `Done`. Each phase has a grace period, a
//! more urgent stop shortens the rest of it, and an empty tree ends the sequence at once.

use crate::stop::GracePeriods;
use std::time::Duration;

// KILL is repeated, because a process may fork while the tree is killed.
const ROUND_FIRST: Duration = Duration::from_millis(2);
const ROUND_MAX: Duration = Duration::from_millis(100);

/// The next action. Time is counted from the guard's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopAction {
    Wait { until: Option<Duration> },
    Term,
    Kill,
    Done,
}

#[derive(Debug)]
pub(super) struct StopSequence {
    graces: GracePeriods,
    phase: ShutdownPhase,
    is_orphaned: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShutdownPhase {
    Serving,
    Eof { until: Duration },
    Term { until: Duration, sent: bool },
    Kill { until: Duration, next: Duration, round: Duration },
    Done,
}

impl StopSequence {
    pub(super) fn new(graces: GracePeriods) -> StopSequence {
        StopSequence { graces, phase: ShutdownPhase::Serving, is_orphaned: false }
    }

    pub(super) fn is_serving(&self) -> bool {
        self.phase == ShutdownPhase::Serving
    }

    /// The daemon closes the agent's stdin and requests a graceful stop.
    pub(super) fn on_polite(&mut self, now: Duration) {
        if self.is_serving() {
            self.phase = ShutdownPhase::Eof { until: now + self.graces.eof };
        }
    }

    /// The same without the grace period after the end of stdin.
    pub(super) fn on_soon(&mut self, now: Duration) {
        if matches!(self.phase, ShutdownPhase::Serving | ShutdownPhase::Eof { .. }) {
            self.phase = ShutdownPhase::Term { until: now + self.graces.term, sent: false };
        }
    }

    pub(super) fn on_now(&mut self, now: Duration) {
        if !matches!(self.phase, ShutdownPhase::Kill { .. } | ShutdownPhase::Done) {
            self.phase = self.kill(now);
        }
    }

    /// The daemon has exited: the grace periods become shorter, but the agent may still save its
    /// work.
    pub(super) fn on_orphaned(&mut self, now: Duration) {
        self.is_orphaned = true;
        match &mut self.phase {
            ShutdownPhase::Serving => {
                self.phase = ShutdownPhase::Eof { until: now + self.graces.orphan_eof }
            }
            ShutdownPhase::Eof { until } => *until = (*until).min(now + self.graces.orphan_eof),
            ShutdownPhase::Term { until, .. } => {
                *until = (*until).min(now + self.graces.orphan_term);
            }
            ShutdownPhase::Kill { .. } | ShutdownPhase::Done => {}
        }
    }

    /// The agent has exited. Processes that it left behind are ended.
    pub(super) fn on_exited(&mut self, now: Duration) {
        let left = now + self.graces.left;
        match &mut self.phase {
            ShutdownPhase::Serving | ShutdownPhase::Eof { .. } => {
                self.phase = ShutdownPhase::Term { until: left, sent: false }
            }
            ShutdownPhase::Term { until, .. } => *until = (*until).min(left),
            ShutdownPhase::Kill { .. } | ShutdownPhase::Done => {}
        }
    }

    pub(super) fn on_empty(&mut self) {
        self.phase = ShutdownPhase::Done;
    }

    pub(super) fn next_action(&mut self, now: Duration) -> StopAction {
        if let ShutdownPhase::Eof { until } = self.phase
            && now >= until
        {
            let grace = if self.is_orphaned { self.graces.orphan_term } else { self.graces.term };
            self.phase = ShutdownPhase::Term { until: now + grace, sent: false };
        }
        if let ShutdownPhase::Term { until, sent: true } = self.phase
            && now >= until
        {
            self.phase = self.kill(now);
        }
        match &mut self.phase {
            ShutdownPhase::Serving => StopAction::Wait { until: None },
            ShutdownPhase::Term { sent, .. } if !*sent => {
                *sent = true;
                StopAction::Term
            }
            ShutdownPhase::Eof { until } | ShutdownPhase::Term { until, .. } => {
                StopAction::Wait { until: Some(*until) }
            }
            ShutdownPhase::Kill { until, .. } if now >= *until => {
                self.phase = ShutdownPhase::Done;
                StopAction::Done
            }
            ShutdownPhase::Kill { next, round, .. } if now >= *next => {
                *next = now + *round;
                *round = (*round * 2).min(ROUND_MAX);
                StopAction::Kill
            }
            ShutdownPhase::Kill { until, next, .. } => {
                StopAction::Wait { until: Some((*next).min(*until)) }
            }
            ShutdownPhase::Done => StopAction::Done,
        }
    }

    fn kill(&self, now: Duration) -> ShutdownPhase {
        ShutdownPhase::Kill { until: now + self.graces.kill, next: now, round: ROUND_FIRST }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn sequence() -> StopSequence {
        StopSequence::new(GracePeriods {
            eof: ms(100),
            term: ms(200),
            left: ms(50),
            orphan_eof: ms(10),
            orphan_term: ms(20),
            kill: ms(30),
        })
    }

    fn wait(count: u64) -> StopAction {
        StopAction::Wait { until: Some(ms(count)) }
    }

    #[test]
    fn polite_stop_goes_through_all_phases() {
        let mut sequence = sequence();
        assert_eq!(sequence.next_action(ms(1)), StopAction::Wait { until: None });
        sequence.on_polite(ms(1000));
        assert_eq!(sequence.next_action(ms(1000)), wait(1100));
        assert_eq!(sequence.next_action(ms(1100)), StopAction::Term);
        assert_eq!(sequence.next_action(ms(1100)), wait(1300));
        assert_eq!(sequence.next_action(ms(1300)), StopAction::Kill);
        assert_eq!(sequence.next_action(ms(1300)), wait(1302));
        assert_eq!(sequence.next_action(ms(1302)), StopAction::Kill);
        assert_eq!(sequence.next_action(ms(1330)), StopAction::Done);
        assert_eq!(sequence.next_action(ms(1330)), StopAction::Done);
    }

    #[test]
    fn second_polite_stop_does_not_extend_the_grace_period() {
        let mut sequence = sequence();
        sequence.on_polite(ms(0));
        sequence.on_polite(ms(90));
        assert_eq!(sequence.next_action(ms(100)), StopAction::Term);
    }

    #[test]
    fn soon_stop_skips_the_grace_period_after_stdin() {
        let mut sequence = sequence();
        sequence.on_polite(ms(0));
        sequence.on_soon(ms(10));
        assert_eq!(sequence.next_action(ms(10)), StopAction::Term);
        assert_eq!(sequence.next_action(ms(10)), wait(210));
        sequence.on_soon(ms(100));
        assert_eq!(sequence.next_action(ms(210)), StopAction::Kill);
    }

    #[test]
    fn exit_of_the_daemon_shortens_running_grace_periods() {
        let mut serving = sequence();
        serving.on_orphaned(ms(0));
        assert_eq!(serving.next_action(ms(0)), wait(10));
        assert_eq!(serving.next_action(ms(10)), StopAction::Term);
        assert_eq!(serving.next_action(ms(10)), wait(30));
        assert_eq!(serving.next_action(ms(30)), StopAction::Kill);

        let mut in_eof_phase = sequence();
        in_eof_phase.on_polite(ms(0));
        in_eof_phase.on_orphaned(ms(5));
        assert_eq!(in_eof_phase.next_action(ms(5)), wait(15));

        let mut in_term_phase = sequence();
        in_term_phase.on_polite(ms(0));
        assert_eq!(in_term_phase.next_action(ms(100)), StopAction::Term);
        in_term_phase.on_orphaned(ms(110));
        assert_eq!(in_term_phase.next_action(ms(110)), wait(130));
    }

    #[test]
    fn processes_left_behind_get_term_at_once_and_kill_soon() {
        let mut sequence = sequence();
        sequence.on_exited(ms(0));
        assert_eq!(sequence.next_action(ms(0)), StopAction::Term);
        assert_eq!(sequence.next_action(ms(0)), wait(50));
        assert_eq!(sequence.next_action(ms(50)), StopAction::Kill);
    }

    #[test]
    fn now_stop_kills_at_once_and_an_empty_tree_ends_the_sequence() {
        let mut sequence = sequence();
        sequence.on_polite(ms(0));
        sequence.on_now(ms(1));
        assert_eq!(sequence.next_action(ms(1)), StopAction::Kill);
        sequence.on_now(ms(2));
        assert_eq!(sequence.next_action(ms(2)), wait(3));
        sequence.on_exited(ms(2));
        sequence.on_empty();
        assert_eq!(sequence.next_action(ms(2)), StopAction::Done);
    }
}

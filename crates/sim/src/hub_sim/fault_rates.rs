//! The rates of faults in a world; the seed picks them.

use jackfield_test_support::rng::Rng;

/// Rates in percent unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FaultRates {
    /// Of ten thousand steps; also `stop`, `disconnect` and `exit`.
    pub(super) crash: u64,
    pub(super) stop: u64,
    pub(super) disconnect: u64,
    pub(super) exit: u64,
    pub(super) append_fails: u64,
    /// Of ten thousand appends.
    pub(super) fenced: u64,
    pub(super) read_fails: u64,
    pub(super) stale: u64,
    /// Of a hundred disk steps, the ones that are skipped.
    pub(super) slow_disk: u64,
    pub(super) hung: u64,
    pub(super) slow_reader: u64,
    pub(super) large_update: u64,
    pub(super) refuses: u64,
    pub(super) ignores_cancel: u64,
    /// Agents that have lost a session they are asked to restore, and of these, the ones that claim to have it.
    pub(super) session_lost: u64,
    pub(super) false_restore: u64,
    /// Failing starts of the preferred agent.
    pub(super) start_fails: u64,
    /// Of ten thousand steps: a session is released or adopted.
    pub(super) moves: u64,
}

impl FaultRates {
    pub(super) fn new(rng: &mut Rng) -> FaultRates {
        FaultRates {
            crash: rng.pick(&[0, 0, 0, 10, 30, 80]),
            stop: rng.pick(&[0, 0, 0, 5, 15]),
            disconnect: rng.pick(&[0, 20, 60, 200]),
            exit: rng.pick(&[0, 20, 60, 200]),
            append_fails: rng.pick(&[0, 0, 5, 30]),
            fenced: rng.pick(&[0, 0, 0, 100]),
            read_fails: rng.pick(&[0, 0, 10]),
            stale: rng.pick(&[0, 30, 60]),
            slow_disk: rng.pick(&[0, 0, 30, 60, 90]),
            hung: rng.pick(&[0, 0, 10, 30]),
            slow_reader: rng.pick(&[0, 20, 60]),
            large_update: rng.pick(&[0, 5, 30, 70]),
            refuses: rng.pick(&[0, 0, 0, 10, 30]),
            ignores_cancel: rng.pick(&[0, 30, 100]),
            session_lost: rng.pick(&[0, 0, 20, 50]),
            false_restore: rng.pick(&[0, 30, 80]),
            start_fails: rng.pick(&[0, 0, 0, 0, 90]),
            moves: rng.pick(&[0, 0, 50, 150]),
        }
    }

    /// No faults.
    pub(super) fn none() -> FaultRates {
        FaultRates {
            crash: 0,
            stop: 0,
            disconnect: 0,
            exit: 0,
            append_fails: 0,
            fenced: 0,
            read_fails: 0,
            stale: 0,
            slow_disk: 0,
            hung: 0,
            slow_reader: 0,
            large_update: 0,
            refuses: 0,
            ignores_cancel: 0,
            session_lost: 0,
            false_restore: 0,
            start_fails: 0,
            moves: 0,
        }
    }
}

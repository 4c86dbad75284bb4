//! What kind of world a seed makes: calm seas in one, storms of one sort or another in the next.

use jackfield_test_support::rng::Rng;

/// Chances, in percent unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Temper {
    /// Of ten thousand steps.
    pub(super) crash: u64,
    pub(super) stop: u64,
    pub(super) leave: u64,
    pub(super) die: u64,
    pub(super) append_fails: u64,
    /// Of ten thousand appends.
    pub(super) fenced: u64,
    pub(super) read_fails: u64,
    pub(super) stale: u64,
    /// How many of a hundred disk steps are skipped.
    pub(super) slow_disk: u64,
    pub(super) deaf: u64,
    pub(super) lazy: u64,
    pub(super) big: u64,
    pub(super) refuses: u64,
    pub(super) ignores_cancel: u64,
    /// Agents that have lost a session when they are asked for it, and of these, liars.
    pub(super) loses: u64,
    pub(super) lies: u64,
    /// Starts that fail, of the agent that most clients want.
    pub(super) broken: u64,
    /// Of ten thousand steps: a session leaves the hub, or comes to it.
    pub(super) moves: u64,
}

impl Temper {
    pub(super) fn new(rng: &mut Rng) -> Temper {
        Temper {
            crash: rng.pick(&[0, 0, 0, 10, 30, 80]),
            stop: rng.pick(&[0, 0, 0, 5, 15]),
            leave: rng.pick(&[0, 20, 60, 200]),
            die: rng.pick(&[0, 20, 60, 200]),
            append_fails: rng.pick(&[0, 0, 5, 30]),
            fenced: rng.pick(&[0, 0, 0, 100]),
            read_fails: rng.pick(&[0, 0, 10]),
            stale: rng.pick(&[0, 30, 60]),
            slow_disk: rng.pick(&[0, 0, 30, 60, 90]),
            deaf: rng.pick(&[0, 0, 10, 30]),
            lazy: rng.pick(&[0, 20, 60]),
            big: rng.pick(&[0, 5, 30, 70]),
            refuses: rng.pick(&[0, 0, 0, 10, 30]),
            ignores_cancel: rng.pick(&[0, 30, 100]),
            loses: rng.pick(&[0, 0, 20, 50]),
            lies: rng.pick(&[0, 30, 80]),
            broken: rng.pick(&[0, 0, 0, 0, 90]),
            moves: rng.pick(&[0, 0, 50, 150]),
        }
    }

    /// Trouble stops.
    pub(super) fn calm() -> Temper {
        Temper {
            crash: 0,
            stop: 0,
            leave: 0,
            die: 0,
            append_fails: 0,
            fenced: 0,
            read_fails: 0,
            stale: 0,
            slow_disk: 0,
            deaf: 0,
            lazy: 0,
            big: 0,
            refuses: 0,
            ignores_cancel: 0,
            loses: 0,
            lies: 0,
            broken: 0,
            moves: 0,
        }
    }
}

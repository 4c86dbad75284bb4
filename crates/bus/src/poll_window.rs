//! How long the loop of the bus polls for input before it sleeps.
//!
//! Sleeping and waking up costs more than a short poll, so polling pays if workers and clients answer each other within
//! microseconds, and wastes the processor otherwise. The window adapts to the last waits.

use std::time::Duration;

/// The first window after a short wait.
const FIRST: Duration = Duration::from_micros(10);

/// The longest window: about the cost of a sleep and a wake-up.
const LONGEST: Duration = Duration::from_micros(50);

/// The maximum of `penalty`.
const PENALTY_MAX: u32 = 64;

/// The window starts at zero, doubles while polling pays or would have paid, and is zero again after the first poll in
/// vain. After repeated polls in vain more short waits must pass before it polls again: on a busy machine, polling only
/// takes time from the processes that it waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PollWindow {
    window: Duration,
    /// The number of short waits that the next poll in vain costs.
    penalty: u32,
    /// Short waits that must pass before the loop polls again.
    skipped_waits: u32,
}

impl PollWindow {
    /// Whether to poll once more after polling in vain for this time.
    pub(crate) fn is_open(&self, polled: Duration) -> bool {
        polled < self.window
    }

    /// Input came after this time, by polling or after a sleep.
    pub(crate) fn record_wait(&mut self, waited: Duration) {
        if LONGEST < waited {
            if !self.window.is_zero() {
                self.penalty = (self.penalty * 2 + 1).min(PENALTY_MAX);
            }
            self.window = Duration::ZERO;
            self.skipped_waits = self.penalty;
        } else if self.skipped_waits != 0 {
            self.skipped_waits -= 1;
        } else if self.window <= waited {
            self.window = (self.window * 2).clamp(FIRST, LONGEST);
        } else {
            self.penalty = self.penalty.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long it polls for inputs that come after these times, in polls of a microsecond.
    fn polled(window: &mut PollWindow, waits: impl IntoIterator<Item = Duration>) -> Duration {
        let mut sum = Duration::ZERO;
        for wait in waits {
            let mut polled = Duration::ZERO;
            while polled < wait && window.is_open(polled) {
                polled += Duration::from_micros(1);
            }
            sum += polled;
            window.record_wait(wait);
        }
        sum
    }

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn slow_peer_is_not_polled_for() {
        let mut window = PollWindow::default();
        assert_eq!(polled(&mut window, [Duration::from_millis(50); 1_000]), Duration::ZERO);
    }

    #[test]
    fn fast_peer_is_polled_for() {
        let mut window = PollWindow::default();
        polled(&mut window, [micros(30); 10]);
        assert_eq!(polled(&mut window, [micros(30); 100]), micros(3_000));
        assert!(window.is_open(micros(30)), "the window is longer than the wait");
    }

    #[test]
    fn input_at_the_end_of_the_longest_window_is_polled_for() {
        let mut window = PollWindow::default();
        polled(&mut window, [LONGEST; 10]);
        assert_eq!(polled(&mut window, [LONGEST]), LONGEST);
        assert!(!window.is_open(LONGEST), "the window does not grow further");
    }

    #[test]
    fn peer_that_becomes_slow_is_polled_for_in_vain_once() {
        let mut window = PollWindow::default();
        polled(&mut window, [micros(40); 100]);
        let slow = polled(&mut window, [Duration::from_millis(1); 1_000]);
        assert_eq!(slow, LONGEST);
    }

    #[test]
    fn peer_that_is_fast_every_other_time_is_polled_for_once() {
        let mut window = PollWindow::default();
        let waits = (0..1_000).map(|it| if it % 2 == 0 { micros(5) } else { micros(10_000) });
        assert_eq!(polled(&mut window, waits), FIRST, "one poll in five seconds");
    }

    #[test]
    fn window_reopens_soon_after_one_poll_in_vain() {
        let mut window = PollWindow::default();
        polled(&mut window, [micros(30); 100]);
        polled(&mut window, [micros(10_000)]);
        polled(&mut window, [micros(30); 5]);
        assert_eq!(polled(&mut window, [micros(30); 10]), micros(300));
    }

    #[test]
    fn busy_machine_stops_the_polling() {
        let mut window = PollWindow::default();
        // Every fourth answer comes late.
        let waits = |count| (0..count).map(|it| micros(if it % 4 == 3 { 3_000 } else { 20 }));
        polled(&mut window, waits(1_000));
        assert_eq!(polled(&mut window, waits(1_000)), Duration::ZERO);
        polled(&mut window, [micros(20); 100]);
        assert!(window.is_open(micros(20)), "polls again when the machine is idle");
    }
}

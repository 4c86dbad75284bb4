//! How long a loop that has nothing to do looks for news before it sleeps.
//!
//! To sleep and to be woken costs more than a short look, so a loop whose news come at once does
//! better to look again. One whose news take long would only burn the processor. Which of the two it
//! is shows afterwards, and lasts: what came soon once comes soon again.

use std::time::Duration;

/// The first look after a wait that was short.
const FIRST: Duration = Duration::from_micros(10);

/// Never longer: about what a sleep and a wake-up cost. Whoever answers on another processor of the
/// same machine answers sooner, or takes far longer.
const LONGEST: Duration = Duration::from_micros(50);

/// So many short waits in a row it lets pass at most before it looks again.
const DOUBT_MAX: u32 = 64;

/// Starts without any, grows while looking pays or would have paid, and is gone with the first look
/// that was in vain. It takes the longer to come back the more often that happens: on a machine that
/// has more to do than it has processors, looking only keeps others from answering.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Patience {
    window: Duration,
    /// How many short waits the next look in vain will cost.
    doubt: u32,
    /// Short waits that must pass before it looks again.
    owed: u32,
}

impl Patience {
    /// Whether to look once more after so much looking in vain.
    pub fn lasts(&self, looked: Duration) -> bool {
        looked < self.window
    }

    /// News came after so long, looked for or slept for.
    pub fn learn(&mut self, waited: Duration) {
        if LONGEST < waited {
            if !self.window.is_zero() {
                self.doubt = (self.doubt * 2 + 1).min(DOUBT_MAX);
            }
            self.window = Duration::ZERO;
            self.owed = self.doubt;
        } else if self.owed != 0 {
            self.owed -= 1;
        } else if self.window <= waited {
            self.window = (self.window * 2).clamp(FIRST, LONGEST);
        } else {
            self.doubt = self.doubt.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it costs to wait for news that come after these times, in looks of a microsecond.
    fn looked(patience: &mut Patience, waits: impl IntoIterator<Item = Duration>) -> Duration {
        let mut sum = Duration::ZERO;
        for wait in waits {
            let mut looked = Duration::ZERO;
            while looked < wait && patience.lasts(looked) {
                looked += Duration::from_micros(1);
            }
            sum += looked;
            patience.learn(wait);
        }
        sum
    }

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[test]
    fn a_slow_peer_costs_nothing() {
        let mut patience = Patience::default();
        assert_eq!(looked(&mut patience, [Duration::from_millis(50); 1_000]), Duration::ZERO);
    }

    #[test]
    fn a_fast_peer_is_waited_for_awake() {
        let mut patience = Patience::default();
        looked(&mut patience, [micros(30); 10]);
        assert_eq!(looked(&mut patience, [micros(30); 100]), micros(3_000));
        assert!(patience.lasts(micros(30)), "and has a little to spare");
    }

    #[test]
    fn news_that_take_as_long_as_it_may_look_are_still_looked_for() {
        let mut patience = Patience::default();
        looked(&mut patience, [LONGEST; 10]);
        assert_eq!(looked(&mut patience, [LONGEST]), LONGEST);
        assert!(!patience.lasts(LONGEST), "but never longer");
    }

    #[test]
    fn a_fast_peer_that_becomes_slow_is_looked_for_in_vain_only_once() {
        let mut patience = Patience::default();
        looked(&mut patience, [micros(40); 100]);
        let slow = looked(&mut patience, [Duration::from_millis(1); 1_000]);
        assert_eq!(slow, LONGEST);
    }

    #[test]
    fn a_peer_that_is_fast_every_other_time_is_soon_not_looked_for_any_more() {
        let mut patience = Patience::default();
        let waits = (0..1_000).map(|it| if it % 2 == 0 { micros(5) } else { micros(10_000) });
        assert_eq!(looked(&mut patience, waits), FIRST, "once, and five seconds have passed");
    }

    #[test]
    fn one_look_in_vain_among_many_that_paid_is_soon_forgotten() {
        let mut patience = Patience::default();
        looked(&mut patience, [micros(30); 100]);
        looked(&mut patience, [micros(10_000)]);
        looked(&mut patience, [micros(30); 5]);
        assert_eq!(looked(&mut patience, [micros(30); 10]), micros(300));
    }

    #[test]
    fn on_a_busy_machine_it_looks_ever_less() {
        let mut patience = Patience::default();
        // Every fourth answer comes late.
        let waits = |count| (0..count).map(|it| micros(if it % 4 == 3 { 3_000 } else { 20 }));
        looked(&mut patience, waits(1_000));
        assert_eq!(looked(&mut patience, waits(1_000)), Duration::ZERO);
        looked(&mut patience, [micros(20); 100]);
        assert!(patience.lasts(micros(20)), "and again when it has become quiet");
    }
}

//! How long a loop that has nothing to do looks for news before it sleeps.
//!
//! To sleep and to be woken costs more than a short look, so a loop whose news come at once does
//! better to look again. One whose news take long would only burn the processor. Which of the two it
//! is shows afterwards, and lasts: what came soon once comes soon again.

use std::time::Duration;

/// The first look after one that would have paid.
const FIRST: Duration = Duration::from_micros(10);

/// Never longer: about what a sleep and a wake-up cost where they cost the most.
const LONGEST: Duration = Duration::from_micros(100);

/// Starts without any, grows while looking pays or would have paid, and is gone with the first
/// news that took longer than it is ever worth looking for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Patience {
    window: Duration,
}

impl Patience {
    /// Whether to look once more after so much looking in vain.
    pub fn lasts(&self, looked: Duration) -> bool {
        looked < self.window
    }

    /// News came after so long, looked for or slept for.
    pub fn learn(&mut self, waited: Duration) {
        if LONGEST < waited {
            self.window = Duration::ZERO;
        } else if self.window <= waited {
            self.window = (self.window * 2).clamp(FIRST, LONGEST);
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
        looked(&mut patience, [micros(80); 100]);
        let slow = looked(&mut patience, [Duration::from_millis(1); 1_000]);
        assert_eq!(slow, LONGEST);
    }

    #[test]
    fn a_peer_that_is_fast_every_other_time_costs_little() {
        let mut patience = Patience::default();
        let waits = (0..1_000).map(|it| if it % 2 == 0 { micros(5) } else { micros(10_000) });
        let cost = looked(&mut patience, waits);
        assert_eq!(cost, FIRST * 500, "a thousandth of the time that passed");
    }
}

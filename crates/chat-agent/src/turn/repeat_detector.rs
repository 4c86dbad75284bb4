//! Detects a model that makes the same calls with the same results again and again.

/// After this many equal rounds, the model gets a hint.
const HINT_AFTER: usize = 3;
/// After this many equal rounds, the turn ends.
const STOP_AFTER: usize = 5;

/// Counts consecutive equal rounds. A round is all calls of one answer and their results.
#[derive(Debug, Default)]
pub(super) struct RepeatDetector {
    last_hash: Option<u64>,
    count: usize,
}

/// The reaction to a round.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RepeatAction {
    Continue,
    /// Tell the model that it repeats itself.
    Hint,
    /// End the turn.
    Stop,
}

impl RepeatDetector {
    /// Records a round: the name, the arguments and the result of each call.
    pub(super) fn record_round<'a>(
        &mut self,
        round: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
    ) -> RepeatAction {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        round.for_each(|it| it.hash(&mut hasher));
        let hash = hasher.finish();
        self.count = if self.last_hash == Some(hash) { self.count + 1 } else { 1 };
        self.last_hash = Some(hash);
        match self.count {
            STOP_AFTER.. => RepeatAction::Stop,
            HINT_AFTER.. => RepeatAction::Hint,
            _ => RepeatAction::Continue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_round_gives_a_hint_and_then_a_stop() {
        use RepeatAction::{Continue, Hint, Stop};
        let mut repeats = RepeatDetector::default();
        let mut record = |result| repeats.record_round([("read", "{}", result)].into_iter());
        let actions: Vec<RepeatAction> = (0..5).map(|_| record("same")).collect();
        assert_eq!(actions, [Continue, Continue, Hint, Hint, Stop]);
        assert_eq!(record("new"), Continue);
        assert_eq!(record("same"), Continue);
    }
}

//! Whether a model goes round in circles.

/// The same call with the same result so often in a row is told to the model…
const TOLD_AFTER: usize = 3;
/// …and so often ends the turn.
const STOPPED_AFTER: usize = 5;

/// The last round of calls and results, and how often it came.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    last: Option<u64>,
    count: usize,
}

/// What to do about it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Circle {
    None,
    /// Say so to the model.
    Told,
    /// Stop.
    Stopped,
}

impl Repeats {
    /// One round: what was called with what, and what came of it.
    pub(super) fn on_round<'a>(
        &mut self,
        round: impl Iterator<Item = (&'a str, &'a str, &'a str)>,
    ) -> Circle {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        round.for_each(|it| it.hash(&mut hasher));
        let hash = hasher.finish();
        self.count = if self.last == Some(hash) { self.count + 1 } else { 1 };
        self.last = Some(hash);
        match self.count {
            STOPPED_AFTER.. => Circle::Stopped,
            TOLD_AFTER.. => Circle::Told,
            _ => Circle::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_call_with_the_same_result_is_told_and_then_stopped() {
        use Circle::{None, Stopped, Told};
        let mut repeats = Repeats::default();
        let mut round = |result| repeats.on_round([("read", "{}", result)].into_iter());
        let circles: Vec<Circle> = (0..5).map(|_| round("same")).collect();
        assert_eq!(circles, [None, None, Told, Told, Stopped]);
        assert_eq!(round("new"), None);
        assert_eq!(round("same"), None);
    }
}

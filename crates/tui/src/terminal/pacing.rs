//! When the next frame is drawn: soon after a key, and at most thirty times a second otherwise.

use std::time::Duration;
use tokio::time::Instant;

/// After an update of the hub.
const UPDATE_INTERVAL: Duration = Duration::from_millis(33);
/// After a key. A fast typist or a paste without brackets does not need each frame.
const KEY_INTERVAL: Duration = Duration::from_millis(8);

/// Why a frame is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FrameNeed {
    Update,
    Key,
}

/// Collects reasons for a frame.
#[derive(Debug)]
pub(super) struct FramePacing {
    last: Instant,
    need: Option<FrameNeed>,
}

impl FramePacing {
    /// The first frame is due at once.
    pub(super) fn new(now: Instant) -> FramePacing {
        let last = now.checked_sub(UPDATE_INTERVAL).unwrap_or(now);
        FramePacing { last, need: Some(FrameNeed::Key) }
    }

    pub(super) fn request(&mut self, need: FrameNeed) {
        self.need = self.need.max(Some(need));
    }

    /// When the next frame is due, if one is needed.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.need.map(|need| match need {
            FrameNeed::Key => self.last + KEY_INTERVAL,
            FrameNeed::Update => self.last + UPDATE_INTERVAL,
        })
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due_at().is_some_and(|it| it <= now)
    }

    pub(super) fn on_drawn(&mut self, now: Instant) {
        (self.last, self.need) = (now, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_share_a_frame_and_a_key_does_not_wait_for_it() {
        let start = Instant::now();
        let mut pacing = FramePacing::new(start);
        assert!(pacing.is_due(start));
        pacing.on_drawn(start);
        assert_eq!(pacing.due_at(), None);
        pacing.request(FrameNeed::Update);
        assert_eq!(pacing.due_at(), Some(start + UPDATE_INTERVAL));
        pacing.request(FrameNeed::Key);
        pacing.request(FrameNeed::Update);
        assert!(!pacing.is_due(start) && pacing.is_due(start + KEY_INTERVAL));
    }
}

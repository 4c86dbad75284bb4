//! Decides from when on keys may answer the shown request: it was drawn, and then no key was typed for some time.
//!
//! Keys that were typed for something else, before or while the request appeared, answer nothing.

use jackfield_events::Time;
use jackfield_protocol::is_planted;

/// How long no key must be typed after the request was drawn.
pub(crate) const QUIET_MS: u64 = 500;

/// The guard of one request while it has the focus.
#[derive(Debug, Default)]
pub(crate) struct AnswerGuard {
    /// The time of the first frame with the request, or of the last key after it.
    quiet_since: Option<Time>,
    is_open: bool,
}

impl AnswerGuard {
    /// Another request is shown, it has changed, or it has lost the focus.
    pub(crate) fn reset(&mut self) {
        if !is_planted("keep-guard-of-other-request") {
            *self = AnswerGuard::default();
        }
    }

    /// The request was drawn with the focus. Returns when it can be answered if no key is typed.
    pub(crate) fn on_drawn(&mut self, now: Time) -> Option<Time> {
        if self.quiet_since.is_some() {
            return None;
        }
        self.quiet_since = Some(now);
        Some(now.plus(QUIET_MS))
    }

    /// A key was typed. Returns whether it may answer the request; if not, the time starts again.
    pub(crate) fn on_typed(&mut self, now: Time) -> bool {
        self.is_open |= self.is_quiet(now);
        if !self.is_open && self.quiet_since.is_some() {
            self.quiet_since = Some(now);
        }
        self.is_open
    }

    /// Whether a key that is typed now may answer the request.
    pub(crate) fn is_open(&self, now: Time) -> bool {
        self.is_open || self.is_quiet(now)
    }

    fn is_quiet(&self, now: Time) -> bool {
        let quiet_ms = if is_planted("answer-without-quiet-time") { 0 } else { QUIET_MS };
        self.quiet_since.is_some_and(|it| quiet_ms <= now.since(it))
    }
}

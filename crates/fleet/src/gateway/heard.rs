//! How far one client has heard one session, so that it hears on from there on another host connection.
//!
//! Hubs put the seq of the event into what they say of it. One event may be several frames, so what
//! counts is the last seq and how many frames of it were passed on.

use jackfield_protocol::acp::Method;
use jackfield_protocol::{Frame, is_planted};
use serde::Deserialize;

/// Behind every event there will be: whoever asks for what comes after it hears what is new.
const FROM_NOW_ON: u64 = (1 << 53) - 1;

#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The last seq that was heard; nothing is known of a session that was only spoken to.
    seq: Option<u64>,
    /// Frames of it that were passed on.
    passed: usize,
    /// There are no more of it.
    whole: bool,
    /// While a new host connection says again what the old one has said: how many frames of `seq` to leave out.
    skip: Option<usize>,
    /// The client asked to hear it again from a place before this one, and that has not begun.
    rewinding: Option<u64>,
}

impl Heard {
    /// Everything up to this seq, and nothing of what follows.
    pub(super) fn upto(seq: u64) -> Heard {
        Heard { seq: Some(seq), whole: true, ..Heard::default() }
    }

    /// A frame of this seq came. Says whether the client has yet to hear it.
    pub(super) fn hears(&mut self, seq: u64) -> bool {
        if let (Some(known), Some(skip)) = (self.seq, &mut self.skip) {
            if seq < known || (seq == known && self.whole) {
                return false;
            }
            if seq == known && 0 < *skip {
                *skip -= 1;
                return false;
            }
            if known < seq {
                self.skip = None;
            }
        }
        self.rewinding = self.rewinding.filter(|before| *before <= seq);
        if self.seq != Some(seq) {
            (self.seq, self.passed, self.whole) = (Some(seq), 0, false);
        }
        self.passed += 1;
        true
    }

    /// An answer to what makes a session heard came, and says how much was told before it.
    pub(super) fn told_upto(&mut self, head: Option<u64>) {
        if let Some(head) = head.filter(|head| self.seq.is_none_or(|known| known <= *head)) {
            *self = Heard::upto(head);
        }
        self.rewinding = None;
    }

    /// The client asks to hear from an earlier place than it is at.
    pub(super) fn rewind(&mut self) {
        self.skip = None;
        self.rewinding = self.seq.filter(|it| 0 < *it);
    }

    /// The host connection is lost. If the client was to hear it from an earlier place anyway, that is sent again
    /// and is all it needs: nothing of it is a repetition.
    pub(super) fn lose(&mut self) {
        if self.rewinding.is_some() {
            *self = Heard { rewinding: Some(u64::MAX), ..Heard::upto(0) };
        }
    }

    /// It is heard on by another host connection: after which seq. `None` if something else sees to it.
    pub(super) fn resume(&mut self) -> Option<u64> {
        if self.rewinding.is_some() {
            return None;
        }
        self.skip = Some(if is_planted("gateway-repeats-frames") { 0 } else { self.passed });
        Some(match self.seq {
            None => FROM_NOW_ON,
            Some(seq) if self.whole => seq,
            // There may be more of it than was heard.
            Some(seq) if is_planted("gateway-skips-rest-of-event") => seq,
            Some(seq) => seq.saturating_sub(1),
        })
    }
}

/// The seq of the event that a frame of a hub is about.
pub(super) fn seq_of(frame: &Frame) -> Option<u64> {
    #[derive(Deserialize)]
    struct Counted {
        seq: u64,
    }
    let counted = |json: &str| serde_json::from_str::<Counted>(json).ok().map(|it| it.seq);
    match frame.known_method() {
        Some(
            Method::ControlTurn
            | Method::ControlAsk
            | Method::ControlSession
            | Method::ControlEvent,
        ) => counted(frame.params()?),
        _ => counted(&super::key::ours_in(frame)?),
    }
}

/// How far an answer of a hub says the log reaches: `_meta.jackfield.seq` of what opens a session, or
/// `head` of an attach.
pub(super) fn head_of(answer: &Frame) -> Option<u64> {
    let result: serde_json::Value = serde_json::from_str(answer.result()?).ok()?;
    let told = result.pointer("/_meta/jackfield/seq").or_else(|| result.get("head"));
    told.and_then(serde_json::Value::as_u64)
}

#[cfg(test)]
mod tests {
    use super::Heard;

    #[test]
    fn exactly_the_frames_that_were_passed_on_are_left_out() {
        let mut heard = Heard::upto(0);
        assert!([1, 2, 4, 4].map(|it| heard.hears(it)).into_iter().all(|it| it));
        assert_eq!(heard.resume(), Some(3));
        // The fourth event has three frames, and the host connection was lost after the second.
        assert_eq!([4, 4, 4, 5].map(|it| heard.hears(it)), [false, false, true, true]);
        assert_eq!(heard.resume(), Some(4));
        assert_eq!([5, 6].map(|it| heard.hears(it)), [false, true]);
    }

    #[test]
    fn a_second_loss_before_the_first_is_made_good_changes_nothing() {
        let mut heard = Heard::upto(0);
        assert!(heard.hears(1) && heard.hears(1));
        heard.resume();
        assert!(!heard.hears(1));
        heard.lose();
        assert_eq!(heard.resume(), Some(0));
        assert_eq!([1, 1, 1].map(|it| heard.hears(it)), [false, false, true]);
    }

    #[test]
    fn what_an_answer_covers_is_not_heard_again() {
        let mut heard = Heard::default();
        assert_eq!(heard.resume(), Some((1 << 53) - 1));
        heard.told_upto(Some(9));
        assert_eq!(heard.resume(), Some(9));
        assert_eq!([8, 9, 10].map(|it| heard.hears(it)), [false, false, true]);
    }

    #[test]
    fn who_asked_to_hear_it_again_does() {
        let mut heard = Heard::upto(0);
        assert!(heard.hears(1) && heard.hears(2));
        heard.rewind();
        assert!(heard.hears(3));
        heard.lose();
        assert_eq!(heard.resume(), None);
        assert!([1, 2, 3].map(|it| heard.hears(it)).into_iter().all(|it| it));
        assert_eq!(heard.resume(), Some(2));
        // Halfway through it is a loss like any other.
        let mut heard = Heard::upto(5);
        heard.rewind();
        assert!(heard.hears(1) && heard.hears(2));
        heard.lose();
        assert_eq!(heard.resume(), Some(1));
        assert_eq!([1, 2, 3].map(|it| heard.hears(it)), [false, false, true]);
    }
}

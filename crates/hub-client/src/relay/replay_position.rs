//! How far a client has received a session, so that it continues there on another host connection.
//!
//! Hubs put the sequence number of the event into each frame. One event may have several frames, so
//! the position is the last sequence number and the number of its frames that were delivered.

use jackfield_protocol::is_planted;

/// Greater than every sequence number: an attach after it delivers new events only.
const SEQ_MAX: u64 = (1 << 53) - 1;

/// The last frame of a session that a client received.
#[derive(Debug, Default)]
pub struct ReplayPosition {
    /// The last sequence number that was delivered; `None` if the client only sent to the session.
    seq: Option<u64>,
    /// Frames of this event that were delivered.
    delivered_frames: usize,
    /// The event has no more frames.
    is_complete: bool,
    /// While a new connection repeats frames: how many frames of `seq` to skip.
    frames_to_skip: Option<usize>,
    /// The client asked for a replay from before this position, and the replay has not begun.
    replay_before: Option<u64>,
}

impl ReplayPosition {
    /// Everything up to this sequence number was delivered.
    pub fn up_to(seq: u64) -> ReplayPosition {
        ReplayPosition { seq: Some(seq), is_complete: true, ..ReplayPosition::default() }
    }

    /// Records a frame of this event. Returns whether the client has not received it yet.
    pub fn accept_frame(&mut self, seq: u64) -> bool {
        if let (Some(last), Some(frames_to_skip)) = (self.seq, &mut self.frames_to_skip) {
            if seq < last || (seq == last && self.is_complete) {
                return false;
            }
            if seq == last && 0 < *frames_to_skip {
                *frames_to_skip -= 1;
                return false;
            }
            if last < seq {
                self.frames_to_skip = None;
            }
        }
        self.replay_before = self.replay_before.filter(|before| *before <= seq);
        if self.seq != Some(seq) {
            (self.seq, self.delivered_frames, self.is_complete) = (Some(seq), 0, false);
        }
        self.delivered_frames += 1;
        true
    }

    /// The response to a request that attaches the client arrived, with the end of its replay.
    pub fn complete_replay(&mut self, head: Option<u64>) {
        if let Some(head) = head.filter(|head| self.seq.is_none_or(|last| last <= *head)) {
            *self = ReplayPosition::up_to(head);
        }
        self.replay_before = None;
    }

    /// The client asked for a replay from an earlier position.
    pub fn request_replay(&mut self) {
        self.frames_to_skip = None;
        self.replay_before = self.seq.filter(|it| 0 < *it);
    }

    /// The connection is lost. If the client asked for a replay, that request is sent again and
    /// delivers everything; none of its frames is a duplicate.
    pub fn on_connection_lost(&mut self) {
        if self.replay_before.is_some() {
            *self = ReplayPosition { replay_before: Some(u64::MAX), ..ReplayPosition::up_to(0) };
        }
    }

    /// The sequence number after which to attach on another connection; `None` if a pending replay
    /// covers it.
    pub fn resume_after(&mut self) -> Option<u64> {
        if self.replay_before.is_some() {
            return None;
        }
        self.frames_to_skip =
            Some(if is_planted("gateway-repeats-frames") { 0 } else { self.delivered_frames });
        Some(match self.seq {
            None => SEQ_MAX,
            Some(seq) if self.is_complete => seq,
            // The event may have more frames.
            Some(seq) if is_planted("gateway-skips-rest-of-event") => seq,
            Some(seq) => seq.saturating_sub(1),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ReplayPosition;

    #[test]
    fn delivered_frames_are_skipped_exactly_once() {
        let mut position = ReplayPosition::up_to(0);
        assert!([1, 2, 4, 4].map(|it| position.accept_frame(it)).into_iter().all(|it| it));
        assert_eq!(position.resume_after(), Some(3));
        // The fourth event has three frames, and the connection was lost after the second.
        assert_eq!([4, 4, 4, 5].map(|it| position.accept_frame(it)), [false, false, true, true]);
        assert_eq!(position.resume_after(), Some(4));
        assert_eq!([5, 6].map(|it| position.accept_frame(it)), [false, true]);
    }

    #[test]
    fn second_connection_loss_during_catch_up_changes_nothing() {
        let mut position = ReplayPosition::up_to(0);
        assert!(position.accept_frame(1) && position.accept_frame(1));
        position.resume_after();
        assert!(!position.accept_frame(1));
        position.on_connection_lost();
        assert_eq!(position.resume_after(), Some(0));
        assert_eq!([1, 1, 1].map(|it| position.accept_frame(it)), [false, false, true]);
    }

    #[test]
    fn events_covered_by_a_response_are_not_delivered_again() {
        let mut position = ReplayPosition::default();
        assert_eq!(position.resume_after(), Some((1 << 53) - 1));
        position.complete_replay(Some(9));
        assert_eq!(position.resume_after(), Some(9));
        assert_eq!([8, 9, 10].map(|it| position.accept_frame(it)), [false, false, true]);
    }

    #[test]
    fn requested_replay_is_delivered_in_full() {
        let mut position = ReplayPosition::up_to(0);
        assert!(position.accept_frame(1) && position.accept_frame(2));
        position.request_replay();
        assert!(position.accept_frame(3));
        position.on_connection_lost();
        assert_eq!(position.resume_after(), None);
        assert!([1, 2, 3].map(|it| position.accept_frame(it)).into_iter().all(|it| it));
        assert_eq!(position.resume_after(), Some(2));
        // A connection that is lost during the replay is handled like any other.
        let mut position = ReplayPosition::up_to(5);
        position.request_replay();
        assert!(position.accept_frame(1) && position.accept_frame(2));
        position.on_connection_lost();
        assert_eq!(position.resume_after(), Some(1));
        assert_eq!([1, 2, 3].map(|it| position.accept_frame(it)), [false, false, true]);
    }
}

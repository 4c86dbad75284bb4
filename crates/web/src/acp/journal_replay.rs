//! Replays a stream from the journal, if the frames after the reader's last event are no longer
//! retained, or if the reader comes from another connection.
//!
//! The hub is asked for everything from that event on, including that event: it may consist of
//! several frames, of which the reader has some. Responses and requests, which the journal does not
//! have, are inserted at their original position.

use super::cursor::Cursor;
use super::stream_buffer::{BufferedFrame, StreamBuffer};
use bytes::Bytes;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct JournalReplay {
    /// The cursor of the last frame that the reader has.
    from: Cursor,
    /// The number of replayed frames of that event.
    replayed: u64,
    /// Events after this sequence number that arrive before the replay were sent before the hub
    /// received the request, and will be replayed.
    before_replay: Option<u64>,
    /// Frames to insert, by position.
    pending: VecDeque<(Cursor, Bytes)>,
}

impl JournalReplay {
    /// Begins a replay. Also returns whether frames are lost that the journal does not have.
    pub(super) fn begin(buffer: &mut StreamBuffer, from: Cursor) -> (JournalReplay, bool) {
        let seen = buffer.last().seq;
        let (rest, lost) = buffer.start_over(from);
        let pending = rest.into_iter().map(|BufferedFrame { at, text, .. }| (at, text)).collect();
        let before_replay = (0 < seen).then_some(seen);
        (JournalReplay { from, replayed: 0, before_replay, pending }, lost)
    }

    /// The sequence number after which the hub is asked to begin.
    pub(super) fn after(&self) -> u64 {
        self.from.seq.saturating_sub(1)
    }

    pub(super) fn from(&self) -> Cursor {
        self.from
    }

    /// Adds a frame of the session before the hub has answered the request.
    pub(super) fn on_frame(&mut self, buffer: &mut StreamBuffer, text: Bytes, seq: Option<u64>) {
        let Some(seq) = seq else {
            match self.before_replay {
                Some(_) => self.add_pending(buffer, text),
                None => buffer.push(text, None),
            }
            return;
        };
        if self.before_replay.is_some_and(|it| it < seq) {
            return;
        }
        self.before_replay = None;
        if seq == self.from.seq {
            let at = Cursor::new(seq, self.replayed);
            self.replayed += 1;
            if self.from < at {
                buffer.push_at(at, text, true);
            }
            return;
        }
        self.insert_pending(buffer, |at| at.seq < seq);
        buffer.push(text, Some(seq));
    }

    /// Ends the replay; the following frames are live.
    pub(super) fn finish(mut self, buffer: &mut StreamBuffer) {
        self.insert_pending(buffer, |_| true);
    }

    fn add_pending(&mut self, buffer: &StreamBuffer, text: Bytes) {
        let last = self.pending.back().map_or(buffer.last(), |it| it.0);
        let seen = Cursor::new(self.before_replay.unwrap_or_default(), 0);
        self.pending.push_back((last.max(seen).next(None), text));
    }

    fn insert_pending(&mut self, buffer: &mut StreamBuffer, is_due: impl Fn(Cursor) -> bool) {
        while let Some((at, text)) = self.pending.pop_front_if(|it| is_due(it.0)) {
            buffer.push_at(at, text, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, JournalReplay, StreamBuffer};
    use bytes::Bytes;

    fn update(seq: u64) -> (Bytes, Option<u64>) {
        (format!("update {seq}").into(), Some(seq))
    }

    fn other(text: &'static str) -> (Bytes, Option<u64>) {
        (text.into(), None)
    }

    fn read(buffer: &mut StreamBuffer) -> Vec<String> {
        let show = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        std::iter::from_fn(|| buffer.take_frame())
            .map(|it| format!("{} {}", it.at, show(&it.text)))
            .collect()
    }

    /// The frames for a reader that has everything up to `from`, if the hub sends these.
    fn replay_frames(
        buffer: &mut StreamBuffer,
        from: Cursor,
        said: &[(Bytes, Option<u64>)],
    ) -> Vec<String> {
        let (mut replay, lost) = JournalReplay::begin(buffer, from);
        assert!(!lost);
        for (text, seq) in said {
            replay.on_frame(buffer, text.clone(), *seq);
        }
        replay.finish(buffer);
        read(buffer)
    }

    #[test]
    fn new_connection_gets_the_rest_without_the_last_event() {
        let said = [update(3), update(4), other("ask"), update(6)];
        let heard = replay_frames(&mut StreamBuffer::default(), Cursor::new(3, 0), &said);
        assert_eq!(heard, ["4.0 update 4", "4.1 ask", "6.0 update 6"]);
    }

    #[test]
    fn replay_continues_in_the_middle_of_an_event() {
        let said = [update(3), update(3), update(3), update(4)];
        let heard = replay_frames(&mut StreamBuffer::default(), Cursor::new(3, 1), &said);
        assert_eq!(heard, ["3.2 update 3", "4.0 update 4"]);
        // Two frames without a sequence number followed the event.
        assert_eq!(
            replay_frames(&mut StreamBuffer::default(), Cursor::new(3, 4), &said),
            ["4.0 update 4"]
        );
    }

    #[test]
    fn replay_from_the_beginning_has_everything() {
        let said = [update(1), update(2), other("answer")];
        let heard = replay_frames(&mut StreamBuffer::default(), Cursor::new(0, 3), &said);
        assert_eq!(heard, ["1.0 update 1", "2.0 update 2", "2.1 answer"]);
    }

    #[test]
    fn frames_in_transit_are_delivered_once_and_in_their_position() {
        let mut buffer = StreamBuffer::default();
        for (text, seq) in [update(1), other("ask"), update(2), other("answer"), update(3)] {
            buffer.push(text, seq);
        }
        read(&mut buffer);
        let (text, seq) = update(4);
        buffer.push(text, seq);
        // The hub sent events 5 and 6 and a response before it received the request.
        let said = [update(5), other("late"), update(6)];
        let told = [1, 2, 3, 4, 5, 6, 7].map(update);
        let heard = replay_frames(&mut buffer, Cursor::new(1, 0), &[&said[..], &told].concat());
        let expected = [
            "1.1 ask",
            "2.0 update 2",
            "2.1 answer",
            "3.0 update 3",
            "4.0 update 4",
            "4.1 late",
            "5.0 update 5",
            "6.0 update 6",
            "7.0 update 7",
        ];
        assert_eq!(heard, expected);
    }
}

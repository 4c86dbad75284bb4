//! The unread frames of a stream, and its recently delivered ones: a reader that was disconnected
//! returns with the id of its last event and continues after it.

use super::cursor::Cursor;
use super::limits::{RETAINED_BYTES_MAX, RETAINED_FRAMES_MAX, UNREAD_BYTES_MAX, UNREAD_FRAMES_MAX};
use bytes::Bytes;
use std::collections::VecDeque;

/// One frame, and the cursor of a reader that has received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BufferedFrame {
    pub(super) at: Cursor,
    pub(super) text: Bytes,
    /// The number of the frame in this buffer, because a cursor may occur twice.
    number: u64,
    /// Whether it can be replayed from the journal.
    in_journal: bool,
}

#[derive(Debug, Default)]
pub(super) struct StreamBuffer {
    /// The cursor of the newest frame.
    last: Cursor,
    pushed: u64,
    unread: FrameQueue,
    /// Delivered frames that the journal has.
    retained: FrameQueue,
    /// Delivered frames that the journal does not have.
    retained_unjournaled: FrameQueue,
    /// The newest frame of both kinds that is no longer retained.
    discarded: Option<(u64, Cursor)>,
    /// The newest discarded frame that the journal does not have.
    lost: Option<Cursor>,
}

/// Frames in order, and their size.
#[derive(Debug, Default)]
struct FrameQueue {
    entries: VecDeque<BufferedFrame>,
    bytes: usize,
}

impl FrameQueue {
    fn push(&mut self, entry: BufferedFrame) {
        self.bytes += entry.text.len();
        self.entries.push_back(entry);
    }

    fn pop(&mut self) -> Option<BufferedFrame> {
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.text.len();
        Some(entry)
    }

    fn is_over(&self, bytes: usize, frames: usize) -> bool {
        bytes < self.bytes || frames < self.entries.len()
    }

    fn take_all(&mut self) -> VecDeque<BufferedFrame> {
        std::mem::take(self).entries
    }
}

impl Extend<BufferedFrame> for FrameQueue {
    fn extend<I: IntoIterator<Item = BufferedFrame>>(&mut self, entries: I) {
        entries.into_iter().for_each(|it| self.push(it));
    }
}

impl StreamBuffer {
    pub(super) fn last(&self) -> Cursor {
        self.last
    }

    /// Adds a frame; `seq` is its sequence number if it is an event of the log.
    pub(super) fn push(&mut self, text: Bytes, seq: Option<u64>) {
        self.push_at(self.last.next(seq), text, seq.is_some());
    }

    /// The same with a given cursor.
    pub(super) fn push_at(&mut self, at: Cursor, text: Bytes, in_journal: bool) {
        self.last = at;
        self.pushed += 1;
        self.unread.push(BufferedFrame { at, text, number: self.pushed, in_journal });
    }

    /// Adds a frame to the connection's own stream, where the cursor is a count.
    pub(super) fn push_counted(&mut self, text: Bytes) {
        self.push_at(Cursor::new(self.last.seq + 1, 0), text, false);
    }

    /// Advances the cursor: the client has received the log up to this sequence number.
    pub(super) fn advance_to(&mut self, seq: u64) {
        if self.last.seq < seq {
            self.last = Cursor::new(seq, 0);
        }
    }

    /// The next frame for the reader. It is retained in case it does not arrive.
    pub(super) fn take_frame(&mut self) -> Option<BufferedFrame> {
        let entry = self.unread.pop()?;
        let retained =
            if entry.in_journal { &mut self.retained } else { &mut self.retained_unjournaled };
        retained.push(entry.clone());
        while self.retained.is_over(RETAINED_BYTES_MAX, RETAINED_FRAMES_MAX) {
            let old = self.retained.pop().map(|it| (it.number, it.at));
            self.discarded = self.discarded.max(old);
        }
        while self.retained_unjournaled.is_over(RETAINED_BYTES_MAX, RETAINED_FRAMES_MAX) {
            let old = self.retained_unjournaled.pop();
            self.discarded = self.discarded.max(old.as_ref().map(|it| (it.number, it.at)));
            self.lost = self.lost.max(old.map(|it| it.at));
        }
        Some(entry)
    }

    pub(super) fn has_unread(&self) -> bool {
        !self.unread.entries.is_empty()
    }

    /// Whether nothing more should be added until the reader catches up.
    pub(super) fn is_full(&self) -> bool {
        self.unread.is_over(UNREAD_BYTES_MAX, UNREAD_FRAMES_MAX)
    }

    /// The reader has everything up to `at`, so the frames after it become unread again. Returns
    /// `false` if they are no longer retained.
    pub(super) fn rewind(&mut self, at: Cursor) -> bool {
        let delivered = || self.retained.entries.iter().chain(&self.retained_unjournaled.entries);
        // Of two frames with the same cursor the later one, because the reader has both.
        let newest = delivered().filter(|it| it.at == at).map(|it| it.number).max();
        let discarded = self.discarded.map_or(0, |it| it.0);
        let from = match newest {
            Some(number) => number,
            None if self.discarded.is_some_and(|it| it.1 == at) => discarded,
            None => return false,
        };
        if from < discarded {
            return false;
        }
        let mut unread: Vec<BufferedFrame> = Vec::new();
        for retained in [&mut self.retained, &mut self.retained_unjournaled] {
            let (before, after) = retained.take_all().into_iter().partition(|it| it.number <= from);
            retained.extend::<Vec<BufferedFrame>>(before);
            unread.extend::<Vec<BufferedFrame>>(after);
        }
        unread.sort_unstable_by_key(|it| it.number);
        unread.extend(self.unread.take_all());
        self.unread.extend(unread);
        true
    }

    /// Discards everything that the journal will replay from `at` on. Returns the other frames that
    /// the reader has not received, in order, and whether some of those are lost.
    pub(super) fn start_over(&mut self, at: Cursor) -> (VecDeque<BufferedFrame>, bool) {
        let has_lost = self.lost.is_some_and(|it| at < it);
        let delivered = self.retained_unjournaled.take_all().into_iter().filter(|it| at < it.at);
        let unread = self.unread.take_all().into_iter().filter(|it| !it.in_journal);
        let rest = delivered.chain(unread).collect();
        *self = StreamBuffer { last: at, pushed: self.pushed, ..StreamBuffer::default() };
        (rest, has_lost)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, RETAINED_FRAMES_MAX, StreamBuffer, UNREAD_BYTES_MAX, UNREAD_FRAMES_MAX};
    use bytes::Bytes;

    fn update(buffer: &mut StreamBuffer, seq: u64) {
        buffer.push(Bytes::from(format!("update {seq}")), Some(seq));
    }

    fn answer(buffer: &mut StreamBuffer, text: &'static str) {
        buffer.push(Bytes::from_static(text.as_bytes()), None);
    }

    /// Reads all frames as `cursor text`.
    fn read(buffer: &mut StreamBuffer) -> Vec<String> {
        let show = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        std::iter::from_fn(|| buffer.take_frame())
            .map(|it| format!("{} {}", it.at, show(&it.text)))
            .collect()
    }

    #[test]
    fn returning_reader_continues_after_its_last_event() {
        let mut buffer = StreamBuffer::default();
        update(&mut buffer, 2);
        answer(&mut buffer, "ask");
        update(&mut buffer, 4);
        let all = read(&mut buffer);
        assert_eq!(all, ["2.0 update 2", "2.1 ask", "4.0 update 4"]);
        update(&mut buffer, 5);
        for (at, left) in [(Cursor::new(2, 0), 1), (Cursor::new(2, 1), 2), (Cursor::new(4, 0), 3)] {
            assert!(buffer.rewind(at));
            let again = read(&mut buffer);
            assert_eq!(again[..3 - left], all[left..]);
            assert_eq!(again[3 - left], "5.0 update 5");
        }
        assert!(buffer.rewind(Cursor::new(5, 0)));
        assert!(read(&mut buffer).is_empty());
    }

    #[test]
    fn cursor_that_was_never_delivered_is_unknown() {
        let mut buffer = StreamBuffer::default();
        update(&mut buffer, 2);
        assert!(!buffer.rewind(Cursor::new(2, 0)), "nobody has read it yet");
        assert_eq!(read(&mut buffer).len(), 1);
        assert!(buffer.rewind(Cursor::new(2, 0)));
        for at in [Cursor::new(1, 0), Cursor::new(2, 1), Cursor::new(3, 0)] {
            assert!(!buffer.rewind(at), "{at}");
        }
    }

    #[test]
    fn frame_delivered_long_ago_is_no_longer_retained() {
        let mut buffer = StreamBuffer::default();
        let count = u64::try_from(RETAINED_FRAMES_MAX).unwrap();
        for seq in 1..=count + 2 {
            update(&mut buffer, seq);
        }
        read(&mut buffer);
        assert!(!buffer.rewind(Cursor::new(1, 0)));
        // Two frames are discarded, and everything after the second is retained.
        assert!(buffer.rewind(Cursor::new(2, 0)));
        assert_eq!(read(&mut buffer).len(), RETAINED_FRAMES_MAX);
        assert!(buffer.rewind(Cursor::new(3, 0)));
        assert_eq!(read(&mut buffer).len(), RETAINED_FRAMES_MAX - 1);
    }

    #[test]
    fn many_updates_do_not_displace_frames_the_journal_lacks() {
        let mut buffer = StreamBuffer::default();
        update(&mut buffer, 1);
        answer(&mut buffer, "ask");
        for seq in 2..5000 {
            update(&mut buffer, seq);
            read(&mut buffer);
        }
        answer(&mut buffer, "unread");
        assert!(!buffer.rewind(Cursor::new(1, 0)));
        assert!(!buffer.rewind(Cursor::new(1, 1)), "there is a hole behind it");
        let (rest, lost) = buffer.start_over(Cursor::new(1, 0));
        let rest: Vec<_> = rest.iter().map(|it| (it.at, &it.text[..])).collect();
        let expected: [(_, &[u8]); 2] =
            [(Cursor::new(1, 1), b"ask"), (Cursor::new(4999, 1), b"unread")];
        assert_eq!(rest, expected);
        assert!(!lost);
        assert!(!buffer.has_unread());
    }

    #[test]
    fn lost_frames_are_reported() {
        let mut buffer = StreamBuffer::default();
        update(&mut buffer, 7);
        for _ in 0..RETAINED_FRAMES_MAX + 2 {
            answer(&mut buffer, "answer");
        }
        read(&mut buffer);
        assert!(!buffer.rewind(Cursor::new(7, 1)));
        assert!(buffer.rewind(Cursor::new(7, 2)));
        let (rest, lost) = buffer.start_over(Cursor::new(7, 0));
        assert!(lost);
        assert_eq!(rest.len(), RETAINED_FRAMES_MAX);
    }

    #[test]
    fn later_frame_counts_if_a_cursor_occurs_twice() {
        let mut buffer = StreamBuffer::default();
        for seq in [1, 2, 1, 2, 3] {
            update(&mut buffer, seq);
        }
        read(&mut buffer);
        assert!(buffer.rewind(Cursor::new(1, 0)));
        assert_eq!(read(&mut buffer), ["2.0 update 2", "3.0 update 3"]);
    }

    #[test]
    fn buffer_without_a_reader_becomes_full() {
        let mut buffer = StreamBuffer::default();
        while !buffer.is_full() {
            update(&mut buffer, 1);
        }
        assert_eq!(std::iter::from_fn(|| buffer.take_frame()).count(), UNREAD_FRAMES_MAX + 1);
        buffer.push(vec![b'x'; UNREAD_BYTES_MAX].into(), Some(2));
        assert!(!buffer.is_full());
        update(&mut buffer, 3);
        assert!(buffer.is_full());
    }
}

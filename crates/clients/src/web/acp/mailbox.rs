//! What waits for a stream's reader, and what was handed to it lately: a reader that was cut off
//! comes back with the id of the last event it has, and goes on behind it.

use super::cursor::Cursor;
use super::limits::{KEPT_BYTES_MAX, KEPT_FRAMES_MAX, UNREAD_BYTES_MAX, UNREAD_FRAMES_MAX};
use bytes::Bytes;
use std::collections::VecDeque;

/// One frame, and the cursor of whoever has heard it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) at: Cursor,
    pub(super) text: Bytes,
    /// Counts the frames of this mailbox: a cursor may come twice.
    number: u64,
    /// The journal tells it again to whoever asks.
    in_journal: bool,
}

#[derive(Debug, Default)]
pub(super) struct Mailbox {
    /// The cursor of the newest frame.
    last: Cursor,
    pushed: u64,
    unread: Queue,
    kept: Queue,
    kept_apart: Queue,
    /// The newest that is kept no longer, of both kinds.
    forgotten: Option<(u64, Cursor)>,
    lost: Option<Cursor>,
}

/// Frames in order, and their size.
#[derive(Debug, Default)]
struct Queue {
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Queue {
    fn push(&mut self, entry: Entry) {
        self.bytes += entry.text.len();
        self.entries.push_back(entry);
    }

    fn pop(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front()?;
        self.bytes -= entry.text.len();
        Some(entry)
    }

    fn is_over(&self, bytes: usize, frames: usize) -> bool {
        bytes < self.bytes || frames < self.entries.len()
    }

    fn take(&mut self) -> VecDeque<Entry> {
        std::mem::take(self).entries
    }
}

impl Extend<Entry> for Queue {
    fn extend<I: IntoIterator<Item = Entry>>(&mut self, entries: I) {
        entries.into_iter().for_each(|it| self.push(it));
    }
}

impl Mailbox {
    pub(super) fn last(&self) -> Cursor {
        self.last
    }

    /// A frame comes; `seq` is its own, if it is an event of the log.
    pub(super) fn push(&mut self, text: Bytes, seq: Option<u64>) {
        self.push_at(self.last.next(seq), text, seq.is_some());
    }

    /// The same with a cursor that is known already.
    pub(super) fn push_at(&mut self, at: Cursor, text: Bytes, in_journal: bool) {
        self.last = at;
        self.pushed += 1;
        self.unread.push(Entry { at, text, number: self.pushed, in_journal });
    }

    /// A frame of the connection's own stream, where each counts.
    pub(super) fn push_counted(&mut self, text: Bytes) {
        self.push_at(Cursor::new(self.last.seq + 1, 0), text, false);
    }

    /// The log is told up to here, whatever was heard of it.
    pub(super) fn reached(&mut self, seq: u64) {
        if self.last.seq < seq {
            self.last = Cursor::new(seq, 0);
        }
    }

    /// The next frame for the reader. It is kept, for the case that it does not arrive.
    pub(super) fn take(&mut self) -> Option<Entry> {
        let entry = self.unread.pop()?;
        let kept = if entry.in_journal { &mut self.kept } else { &mut self.kept_apart };
        kept.push(entry.clone());
        while self.kept.is_over(KEPT_BYTES_MAX, KEPT_FRAMES_MAX) {
            let old = self.kept.pop().map(|it| (it.number, it.at));
            self.forgotten = self.forgotten.max(old);
        }
        while self.kept_apart.is_over(KEPT_BYTES_MAX, KEPT_FRAMES_MAX) {
            let old = self.kept_apart.pop();
            self.forgotten = self.forgotten.max(old.as_ref().map(|it| (it.number, it.at)));
            self.lost = self.lost.max(old.map(|it| it.at));
        }
        Some(entry)
    }

    pub(super) fn has_unread(&self) -> bool {
        !self.unread.entries.is_empty()
    }

    /// Nothing more should come until somebody reads.
    pub(super) fn is_full(&self) -> bool {
        self.unread.is_over(UNREAD_BYTES_MAX, UNREAD_FRAMES_MAX)
    }

    /// The reader has everything up to `at`, and no more: what follows is unread again. False if it
    /// is not known any more what follows.
    pub(super) fn rewind(&mut self, at: Cursor) -> bool {
        let handed_out = || self.kept.entries.iter().chain(&self.kept_apart.entries);
        // Of two with the same id the later one: it has that one too.
        let newest = handed_out().filter(|it| it.at == at).map(|it| it.number).max();
        let forgotten = self.forgotten.map_or(0, |it| it.0);
        let from = match newest {
            Some(number) => number,
            None if self.forgotten.is_some_and(|it| it.1 == at) => forgotten,
            None => return false,
        };
        if from < forgotten {
            return false;
        }
        let mut again: Vec<Entry> = Vec::new();
        for kept in [&mut self.kept, &mut self.kept_apart] {
            let (before, behind) = kept.take().into_iter().partition(|it| it.number <= from);
            kept.extend::<Vec<Entry>>(before);
            again.extend::<Vec<Entry>>(behind);
        }
        again.sort_unstable_by_key(|it| it.number);
        again.extend(self.unread.take());
        self.unread.extend(again);
        true
    }

    /// Gives up everything that the journal will tell again from `at` on, and returns the rest that
    /// the reader has not seen, in order; and whether some of that is gone for good.
    pub(super) fn start_over(&mut self, at: Cursor) -> (VecDeque<Entry>, bool) {
        let has_lost = self.lost.is_some_and(|it| at < it);
        let apart = self.kept_apart.take().into_iter().filter(|it| at < it.at);
        let unread = self.unread.take().into_iter().filter(|it| !it.in_journal);
        let rest = apart.chain(unread).collect();
        *self = Mailbox { last: at, pushed: self.pushed, ..Mailbox::default() };
        (rest, has_lost)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, KEPT_FRAMES_MAX, Mailbox, UNREAD_BYTES_MAX, UNREAD_FRAMES_MAX};
    use bytes::Bytes;

    fn update(mailbox: &mut Mailbox, seq: u64) {
        mailbox.push(Bytes::from(format!("update {seq}")), Some(seq));
    }

    fn answer(mailbox: &mut Mailbox, text: &'static str) {
        mailbox.push(Bytes::from_static(text.as_bytes()), None);
    }

    /// Reads everything there is: `cursor text`.
    fn read(mailbox: &mut Mailbox) -> Vec<String> {
        let show = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        std::iter::from_fn(|| mailbox.take())
            .map(|it| format!("{} {}", it.at, show(&it.text)))
            .collect()
    }

    #[test]
    fn a_reader_that_comes_back_goes_on_behind_what_it_has() {
        let mut mailbox = Mailbox::default();
        update(&mut mailbox, 2);
        answer(&mut mailbox, "ask");
        update(&mut mailbox, 4);
        let all = read(&mut mailbox);
        assert_eq!(all, ["2.0 update 2", "2.1 ask", "4.0 update 4"]);
        update(&mut mailbox, 5);
        for (at, left) in [(Cursor::new(2, 0), 1), (Cursor::new(2, 1), 2), (Cursor::new(4, 0), 3)] {
            assert!(mailbox.rewind(at));
            let again = read(&mut mailbox);
            assert_eq!(again[..3 - left], all[left..]);
            assert_eq!(again[3 - left], "5.0 update 5");
        }
        assert!(mailbox.rewind(Cursor::new(5, 0)));
        assert!(read(&mut mailbox).is_empty());
    }

    #[test]
    fn an_id_that_was_never_handed_out_is_not_known() {
        let mut mailbox = Mailbox::default();
        update(&mut mailbox, 2);
        assert!(!mailbox.rewind(Cursor::new(2, 0)), "nobody has read it yet");
        assert_eq!(read(&mut mailbox).len(), 1);
        assert!(mailbox.rewind(Cursor::new(2, 0)));
        for at in [Cursor::new(1, 0), Cursor::new(2, 1), Cursor::new(3, 0)] {
            assert!(!mailbox.rewind(at), "{at}");
        }
    }

    #[test]
    fn what_was_handed_out_long_ago_is_not_known_any_more() {
        let mut mailbox = Mailbox::default();
        let count = u64::try_from(KEPT_FRAMES_MAX).unwrap();
        for seq in 1..=count + 2 {
            update(&mut mailbox, seq);
        }
        read(&mut mailbox);
        assert!(!mailbox.rewind(Cursor::new(1, 0)));
        // Two are forgotten, and everything behind the second is there.
        assert!(mailbox.rewind(Cursor::new(2, 0)));
        assert_eq!(read(&mut mailbox).len(), KEPT_FRAMES_MAX);
        assert!(mailbox.rewind(Cursor::new(3, 0)));
        assert_eq!(read(&mut mailbox).len(), KEPT_FRAMES_MAX - 1);
    }

    #[test]
    fn a_flood_of_updates_does_not_push_out_what_the_journal_does_not_have() {
        let mut mailbox = Mailbox::default();
        update(&mut mailbox, 1);
        answer(&mut mailbox, "ask");
        for seq in 2..5000 {
            update(&mut mailbox, seq);
            read(&mut mailbox);
        }
        answer(&mut mailbox, "unread");
        assert!(!mailbox.rewind(Cursor::new(1, 0)));
        assert!(!mailbox.rewind(Cursor::new(1, 1)), "there is a hole behind it");
        let (rest, lost) = mailbox.start_over(Cursor::new(1, 0));
        let rest: Vec<_> = rest.iter().map(|it| (it.at, &it.text[..])).collect();
        let expected: [(_, &[u8]); 2] =
            [(Cursor::new(1, 1), b"ask"), (Cursor::new(4999, 1), b"unread")];
        assert_eq!(rest, expected);
        assert!(!lost);
        assert!(!mailbox.has_unread());
    }

    #[test]
    fn what_is_gone_for_good_is_said_to_be() {
        let mut mailbox = Mailbox::default();
        update(&mut mailbox, 7);
        for _ in 0..KEPT_FRAMES_MAX + 2 {
            answer(&mut mailbox, "answer");
        }
        read(&mut mailbox);
        assert!(!mailbox.rewind(Cursor::new(7, 1)));
        assert!(mailbox.rewind(Cursor::new(7, 2)));
        let (rest, lost) = mailbox.start_over(Cursor::new(7, 0));
        assert!(lost);
        assert_eq!(rest.len(), KEPT_FRAMES_MAX);
    }

    #[test]
    fn of_an_id_that_was_told_twice_the_later_one_counts() {
        let mut mailbox = Mailbox::default();
        for seq in [1, 2, 1, 2, 3] {
            update(&mut mailbox, seq);
        }
        read(&mut mailbox);
        assert!(mailbox.rewind(Cursor::new(1, 0)));
        assert_eq!(read(&mut mailbox), ["2.0 update 2", "3.0 update 3"]);
    }

    #[test]
    fn a_mailbox_nobody_reads_is_full_at_a_point() {
        let mut mailbox = Mailbox::default();
        while !mailbox.is_full() {
            update(&mut mailbox, 1);
        }
        assert_eq!(std::iter::from_fn(|| mailbox.take()).count(), UNREAD_FRAMES_MAX + 1);
        mailbox.push(vec![b'x'; UNREAD_BYTES_MAX].into(), Some(2));
        assert!(!mailbox.is_full());
        update(&mut mailbox, 3);
        assert!(mailbox.is_full());
    }
}

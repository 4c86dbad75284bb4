//! A stream that is told again from the journal, because what followed the last event its reader
//! has is not kept any more, or was never here: the reader comes from another connection.
//!
//! The hub is asked for everything from that event on, that event included: it may have been several
//! frames, of which the reader has some. What the journal does not tell, answers and asks, is put
//! back where it was.

use super::cursor::Cursor;
use super::mailbox::{Entry, Mailbox};
use bytes::Bytes;
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Retelling {
    /// The last that the reader has.
    from: Cursor,
    /// How many frames of that event were told again.
    again: u64,
    /// What was said before the hub heard of it has a later seq than this, and will be told again.
    under_way: Option<u64>,
    owed: VecDeque<(Cursor, Bytes)>,
}

impl Retelling {
    /// Begins; says as well whether something is lost that the journal does not have.
    pub(super) fn begin(mailbox: &mut Mailbox, from: Cursor) -> (Retelling, bool) {
        let seen = mailbox.last().seq;
        let (rest, lost) = mailbox.start_over(from);
        let owed = rest.into_iter().map(|Entry { at, text, .. }| (at, text)).collect();
        let under_way = (0 < seen).then_some(seen);
        (Retelling { from, again: 0, under_way, owed }, lost)
    }

    /// The seq behind which the hub is asked to begin.
    pub(super) fn after(&self) -> u64 {
        self.from.seq.saturating_sub(1)
    }

    pub(super) fn from(&self) -> Cursor {
        self.from
    }

    /// A frame of the session, before the hub says that it has told everything.
    pub(super) fn hear(&mut self, mailbox: &mut Mailbox, text: Bytes, seq: Option<u64>) {
        let Some(seq) = seq else {
            match self.under_way {
                Some(_) => self.owe(mailbox, text),
                None => mailbox.push(text, None),
            }
            return;
        };
        if self.under_way.is_some_and(|it| it < seq) {
            return;
        }
        self.under_way = None;
        if seq == self.from.seq {
            let at = Cursor::new(seq, self.again);
            self.again += 1;
            if self.from < at {
                mailbox.push_at(at, text, true);
            }
            return;
        }
        self.pay(mailbox, |at| at.seq < seq);
        mailbox.push(text, Some(seq));
    }

    /// Everything is told; what follows is live.
    pub(super) fn end(mut self, mailbox: &mut Mailbox) {
        self.pay(mailbox, |_| true);
    }

    fn owe(&mut self, mailbox: &Mailbox, text: Bytes) {
        let last = self.owed.back().map_or(mailbox.last(), |it| it.0);
        let seen = Cursor::new(self.under_way.unwrap_or_default(), 0);
        self.owed.push_back((last.max(seen).next(None), text));
    }

    fn pay(&mut self, mailbox: &mut Mailbox, due: impl Fn(Cursor) -> bool) {
        while let Some((at, text)) = self.owed.pop_front_if(|it| due(it.0)) {
            mailbox.push_at(at, text, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cursor, Mailbox, Retelling};
    use bytes::Bytes;

    fn update(seq: u64) -> (Bytes, Option<u64>) {
        (format!("update {seq}").into(), Some(seq))
    }

    fn other(text: &'static str) -> (Bytes, Option<u64>) {
        (text.into(), None)
    }

    fn read(mailbox: &mut Mailbox) -> Vec<String> {
        let show = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        std::iter::from_fn(|| mailbox.take())
            .map(|it| format!("{} {}", it.at, show(&it.text)))
            .collect()
    }

    /// What a reader that has everything up to `from` hears, if the hub says this.
    fn tell(mailbox: &mut Mailbox, from: Cursor, said: &[(Bytes, Option<u64>)]) -> Vec<String> {
        let (mut retelling, lost) = Retelling::begin(mailbox, from);
        assert!(!lost);
        for (text, seq) in said {
            retelling.hear(mailbox, text.clone(), *seq);
        }
        retelling.end(mailbox);
        read(mailbox)
    }

    #[test]
    fn on_a_new_connection_the_rest_is_told_and_the_last_is_not_told_twice() {
        let said = [update(3), update(4), other("ask"), update(6)];
        let heard = tell(&mut Mailbox::default(), Cursor::new(3, 0), &said);
        assert_eq!(heard, ["4.0 update 4", "4.1 ask", "6.0 update 6"]);
    }

    #[test]
    fn an_event_of_several_frames_is_gone_on_with_in_the_middle() {
        let said = [update(3), update(3), update(3), update(4)];
        let heard = tell(&mut Mailbox::default(), Cursor::new(3, 1), &said);
        assert_eq!(heard, ["3.2 update 3", "4.0 update 4"]);
        // Behind the event came two frames that have no seq.
        assert_eq!(tell(&mut Mailbox::default(), Cursor::new(3, 4), &said), ["4.0 update 4"]);
    }

    #[test]
    fn from_the_beginning_everything_is_told() {
        let said = [update(1), update(2), other("answer")];
        let heard = tell(&mut Mailbox::default(), Cursor::new(0, 3), &said);
        assert_eq!(heard, ["1.0 update 1", "2.0 update 2", "2.1 answer"]);
    }

    #[test]
    fn what_was_under_way_is_heard_once_and_what_the_journal_lacks_stands_in_its_place() {
        let mut mailbox = Mailbox::default();
        for (text, seq) in [update(1), other("ask"), update(2), other("answer"), update(3)] {
            mailbox.push(text, seq);
        }
        read(&mut mailbox);
        let (text, seq) = update(4);
        mailbox.push(text, seq);
        // Five and six and an answer left the hub before it heard the request.
        let said = [update(5), other("late"), update(6)];
        let told = [1, 2, 3, 4, 5, 6, 7].map(update);
        let heard = tell(&mut mailbox, Cursor::new(1, 0), &[&said[..], &told].concat());
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

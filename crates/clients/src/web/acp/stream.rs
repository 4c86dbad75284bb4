//! One stream of a connection over HTTP: what waits in it, and who reads it.

use super::cursor::Cursor;
use super::limits::PIECE_BYTES;
use super::mailbox::Mailbox;
use super::message;
use super::retelling::Retelling;
use bytes::Bytes;
use jackfield_wire::{Frame, sse};
use serde_json::{Value, json};
use std::task::Waker;

#[derive(Debug, Default)]
pub(super) struct Stream {
    mailbox: Mailbox,
    /// Which of our requests to the hub it waits for, and what is told meanwhile.
    retelling: Option<(u64, Retelling)>,
    reader: Option<Reader>,
    /// How many there have been.
    readers: u64,
    /// How the client attached, if it did so by our own method.
    manner: Manner,
    /// When it was last of use, for whoever must choose which stream to give up.
    pub(super) used: u64,
}

#[derive(Debug)]
struct Reader {
    number: u64,
    waker: Option<Waker>,
}

/// What a client may say with `_jackfield/attach`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Manner {
    pub(super) observe: bool,
    pub(super) facts: bool,
}

/// What a reader gets.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Bytes(Bytes),
    /// Nothing now; the waker will be woken.
    Nothing,
    /// Somebody else reads it now.
    TakenOver,
}

impl Stream {
    /// A frame of the connection itself.
    pub(super) fn push_counted(&mut self, text: Bytes) {
        self.mailbox.push_counted(text);
        self.wake();
    }

    /// A frame of the stream's session, which has this seq or none.
    pub(super) fn push(&mut self, text: Bytes, seq: Option<u64>) {
        match &mut self.retelling {
            Some((_, retelling)) => retelling.hear(&mut self.mailbox, text, seq),
            None => self.mailbox.push(text, seq),
        }
        self.wake();
    }

    /// The client was let in, and has been told the log up to here.
    pub(super) fn reached(&mut self, seq: u64) {
        if self.retelling.is_none() {
            self.mailbox.reached(seq);
        }
    }

    pub(super) fn attached_as(&mut self, manner: Manner) {
        self.manner = manner;
    }

    /// Somebody comes to read. Whoever read before has lost the connection, or should not be here:
    /// the newcomer has the stream.
    pub(super) fn enter(&mut self) -> u64 {
        self.wake();
        self.readers += 1;
        self.reader = Some(Reader { number: self.readers, waker: None });
        self.readers
    }

    pub(super) fn leave(&mut self, number: u64) {
        self.reader.take_if(|it| it.number == number);
    }

    /// Goes on behind the last event that the reader has; false if that is not known any more.
    pub(super) fn rewind(&mut self, last: &str) -> bool {
        Cursor::read(last).is_some_and(|at| self.mailbox.rewind(at))
    }

    /// Asks the hub for what follows the last event that the reader has, under this number. `None`
    /// if that can be no event of ours.
    pub(super) fn retell(&mut self, session: &str, last: &str, number: u64) -> Option<Frame> {
        let at = Cursor::read(last)?;
        if let Some((_, older)) = self.retelling.take() {
            older.end(&mut self.mailbox);
        }
        let (retelling, has_gap) = Retelling::begin(&mut self.mailbox, at);
        if has_gap {
            let why = "an answer or a request was not kept so long";
            self.mailbox.push(message::gap(Some(session), last, why), None);
        }
        let Manner { observe, facts } = self.manner;
        let after = retelling.after();
        let params =
            json!({ "sessionId": session, "after": after, "observe": observe, "facts": facts });
        self.retelling = Some((number, retelling));
        Some(Frame::request(&our_id(number), "_jackfield/attach", &params.to_string()))
    }

    /// The hub has told everything, or says why it cannot.
    pub(super) fn retold(&mut self, session: &str, number: u64, answer: &Frame) {
        let Some((_, retelling)) = self.retelling.take_if(|it| it.0 == number) else { return };
        let from = retelling.from();
        retelling.end(&mut self.mailbox);
        if let Some(why) = missing(answer, from) {
            self.mailbox.push(message::gap(Some(session), &from.to_string(), &why), None);
        }
        self.wake();
    }

    /// As many events as make a piece; `show` writes their ids.
    pub(super) fn take(
        &mut self,
        number: u64,
        waker: &Waker,
        show: impl Fn(Cursor) -> String,
    ) -> Piece {
        let Some(reader) = self.reader.as_mut().filter(|it| it.number == number) else {
            return Piece::TakenOver;
        };
        let mut piece = Vec::new();
        while piece.len() < PIECE_BYTES {
            let Some(entry) = self.mailbox.take() else { break };
            // The hub says nothing that is no text.
            let text = std::str::from_utf8(&entry.text).unwrap_or_default();
            sse::encode_event(&mut piece, Some(&show(entry.at)), None, text);
        }
        if piece.is_empty() {
            reader.waker = Some(waker.clone());
            return Piece::Nothing;
        }
        Piece::Bytes(piece.into())
    }

    pub(super) fn has_reader(&self) -> bool {
        self.reader.is_some()
    }

    pub(super) fn is_full(&self) -> bool {
        self.mailbox.is_full()
    }

    /// Nobody would miss it.
    pub(super) fn is_idle(&self) -> bool {
        !self.has_reader() && !self.mailbox.has_unread() && self.retelling.is_none()
    }

    /// There is something for the reader to see, or the end.
    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.reader.as_mut().and_then(|it| it.waker.take()) {
            waker.wake();
        }
    }
}

/// The id of a request of our own; a client that uses the same has only itself to blame.
pub(super) fn our_id(number: u64) -> String {
    format!(r#""jackfield-front-{number}""#)
}

/// Why a retelling is not whole, if it is not.
fn missing(answer: &Frame, from: Cursor) -> Option<String> {
    if let Some(error) = answer.error() {
        let error: Value = serde_json::from_str(error).unwrap_or_default();
        return Some(error["message"].as_str().unwrap_or("the hub cannot tell it").to_owned());
    }
    let result: Value = serde_json::from_str(answer.result()?).ok()?;
    let head = result["head"].as_u64()?;
    (head < from.seq).then(|| format!("the log ends at {head}"))
}

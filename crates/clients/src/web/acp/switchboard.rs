//! Which message goes to which stream: the routing of one connection over HTTP, without its I/O.
//!
//! What names a session goes to the session's stream, and so does the answer to what the client
//! asked about a session. Everything else goes to the stream of the connection.

use super::cursor::Cursor;
use super::limits::SESSIONS_MAX;
use super::message;
use super::stream::{Manner, Piece, Stream, our_id};
use bytes::Bytes;
use jackfield_wire::{Frame, Kind};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::task::Waker;
use tokio::sync::oneshot;

#[derive(Debug, Default)]
pub(super) struct Switchboard {
    own: Stream,
    sessions: BTreeMap<String, Stream>,
    /// What waits for an answer of the hub, by the id as JSON text. A client that uses an id twice
    /// gets two answers.
    waiting: HashMap<Box<str>, VecDeque<Waiting>>,
    /// What the hub asked about a session, by id: its withdrawal names no session.
    asked: HashMap<Box<str>, String>,
    /// How many streams are full.
    full: usize,
    clock: u64,
    retellings: u64,
}

#[derive(Debug)]
enum Waiting {
    /// The client, in the stream of this session or in that of the connection.
    Client(Option<String>),
    /// The request that opened the connection.
    Hello(oneshot::Sender<Frame>),
    /// We ourselves: a session is told again.
    Retelling(String, u64),
}

/// A reader's place, and what the hub must be asked for it.
#[derive(Debug)]
pub(super) struct Entered {
    pub(super) number: u64,
    pub(super) ask: Option<Frame>,
}

impl Switchboard {
    /// The client's first words: the answer does not go to a stream.
    pub(super) fn on_hello(&mut self, id: &str) -> oneshot::Receiver<Frame> {
        let (answer, answered) = oneshot::channel();
        self.wait(id, Waiting::Hello(answer));
        answered
    }

    /// The client says something, about this session or none.
    pub(super) fn on_posted(&mut self, frame: &Frame, session: Option<String>) {
        let id = frame.id().unwrap_or("null");
        match frame.kind() {
            Kind::Request => {
                if let Some(stream) = session.as_ref().and_then(|it| self.sessions.get_mut(it))
                    && let Some(manner) = manner(frame)
                {
                    stream.attached_as(manner);
                }
                self.wait(id, Waiting::Client(session));
            }
            Kind::Response => drop(self.asked.remove(id)),
            Kind::Notification => {}
        }
    }

    fn wait(&mut self, id: &str, what: Waiting) {
        self.waiting.entry(id.into()).or_default().push_back(what);
    }

    fn answered(&mut self, id: &str) -> Option<Waiting> {
        let queue = self.waiting.get_mut(id)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(id);
        }
        first
    }

    /// The hub says something.
    pub(super) fn on_heard(&mut self, line: Bytes) {
        let Ok(frame) = Frame::parse(line.clone()) else {
            // A notice may nest deeper than a frame; whoever asked for notices takes them anywhere.
            return self.push(None, line, None);
        };
        match frame.kind() {
            Kind::Response => self.on_answer(&frame),
            Kind::Request | Kind::Notification => {
                let session = self.subject(&frame);
                if let (Some(id), Some(session)) = (frame.id(), &session) {
                    self.asked.insert(id.into(), session.clone());
                }
                let seq = message::seq(&frame);
                self.push(session.as_deref(), line, seq);
            }
        }
    }

    /// The session that a call of the hub is about. A withdrawal follows what it withdraws: in
    /// another stream it could come before it.
    fn subject(&mut self, frame: &Frame) -> Option<String> {
        match frame.request_id() {
            Some(request) if frame.session_id().is_none() => self.asked.remove(request),
            _ => frame.session_id().map(Cow::into_owned),
        }
    }

    fn on_answer(&mut self, frame: &Frame) {
        let waiting = self.answered(frame.id().unwrap_or("null"));
        let session = match waiting {
            Some(Waiting::Hello(answer)) => {
                // Whoever asked may be gone.
                let _ = answer.send(frame.clone());
                return;
            }
            Some(Waiting::Retelling(session, number)) => {
                return self.with(Some(&session), |it| it.retold(&session, number, frame));
            }
            Some(Waiting::Client(session)) => session,
            None => None,
        };
        if let Some(opened) = frame.session_id() {
            // It is there before anyone can ask for it.
            self.make_room(&opened);
        }
        let session = session.filter(|it| self.sessions.contains_key(it));
        if let (Some(_), Some(seq)) = (&session, message::reached(frame)) {
            self.with(session.as_deref(), |it| it.reached(seq));
        }
        self.push(session.as_deref(), frame.bytes().clone(), None);
    }

    fn push(&mut self, session: Option<&str>, text: Bytes, seq: Option<u64>) {
        match session.filter(|it| self.make_room(it)) {
            Some(session) => self.with(Some(session), |it| it.push(text, seq)),
            None => self.with(None, |it| it.push_counted(text)),
        }
    }

    /// Sees to it that a session has a stream; false if there are too many already.
    fn make_room(&mut self, session: &str) -> bool {
        if self.sessions.contains_key(session) {
            return true;
        }
        if SESSIONS_MAX <= self.sessions.len() {
            let idle = self.sessions.iter().filter(|(_, it)| it.is_idle());
            let oldest = idle.min_by_key(|(_, it)| it.used).map(|(name, _)| name.clone());
            let Some(oldest) = oldest else { return false };
            self.sessions.remove(&oldest);
        }
        self.sessions.insert(session.to_owned(), Stream::default());
        true
    }

    /// Does something with a stream, and counts whether it is full afterwards.
    fn with<T: Default>(&mut self, session: Option<&str>, act: impl FnOnce(&mut Stream) -> T) -> T {
        self.clock += 1;
        let stream = match session {
            Some(session) => self.sessions.get_mut(session),
            None => Some(&mut self.own),
        };
        let Some(stream) = stream else { return T::default() };
        stream.used = self.clock;
        let before = stream.is_full();
        let done = act(stream);
        match (before, stream.is_full()) {
            (false, true) => self.full += 1,
            (true, false) => self.full -= 1,
            _ => {}
        }
        done
    }

    /// Somebody comes to read a stream, perhaps with the id of the last event it has. `None` if
    /// there is no place for another stream.
    pub(super) fn enter(&mut self, session: Option<&str>, last: Option<&str>) -> Option<Entered> {
        if session.is_some_and(|it| !self.make_room(it)) {
            return None;
        }
        let number = self.with(session, Stream::enter);
        let known = last.is_none_or(|last| self.with(session, |it| it.rewind(last)));
        let mut ask = None;
        if let Some(last) = last.filter(|_| !known) {
            if let Some(session) = session {
                let number = self.retellings + 1;
                ask = self.with(Some(session), |it| it.retell(session, last, number));
                if ask.is_some() {
                    self.retellings = number;
                    self.wait(&our_id(number), Waiting::Retelling(session.to_owned(), number));
                }
            }
            if ask.is_none() {
                let why = "the last event you have is not one of this stream, or is too old";
                self.push(session, message::gap(session, last, why), None);
            }
        }
        Some(Entered { number, ask })
    }

    pub(super) fn leave(&mut self, session: Option<&str>, number: u64) {
        self.with(session, |it| it.leave(number));
    }

    /// The next piece of a stream for one reader; `None` if the stream is there no longer.
    pub(super) fn take(
        &mut self,
        session: Option<&str>,
        number: u64,
        waker: &Waker,
    ) -> Option<Piece> {
        let show = |at: Cursor| match session {
            Some(_) => at.to_string(),
            None => at.seq.to_string(),
        };
        self.with(session, |it| Some(it.take(number, waker, show)))
    }

    /// Some stream is full: the hub should not be read on.
    pub(super) fn is_full(&self) -> bool {
        0 < self.full
    }

    /// A full stream has nobody to read it.
    pub(super) fn is_stuck(&self) -> bool {
        self.is_full() && self.streams().any(|it| it.is_full() && !it.has_reader())
    }

    pub(super) fn has_readers(&self) -> bool {
        self.streams().any(Stream::has_reader)
    }

    fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.sessions.values().chain([&self.own])
    }

    /// Every reader should look again.
    pub(super) fn wake_all(&mut self) {
        self.sessions.values_mut().chain([&mut self.own]).for_each(Stream::wake);
    }
}

/// How a request comes to a session, if it does.
fn manner(frame: &Frame) -> Option<Manner> {
    match frame.method()?.as_ref() {
        "session/load" | "session/resume" => Some(Manner::default()),
        "_jackfield/attach" => {
            let params: Value = serde_json::from_str(frame.params()?).ok()?;
            let flag = |name: &str| params[name].as_bool().unwrap_or(false);
            Some(Manner { observe: flag("observe"), facts: flag("facts") })
        }
        _ => None,
    }
}

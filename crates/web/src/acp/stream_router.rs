//! Routes the messages of one connection over HTTP to its streams. It does no I/O.
//!
//! Messages that name a session go to the session's stream, and so do responses to the client's
//! requests about a session. Everything else goes to the stream of the connection.

use super::cursor::Cursor;
use super::limits::SESSIONS_MAX;
use super::message;
use super::sse_stream::{SseStream, StreamAttachOptions, StreamChunk, replay_request_id};
use bytes::Bytes;
use jackfield_protocol::{Frame, Kind, acp::Method};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::task::Waker;
use tokio::sync::oneshot;

#[derive(Debug, Default)]
pub(super) struct StreamRouter {
    own: SseStream,
    sessions: BTreeMap<String, SseStream>,
    /// Pending responses of the hub by id as JSON text. A client that uses an id twice gets two
    /// responses.
    pending: HashMap<Box<str>, VecDeque<PendingResponse>>,
    /// The sessions of the hub's requests by id, because their cancellation names no session.
    sessions_of_requests: HashMap<Box<str>, String>,
    /// The number of full streams.
    full_count: usize,
    clock: u64,
    replay_count: u64,
}

/// The receiver of a response.
#[derive(Debug)]
enum PendingResponse {
    /// The client, in the stream of this session or in that of the connection.
    Client(Option<String>),
    /// The request that opened the connection.
    Initialize(oneshot::Sender<Frame>),
    /// The replay of a session's stream.
    Replay(String, u64),
}

/// The number of a new reader, and the request to the hub for its replay.
#[derive(Debug)]
pub(super) struct ReaderRegistration {
    pub(super) number: u64,
    pub(super) replay_request: Option<Frame>,
}

impl StreamRouter {
    /// The client's `initialize`, whose response does not go to a stream.
    pub(super) fn on_initialize(&mut self, id: &str) -> oneshot::Receiver<Frame> {
        let (answer, answered) = oneshot::channel();
        self.add_pending(id, PendingResponse::Initialize(answer));
        answered
    }

    /// A message of the client about this session or none.
    pub(super) fn on_posted(&mut self, frame: &Frame, session: Option<String>) {
        let id = frame.id().unwrap_or("null");
        match frame.kind() {
            Kind::Request => {
                if let Some(stream) = session.as_ref().and_then(|it| self.sessions.get_mut(it))
                    && let Some(options) = attach_options(frame)
                {
                    stream.set_attach_options(options);
                }
                self.add_pending(id, PendingResponse::Client(session));
            }
            Kind::Response => drop(self.sessions_of_requests.remove(id)),
            Kind::Notification => {}
        }
    }

    fn add_pending(&mut self, id: &str, receiver: PendingResponse) {
        self.pending.entry(id.into()).or_default().push_back(receiver);
    }

    fn take_pending(&mut self, id: &str) -> Option<PendingResponse> {
        let queue = self.pending.get_mut(id)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.pending.remove(id);
        }
        first
    }

    /// A message of the hub.
    pub(super) fn on_hub_frame(&mut self, line: Bytes) {
        let Ok(frame) = Frame::parse(line.clone()) else {
            // A notification may be nested deeper than a frame. Clients that asked for
            // notifications accept them in any stream.
            return self.push(None, line, None);
        };
        match frame.kind() {
            Kind::Response => self.on_response(&frame),
            Kind::Request | Kind::Notification => {
                let session = self.session_of(&frame);
                if let (Some(id), Some(session)) = (frame.id(), &session) {
                    self.sessions_of_requests.insert(id.into(), session.clone());
                }
                let seq = message::sequence_number(&frame);
                self.push(session.as_deref(), line, seq);
            }
        }
    }

    /// The session of a call of the hub. A cancellation goes to the stream of its request, because
    /// in another stream it could arrive earlier.
    fn session_of(&mut self, frame: &Frame) -> Option<String> {
        match frame.request_id() {
            Some(request) if frame.session_id().is_none() => {
                self.sessions_of_requests.remove(request)
            }
            _ => frame.session_id().map(Cow::into_owned),
        }
    }

    fn on_response(&mut self, frame: &Frame) {
        let receiver = self.take_pending(frame.id().unwrap_or("null"));
        let session = match receiver {
            Some(PendingResponse::Initialize(answer)) => {
                // The request may have been dropped.
                let _ = answer.send(frame.clone());
                return;
            }
            Some(PendingResponse::Replay(session, number)) => {
                return self
                    .with_stream(Some(&session), |it| it.finish_replay(&session, number, frame));
            }
            Some(PendingResponse::Client(session)) => session,
            None => None,
        };
        if let Some(opened) = frame.session_id() {
            // The stream exists before a reader can ask for it.
            self.ensure_stream(&opened);
        }
        let session = session.filter(|it| self.sessions.contains_key(it));
        if let (Some(_), Some(seq)) = (&session, message::attached_at(frame)) {
            self.with_stream(session.as_deref(), |it| it.advance_to(seq));
        }
        self.push(session.as_deref(), frame.bytes().clone(), None);
    }

    fn push(&mut self, session: Option<&str>, text: Bytes, seq: Option<u64>) {
        match session.filter(|it| self.ensure_stream(it)) {
            Some(session) => self.with_stream(Some(session), |it| it.push(text, seq)),
            None => self.with_stream(None, |it| it.push_counted(text)),
        }
    }

    /// Ensures that a session has a stream. Returns `false` if there are too many.
    fn ensure_stream(&mut self, session: &str) -> bool {
        if self.sessions.contains_key(session) {
            return true;
        }
        if SESSIONS_MAX <= self.sessions.len() {
            let idle = self.sessions.iter().filter(|(_, it)| it.is_idle());
            let oldest = idle.min_by_key(|(_, it)| it.last_used).map(|(name, _)| name.clone());
            let Some(oldest) = oldest else { return false };
            self.sessions.remove(&oldest);
        }
        self.sessions.insert(session.to_owned(), SseStream::default());
        true
    }

    /// Applies a function to a stream and updates the count of full streams.
    fn with_stream<T: Default>(
        &mut self,
        session: Option<&str>,
        act: impl FnOnce(&mut SseStream) -> T,
    ) -> T {
        self.clock += 1;
        let stream = match session {
            Some(session) => self.sessions.get_mut(session),
            None => Some(&mut self.own),
        };
        let Some(stream) = stream else { return T::default() };
        stream.last_used = self.clock;
        let was_full = stream.is_full();
        let result = act(stream);
        match (was_full, stream.is_full()) {
            (false, true) => self.full_count += 1,
            (true, false) => self.full_count -= 1,
            _ => {}
        }
        result
    }

    /// Adds a reader of a stream, which may have the id of its last event. `None` if there are too
    /// many streams.
    pub(super) fn add_reader(
        &mut self,
        session: Option<&str>,
        last: Option<&str>,
    ) -> Option<ReaderRegistration> {
        if session.is_some_and(|it| !self.ensure_stream(it)) {
            return None;
        }
        let number = self.with_stream(session, SseStream::add_reader);
        let is_retained = last.is_none_or(|last| self.with_stream(session, |it| it.rewind(last)));
        let mut replay_request = None;
        if let Some(last) = last.filter(|_| !is_retained) {
            replay_request = session.and_then(|it| self.start_replay(it, last));
            if replay_request.is_none() {
                let why = "the last event id is not from this stream, or is too old";
                self.push(session, message::gap_notification(session, last, why), None);
            }
        }
        Some(ReaderRegistration { number, replay_request })
    }

    /// Starts a replay of a session's stream. Returns the request to the hub.
    fn start_replay(&mut self, session: &str, last: &str) -> Option<Frame> {
        let number = self.replay_count + 1;
        let request =
            self.with_stream(Some(session), |it| it.start_replay(session, last, number))?;
        self.replay_count = number;
        self.add_pending(
            &replay_request_id(number),
            PendingResponse::Replay(session.to_owned(), number),
        );
        Some(request)
    }

    pub(super) fn remove_reader(&mut self, session: Option<&str>, number: u64) {
        self.with_stream(session, |it| it.remove_reader(number));
    }

    /// The next chunk of a stream for one reader; `None` if the stream was removed.
    pub(super) fn take_chunk(
        &mut self,
        session: Option<&str>,
        number: u64,
        waker: &Waker,
    ) -> Option<StreamChunk> {
        let format_id = |at: Cursor| match session {
            Some(_) => at.to_string(),
            None => at.seq.to_string(),
        };
        self.with_stream(session, |it| Some(it.take_chunk(number, waker, format_id)))
    }

    /// Whether a stream is full, so that the hub should not be read.
    pub(super) fn is_full(&self) -> bool {
        0 < self.full_count
    }

    /// Whether a full stream has no reader.
    pub(super) fn is_stuck(&self) -> bool {
        self.is_full() && self.streams().any(|it| it.is_full() && !it.has_reader())
    }

    pub(super) fn has_readers(&self) -> bool {
        self.streams().any(SseStream::has_reader)
    }

    fn streams(&self) -> impl Iterator<Item = &SseStream> {
        self.sessions.values().chain([&self.own])
    }

    /// Wakes every reader.
    pub(super) fn wake_all(&mut self) {
        self.sessions.values_mut().chain([&mut self.own]).for_each(SseStream::wake);
    }
}

/// The options of a request that attaches to a session; `None` for other requests.
fn attach_options(frame: &Frame) -> Option<StreamAttachOptions> {
    match frame.known_method()? {
        Method::SessionLoad | Method::SessionResume => Some(StreamAttachOptions::default()),
        Method::ControlAttach => {
            let params: Value = serde_json::from_str(frame.params()?).ok()?;
            let flag = |name: &str| params[name].as_bool().unwrap_or(false);
            Some(StreamAttachOptions { observe: flag("observe"), facts: flag("facts") })
        }
        _ => None,
    }
}

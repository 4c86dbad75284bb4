//! One event stream of a connection over HTTP: its buffered frames and its reader.

use super::cursor::Cursor;
use super::journal_replay::JournalReplay;
use super::limits::CHUNK_BYTES;
use super::message;
use super::stream_buffer::StreamBuffer;
use bytes::Bytes;
use jackfield_protocol::{Frame, acp::Method, sse};
use serde_json::{Value, json};
use std::task::Waker;

#[derive(Debug, Default)]
pub(super) struct SseStream {
    buffer: StreamBuffer,
    /// The replay in progress, and the number of its request to the hub.
    replay: Option<(u64, JournalReplay)>,
    reader: Option<StreamReader>,
    /// The number of readers so far.
    reader_count: u64,
    /// How the client attached, if it used our own method.
    attach_options: StreamAttachOptions,
    /// When it was last used, to choose which stream to remove.
    pub(super) last_used: u64,
}

#[derive(Debug)]
struct StreamReader {
    number: u64,
    waker: Option<Waker>,
}

/// The options of `_jackfield/attach`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StreamAttachOptions {
    pub(super) observe: bool,
    pub(super) facts: bool,
}

/// The result of reading a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamChunk {
    Bytes(Bytes),
    /// Nothing now; the waker will be woken.
    Nothing,
    /// Another reader has taken over the stream.
    TakenOver,
}

impl SseStream {
    /// Adds a frame of the connection itself.
    pub(super) fn push_counted(&mut self, text: Bytes) {
        self.buffer.push_counted(text);
        self.wake();
    }

    /// Adds a frame of the stream's session, which has this sequence number or none.
    pub(super) fn push(&mut self, text: Bytes, seq: Option<u64>) {
        match &mut self.replay {
            Some((_, replay)) => replay.on_frame(&mut self.buffer, text, seq),
            None => self.buffer.push(text, seq),
        }
        self.wake();
    }

    /// The client has attached and received the log up to this sequence number.
    pub(super) fn advance_to(&mut self, seq: u64) {
        if self.replay.is_none() {
            self.buffer.advance_to(seq);
        }
    }

    pub(super) fn set_attach_options(&mut self, options: StreamAttachOptions) {
        self.attach_options = options;
    }

    /// Adds a reader, which takes over the stream: a previous reader has lost its connection, or
    /// there should be only one.
    pub(super) fn add_reader(&mut self) -> u64 {
        self.wake();
        self.reader_count += 1;
        self.reader = Some(StreamReader { number: self.reader_count, waker: None });
        self.reader_count
    }

    pub(super) fn remove_reader(&mut self, number: u64) {
        self.reader.take_if(|it| it.number == number);
    }

    /// Continues after the reader's last event. Returns `false` if that is no longer retained.
    pub(super) fn rewind(&mut self, last: &str) -> bool {
        Cursor::parse(last).is_some_and(|at| self.buffer.rewind(at))
    }

    /// Starts a replay of what follows the reader's last event. Returns the request to the hub with
    /// this number; `None` if the event id is invalid.
    pub(super) fn start_replay(&mut self, session: &str, last: &str, number: u64) -> Option<Frame> {
        let at = Cursor::parse(last)?;
        if let Some((_, older)) = self.replay.take() {
            older.finish(&mut self.buffer);
        }
        let (replay, has_gap) = JournalReplay::begin(&mut self.buffer, at);
        if has_gap {
            let why = "a response or a request is no longer retained";
            self.buffer.push(message::gap_notification(Some(session), last, why), None);
        }
        let StreamAttachOptions { observe, facts } = self.attach_options;
        let after = replay.after();
        let params =
            json!({ "sessionId": session, "after": after, "observe": observe, "facts": facts });
        self.replay = Some((number, replay));
        Some(Frame::request(
            &replay_request_id(number),
            Method::ControlAttach.name(),
            &params.to_string(),
        ))
    }

    /// Ends a replay after the hub's response, which may be an error.
    pub(super) fn finish_replay(&mut self, session: &str, number: u64, answer: &Frame) {
        let Some((_, replay)) = self.replay.take_if(|it| it.0 == number) else { return };
        let from = replay.from();
        replay.finish(&mut self.buffer);
        if let Some(why) = find_replay_gap(answer, from) {
            let gap = message::gap_notification(Some(session), &from.to_string(), &why);
            self.buffer.push(gap, None);
        }
        self.wake();
    }

    /// The next chunk of events; `format_id` formats their ids.
    pub(super) fn take_chunk(
        &mut self,
        number: u64,
        waker: &Waker,
        format_id: impl Fn(Cursor) -> String,
    ) -> StreamChunk {
        let Some(reader) = self.reader.as_mut().filter(|it| it.number == number) else {
            return StreamChunk::TakenOver;
        };
        let mut chunk = Vec::new();
        while chunk.len() < CHUNK_BYTES {
            let Some(entry) = self.buffer.take_frame() else { break };
            // The hub sends only text.
            let text = std::str::from_utf8(&entry.text).unwrap_or_default();
            sse::encode_event(&mut chunk, Some(&format_id(entry.at)), None, text);
        }
        if chunk.is_empty() {
            reader.waker = Some(waker.clone());
            return StreamChunk::Nothing;
        }
        StreamChunk::Bytes(chunk.into())
    }

    pub(super) fn has_reader(&self) -> bool {
        self.reader.is_some()
    }

    pub(super) fn is_full(&self) -> bool {
        self.buffer.is_full()
    }

    /// Whether it can be removed.
    pub(super) fn is_idle(&self) -> bool {
        !self.has_reader() && !self.buffer.has_unread() && self.replay.is_none()
    }

    /// Wakes the reader for new frames or the end.
    pub(super) fn wake(&mut self) {
        if let Some(waker) = self.reader.as_mut().and_then(|it| it.waker.take()) {
            waker.wake();
        }
    }
}

/// The id of a replay request, which clients must not use.
pub(super) fn replay_request_id(number: u64) -> String {
    format!(r#""jackfield-front-{number}""#)
}

/// Why a replay is incomplete; `None` if it is complete.
fn find_replay_gap(answer: &Frame, from: Cursor) -> Option<String> {
    if let Some(error) = answer.error() {
        let error: Value = serde_json::from_str(error).unwrap_or_default();
        return Some(error["message"].as_str().unwrap_or("the hub failed to replay it").to_owned());
    }
    let result: Value = serde_json::from_str(answer.result()?).ok()?;
    let head = result["head"].as_u64()?;
    (head < from.seq).then(|| format!("the log ends at {head}"))
}

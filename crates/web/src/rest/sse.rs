//! Answers that go on: chunks that a task makes as fast as the reader takes them.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::Stream;
use jackfield_protocol::sse;
use serde::Serialize;
use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use tokio::sync::mpsc;
use utoipa::ToSchema;

/// A comment is sent when nothing else was for so long: proxies cut what is silent.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Events that follow each other at once travel together, up to so many bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks that wait for the reader. Then the writer waits, and so does whoever it reads from.
const CHUNKS_MAX: usize = 2;

/// The reader has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left;

/// One server-sent event.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "this describes what `Writer::event` writes, for readers of the API")]
pub(crate) struct ServerEvent {
    /// Given back as `Last-Event-ID`, it gets what follows.
    id: Option<String>,
    event: Option<String>,
    /// JSON.
    #[schema(content_media_type = "application/json")]
    data: String,
}

/// What a task writes to.
#[derive(Debug)]
pub(crate) struct Writer {
    chunks: mpsc::Sender<Bytes>,
    held: Vec<u8>,
}

/// Both ends of an answer.
pub(crate) fn channel() -> (Writer, Chunks) {
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    (Writer { chunks: sender, held: Vec::new() }, Chunks(receiver))
}

impl Writer {
    /// Adds an event; it is sent with the next [`Writer::flush`].
    pub(crate) fn event(&mut self, id: Option<&str>, event: Option<&str>, data: &impl Serialize) {
        let data = serde_json::to_string(data).expect("what we send is plain data");
        sse::encode_event(&mut self.held, id, event, &data);
    }

    /// Adds a line.
    pub(crate) fn line(&mut self, line: &str) {
        self.held.extend_from_slice(line.as_bytes());
        self.held.push(b'\n');
    }

    /// Enough is held to be worth a chunk, whatever comes next.
    pub(crate) fn is_full(&self) -> bool {
        CHUNK_BYTES <= self.held.len()
    }

    /// Sends what is held, as soon as the reader takes it.
    pub(crate) async fn flush(&mut self) -> Result<(), Left> {
        if self.held.is_empty() {
            return Ok(());
        }
        let chunk = Bytes::from(std::mem::take(&mut self.held));
        self.chunks.send(chunk).await.map_err(|_| Left)
    }

    pub(crate) async fn keep_alive(&mut self) -> Result<(), Left> {
        sse::encode_comment(&mut self.held, "keepalive");
        self.flush().await
    }

    /// Returns when the reader has left.
    pub(crate) async fn left(&self) -> Left {
        self.chunks.closed().await;
        Left
    }
}

/// What the reader gets.
#[derive(Debug)]
pub(crate) struct Chunks(mpsc::Receiver<Bytes>);

impl Stream for Chunks {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|it| it.map(Ok))
    }
}

impl Chunks {
    /// An answer of events.
    pub(crate) fn events(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-store, no-transform"),
            (header::CONNECTION, "keep-alive"),
            (HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        self.answer(headers)
    }

    /// An answer of lines of JSON.
    pub(crate) fn lines(self) -> Response {
        self.answer([(header::CONTENT_TYPE, "application/x-ndjson")])
    }

    fn answer<const N: usize>(self, headers: [(HeaderName, &'static str); N]) -> Response {
        let pairs = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        (HeaderMap::from_iter(pairs), Body::from_stream(self)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_writer_waits_for_its_reader_and_hears_when_it_has_left() {
        let (mut writer, chunks) = channel();
        for _ in 0..CHUNKS_MAX {
            writer.event(Some("1"), Some("agent"), &"x");
            writer.flush().await.unwrap();
        }
        writer.event(None, None, &"late");
        let flushed = tokio::time::timeout(Duration::from_millis(20), writer.flush()).await;
        assert!(flushed.is_err(), "nobody has read yet");
        drop(chunks);
        assert_eq!(writer.left().await, Left);
        writer.event(None, None, &"later");
        assert_eq!(writer.flush().await, Err(Left));
    }
}

//! Streaming responses: a task writes chunks as fast as the client reads them.

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

/// After this much silence a comment is sent, because proxies close silent connections.
pub(crate) const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Consecutive events are sent in one chunk of up to this many bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// The number of chunks that wait for the client before the writer waits.
const CHUNKS_MAX: usize = 2;

/// The client has disconnected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReaderDisconnected;

/// One server-sent event.
#[derive(Debug, ToSchema)]
#[expect(
    dead_code,
    reason = "it describes the output of `ChunkWriter::write_event` in the API document"
)]
pub(crate) struct ServerEvent {
    /// Sent as `Last-Event-ID`, it resumes the stream after this event.
    id: Option<String>,
    event: Option<String>,
    /// JSON.
    #[schema(content_media_type = "application/json")]
    data: String,
}

/// The sending half, used by a task.
#[derive(Debug)]
pub(crate) struct ChunkWriter {
    chunks: mpsc::Sender<Bytes>,
    buffer: Vec<u8>,
}

/// Creates both halves of a streaming response.
pub(crate) fn chunk_channel() -> (ChunkWriter, ChunkStream) {
    let (sender, receiver) = mpsc::channel(CHUNKS_MAX);
    (ChunkWriter { chunks: sender, buffer: Vec::new() }, ChunkStream(receiver))
}

impl ChunkWriter {
    /// Buffers an event until the next [`ChunkWriter::flush`].
    pub(crate) fn write_event(
        &mut self,
        id: Option<&str>,
        event: Option<&str>,
        data: &impl Serialize,
    ) {
        let data = serde_json::to_string(data).expect("plain data serializes");
        sse::encode_event(&mut self.buffer, id, event, &data);
    }

    /// Buffers an event whose data is JSON text.
    pub(crate) fn write_json_event(&mut self, id: Option<&str>, event: &str, data: &str) {
        sse::encode_event(&mut self.buffer, id, Some(event), data);
    }

    /// Buffers events that are already encoded.
    pub(crate) fn write_encoded(&mut self, events: &[u8]) {
        self.buffer.extend_from_slice(events);
    }

    /// Buffers a line.
    pub(crate) fn write_line(&mut self, line: &str) {
        self.buffer.extend_from_slice(line.as_bytes());
        self.buffer.push(b'\n');
    }

    /// Whether the buffer has reached the size of a chunk.
    pub(crate) fn is_full(&self) -> bool {
        CHUNK_BYTES <= self.buffer.len()
    }

    /// Sends the buffer as soon as the client has capacity.
    pub(crate) async fn flush(&mut self) -> Result<(), ReaderDisconnected> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let chunk = Bytes::from(std::mem::take(&mut self.buffer));
        self.chunks.send(chunk).await.map_err(|_| ReaderDisconnected)
    }

    pub(crate) async fn keep_alive(&mut self) -> Result<(), ReaderDisconnected> {
        sse::encode_comment(&mut self.buffer, "keepalive");
        self.flush().await
    }

    /// Waits until the client has disconnected.
    pub(crate) async fn wait_disconnected(&self) -> ReaderDisconnected {
        self.chunks.closed().await;
        ReaderDisconnected
    }
}

/// The receiving half: the body of the response.
#[derive(Debug)]
pub(crate) struct ChunkStream(mpsc::Receiver<Bytes>);

impl Stream for ChunkStream {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(cx).map(|it| it.map(Ok))
    }
}

impl ChunkStream {
    /// A response with server-sent events.
    pub(crate) fn into_event_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-store, no-transform"),
            (header::CONNECTION, "keep-alive"),
            (HeaderName::from_static("x-accel-buffering"), "no"),
        ];
        self.into_response_with(headers)
    }

    /// A response with lines of JSON.
    pub(crate) fn into_ndjson_response(self) -> Response {
        self.into_response_with([(header::CONTENT_TYPE, "application/x-ndjson")])
    }

    fn into_response_with<const N: usize>(
        self,
        headers: [(HeaderName, &'static str); N],
    ) -> Response {
        let pairs = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        (HeaderMap::from_iter(pairs), Body::from_stream(self)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn writer_waits_for_the_client_and_notices_its_disconnect() {
        let (mut writer, chunks) = chunk_channel();
        for _ in 0..CHUNKS_MAX {
            writer.write_event(Some("1"), Some("agent"), &"x");
            writer.flush().await.unwrap();
        }
        writer.write_event(None, None, &"late");
        let flushed = tokio::time::timeout(Duration::from_millis(20), writer.flush()).await;
        assert!(flushed.is_err(), "the client has not read yet");
        drop(chunks);
        assert_eq!(writer.wait_disconnected().await, ReaderDisconnected);
        writer.write_event(None, None, &"later");
        assert_eq!(writer.flush().await, Err(ReaderDisconnected));
    }
}

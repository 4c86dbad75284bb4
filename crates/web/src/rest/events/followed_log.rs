//! The log of a followed session, read for a stream by a task of its own.

use super::FollowedSession;
use crate::rest::{RestState, sessions::LogEvent};
use jackfield_hub_client::{EventLine, EventLog, HubClientError, LogEntry};
use jackfield_protocol::sse;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Consecutive events are sent together, up to this many bytes.
const CHUNK_BYTES: usize = 64 * 1024;

/// What a task has read.
#[derive(Debug)]
pub(super) enum LogChunk {
    /// Events as text of the stream.
    Events(Vec<u8>),
    /// The session does not exist.
    Gone(String),
    /// The hub is gone: the client has to connect again.
    Lost,
}

/// A task that reads a log. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct FollowedLog {
    _ends_task: oneshot::Sender<()>,
}

impl FollowedLog {
    /// Reads the log after the position of the client. The task waits while `chunks` is full.
    pub(super) fn start(
        state: Arc<RestState>,
        session: FollowedSession,
        chunks: mpsc::Sender<LogChunk>,
    ) -> FollowedLog {
        let (ends_task, ended) = oneshot::channel();
        tokio::spawn(async move {
            tokio::select! {
                () = run_reader(&state, session, &chunks) => {}
                _ = ended => {}
            }
        });
        FollowedLog { _ends_task: ends_task }
    }
}

async fn run_reader(state: &RestState, session: FollowedSession, chunks: &mpsc::Sender<LogChunk>) {
    let FollowedSession { session_id, after } = session;
    let Err(error) = read_log(state, &session_id, after, chunks).await else { return };
    let is_gone = error.error_name() == "session_not_found";
    let last = if is_gone { LogChunk::Gone(session_id) } else { LogChunk::Lost };
    // The stream may have ended.
    let _sent = chunks.send(last).await;
}

/// Reads until the stream ends, or returns why the log does.
async fn read_log(
    state: &RestState,
    session: &str,
    after: u64,
    chunks: &mpsc::Sender<LogChunk>,
) -> Result<(), HubClientError> {
    let mut log: EventLog = state.hub.open_log(session, after).await?;
    let mut buffer = Vec::new();
    loop {
        if let LogEntry::Event(event) = log.next_entry().await? {
            write_event(&mut buffer, session, &event);
        }
        let is_due = CHUNK_BYTES <= buffer.len() || !log.has_buffered();
        if is_due && !buffer.is_empty() {
            let chunk = LogChunk::Events(std::mem::take(&mut buffer));
            if chunks.send(chunk).await.is_err() {
                return Ok(());
            }
        }
    }
}

fn write_event(buffer: &mut Vec<u8>, session: &str, line: &EventLine) {
    let Some(event) = LogEvent::parse(line.to_journal_text()) else { return };
    let data = format!(r#"{{"sessionId":{},"event":{}}}"#, Value::from(session), event.text());
    sse::encode_event(buffer, None, Some("log"), &data);
}

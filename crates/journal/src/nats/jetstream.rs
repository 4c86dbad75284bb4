//! Requests to the NATS servers. Each method sends one request and does not retry, because only the
//! caller knows what an unknown outcome means.

use async_nats::{
    Client, HeaderMap, Request, StatusCode,
    jetstream::{
        self, Context, ErrorCode,
        message::StreamMessage,
        response::Response,
        stream::{Config, LastRawMessageErrorKind},
    },
};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use jackfield_nats_access::{NatsConnection, StartError};
use serde::Deserialize;
use serde_json::json;
use std::time::{Duration, SystemTime};

/// The timeout of one request: longer than a busy cluster needs, shorter than an election.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// The limits of one batch of log messages. A server returns up to 1,024 messages.
pub(super) const BATCH_MESSAGES_MAX: usize = 256;
pub(super) const BATCH_BYTES_MAX: usize = 4 << 20;

const EXPECTED_LAST_HEADER: &str = "Nats-Expected-Last-Subject-Sequence";

/// Why a request failed, or why its outcome is unknown.
#[derive(Debug, thiserror::Error)]
pub(super) enum NatsError {
    /// Another writer has published to the subject in the meantime. The message was not stored.
    #[error("another message was published to the subject")]
    Stale,
    /// Another message to the subject is in progress. The message was not stored.
    #[error("another message to the subject is in progress")]
    Busy,
    /// The server refuses the request, at least now. Nothing was done.
    #[error("the server refused the request: {0}")]
    Refused(String),
    /// The server did not answer, or its answer leaves the outcome open.
    #[error("{0}")]
    Unknown(String),
    /// A request to the object store of the archive failed.
    #[error("archive: {0}")]
    Archive(String),
}

impl From<object_store::Error> for NatsError {
    fn from(error: object_store::Error) -> NatsError {
        NatsError::Archive(error.to_string())
    }
}

fn unknown_outcome(error: impl std::fmt::Display) -> NatsError {
    NatsError::Unknown(error.to_string())
}

/// A message in a JetStream stream.
#[derive(Debug)]
pub(super) struct StoredMessage {
    /// Its sequence number in the JetStream stream.
    pub(super) position: u64,
    pub(super) subject: String,
    /// When it was stored, according to the clock of the server.
    pub(super) time: SystemTime,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl StoredMessage {
    pub(super) fn is_older_than(&self, age: Duration) -> bool {
        age <= self.age()
    }

    pub(super) fn age(&self) -> Duration {
        self.time.elapsed().unwrap_or_default()
    }
}

/// The size and the last position of a JetStream stream, according to its leader.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamExtent {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) last: u64,
}

#[derive(Deserialize)]
struct PublishAck {
    seq: u64,
}

#[derive(Clone)]
pub(super) struct JetStreamClient {
    client: Client,
    context: Context,
}

impl JetStreamClient {
    pub(super) fn new(client: Client) -> JetStreamClient {
        let mut context = jetstream::new(client.clone());
        context.set_timeout(REQUEST_TIMEOUT);
        JetStreamClient { client, context }
    }

    /// Creates a JetStream stream unless it exists. An existing one is not changed.
    pub(super) async fn ensure_stream(
        &self,
        connection: &NatsConnection,
        config: &Config,
    ) -> Result<(), StartError> {
        connection.ensure_stream(&self.context, config).await
    }

    /// Stores a message if `after` is the position of the last message of its subject. Returns the
    /// position of the new message.
    pub(super) async fn publish_message(
        &self,
        subject: String,
        mut headers: HeaderMap,
        body: Bytes,
        after: Option<u64>,
    ) -> Result<u64, NatsError> {
        if let Some(after) = after {
            headers.insert(EXPECTED_LAST_HEADER, after.to_string());
        }
        let request = Request::new().headers(headers).payload(body).timeout(Some(REQUEST_TIMEOUT));
        let response = self.client.send_request(subject, request).await.map_err(unknown_outcome)?;
        let response: Response<PublishAck> =
            serde_json::from_slice(&response.payload).map_err(unknown_outcome)?;
        match response {
            Response::Ok(ack) => Ok(ack.seq),
            Response::Err { error } => Err(match error.error_code() {
                ErrorCode::STREAM_WRONG_LAST_SEQUENCE => NatsError::Stale,
                ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT => NatsError::Busy,
                // During a leader change: the next leader may have the message.
                ErrorCode::CLUSTER_NOT_LEADER | ErrorCode::CLUSTER_NOT_AVAILABLE => {
                    unknown_outcome(error)
                }
                _ => NatsError::Refused(error.to_string()),
            }),
        }
    }

    /// Reads the last message of a subject from the leader, so it includes all acknowledged
    /// messages.
    pub(super) async fn read_last(
        &self,
        log: &str,
        subject: &str,
    ) -> Result<Option<StoredMessage>, NatsError> {
        let log = self.context.get_stream_no_info(log).await.map_err(unknown_outcome)?;
        match log.get_last_raw_message_by_subject(subject).await {
            Ok(message) => Ok(Some(message.into())),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(unknown_outcome(error)),
        }
    }

    /// Reads messages of a subject from a position on, up to both limits, from any replica: the
    /// latest messages may be missing. An empty result means that the replica has no more.
    pub(super) async fn read_batch(
        &self,
        log: &str,
        subject: &str,
        from: u64,
        count: usize,
        bytes_max: usize,
    ) -> Result<Vec<StoredMessage>, NatsError> {
        let inbox = self.client.new_inbox();
        let mut replies = self.client.subscribe(inbox.clone()).await.map_err(unknown_outcome)?;
        let request =
            json!({ "seq": from, "next_by_subj": subject, "batch": count, "max_bytes": bytes_max });
        let api_subject = format!("$JS.API.DIRECT.GET.{log}");
        let request = request.to_string().into();
        let published = self.client.publish_with_reply(api_subject, inbox, request).await;
        published.map_err(unknown_outcome)?;
        let mut messages = Vec::new();
        loop {
            let reply = tokio::time::timeout(REQUEST_TIMEOUT, replies.next()).await;
            let reply = reply.map_err(|_| unknown_outcome("no reply to a read request"))?;
            let reply = reply.ok_or_else(|| unknown_outcome("the connection was closed"))?;
            match reply.status {
                None => {
                    let message = StreamMessage::try_from(reply).map_err(unknown_outcome)?;
                    messages.push(message.into());
                }
                // No message at all. The end of a batch has status 204.
                Some(StatusCode::NOT_FOUND) => return Ok(messages),
                Some(status) if status.as_u16() == 204 => return Ok(messages),
                Some(StatusCode::NO_RESPONDERS) => {
                    return Err(unknown_outcome("no server serves reads of this stream"));
                }
                Some(status) => {
                    let description = reply.description.unwrap_or_default();
                    return Err(unknown_outcome(format!("{status} {description}")));
                }
            }
        }
    }

    /// Removes all messages of a subject except the last `keep`.
    pub(super) async fn purge_subject(
        &self,
        log: &str,
        subject: &str,
        keep: u64,
    ) -> Result<(), NatsError> {
        let log = self.context.get_stream_no_info(log).await.map_err(unknown_outcome)?;
        let purge = log.purge().filter(subject);
        let purged = if keep == 0 { purge.await } else { purge.keep(keep).await };
        purged.map(drop).map_err(unknown_outcome)
    }

    /// Removes all messages of a subject up to this position.
    pub(super) async fn purge_upto(
        &self,
        log: &str,
        subject: &str,
        position: u64,
    ) -> Result<(), NatsError> {
        let log = self.context.get_stream_no_info(log).await.map_err(unknown_outcome)?;
        log.purge().filter(subject).sequence(position + 1).await.map(drop).map_err(unknown_outcome)
    }

    /// Lists the subjects that match a pattern and have more than one message.
    pub(super) async fn list_backlogged_subjects(
        &self,
        log: &str,
        pattern: &str,
    ) -> Result<Vec<String>, NatsError> {
        let log = self.context.get_stream_no_info(log).await.map_err(unknown_outcome)?;
        let counts = log.info_with_subjects(pattern).await.map_err(unknown_outcome)?;
        let backlogged = counts.try_filter(|(_, count)| std::future::ready(1 < *count));
        let subjects = backlogged.map_ok(|(subject, _)| subject);
        subjects.try_collect().await.map_err(unknown_outcome)
    }

    pub(super) async fn read_extent(&self, log: &str) -> Result<StreamExtent, NatsError> {
        let info = self.context.get_stream(log).await.map_err(unknown_outcome)?;
        let state = &info.cached_info().state;
        let (messages, bytes) = (state.messages, state.bytes);
        Ok(StreamExtent { messages, bytes, last: state.last_sequence })
    }
}

impl From<StreamMessage> for StoredMessage {
    fn from(it: StreamMessage) -> StoredMessage {
        let (position, subject) = (it.sequence, it.subject.to_string());
        StoredMessage {
            position,
            subject,
            time: it.time.into(),
            headers: it.headers,
            body: it.payload,
        }
    }
}

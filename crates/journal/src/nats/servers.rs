//! What is asked of the NATS servers, and what they answer. One request each, no second tries: who asks
//! knows what an unknown outcome means.

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
use jackfield_nats_access::{Connection, StartError};
use serde::Deserialize;
use serde_json::json;
use std::time::{Duration, SystemTime};

/// How long one request may take. Longer than a busy cluster needs, shorter than an election.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Messages of logs asked for at once. A server answers with up to 1,024.
pub(super) const BATCH: usize = 256;
pub(super) const BATCH_BYTES: usize = 4 << 20;

const EXPECTED_LAST: &str = "Nats-Expected-Last-Subject-Sequence";

/// Why a request was not done, or is not known to be.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// Somebody else has written to the subject since: not done.
    #[error("the subject has moved on")]
    Stale,
    /// Another message to the subject is under way: not done.
    #[error("the subject is busy")]
    Busy,
    /// The server will not do it, now at least: not done.
    #[error("the server refused: {0}")]
    Refused(String),
    /// No answer came, or none that says whether it was done.
    #[error("{0}")]
    Unknown(String),
    /// The same of the object store that the archive is in.
    #[error("the archive: {0}")]
    Archive(String),
}

impl From<object_store::Error> for Trouble {
    fn from(error: object_store::Error) -> Trouble {
        Trouble::Archive(error.to_string())
    }
}

fn unknown(error: impl std::fmt::Display) -> Trouble {
    Trouble::Unknown(error.to_string())
}

/// A message as a server has it.
#[derive(Debug)]
pub(super) struct Stored {
    /// Its place in the JetStream stream.
    pub(super) at: u64,
    pub(super) subject: String,
    /// When it was stored, by the clock of the server.
    pub(super) time: SystemTime,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Stored {
    pub(super) fn is_older_than(&self, age: Duration) -> bool {
        age <= self.age()
    }

    pub(super) fn age(&self) -> Duration {
        self.time.elapsed().unwrap_or_default()
    }
}

/// What a JetStream stream holds, as its leader knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) last: u64,
}

#[derive(Deserialize)]
struct Ack {
    seq: u64,
}

#[derive(Clone)]
pub(super) struct Servers {
    client: Client,
    context: Context,
}

impl Servers {
    pub(super) fn new(client: Client) -> Servers {
        let mut context = jetstream::new(client.clone());
        context.set_timeout(REQUEST_TIMEOUT);
        Servers { client, context }
    }

    /// Makes sure of a stream. One that is there is left as it is.
    pub(super) async fn ensure(
        &self,
        connection: &Connection,
        config: &Config,
    ) -> Result<(), StartError> {
        connection.ensure_stream(&self.context, config).await
    }

    /// Stores a message if `after` is the place of the last one of its subject; returns its own.
    pub(super) async fn publish(
        &self,
        subject: String,
        mut headers: HeaderMap,
        body: Bytes,
        after: Option<u64>,
    ) -> Result<u64, Trouble> {
        if let Some(after) = after {
            headers.insert(EXPECTED_LAST, after.to_string());
        }
        let request = Request::new().headers(headers).payload(body).timeout(Some(REQUEST_TIMEOUT));
        let answer = self.client.send_request(subject, request).await.map_err(unknown)?;
        match serde_json::from_slice::<Response<Ack>>(&answer.payload).map_err(unknown)? {
            Response::Ok(ack) => Ok(ack.seq),
            Response::Err { error } => Err(match error.error_code() {
                ErrorCode::STREAM_WRONG_LAST_SEQUENCE => Trouble::Stale,
                ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT => Trouble::Busy,
                // Between two leaders: the next one may have it.
                ErrorCode::CLUSTER_NOT_LEADER | ErrorCode::CLUSTER_NOT_AVAILABLE => unknown(error),
                _ => Trouble::Refused(error.to_string()),
            }),
        }
    }

    /// The last message of a subject, as the leader has it: what was acknowledged is seen.
    pub(super) async fn last(&self, log: &str, subject: &str) -> Result<Option<Stored>, Trouble> {
        let log = self.context.get_stream_no_info(log).await.map_err(unknown)?;
        match log.get_last_raw_message_by_subject(subject).await {
            Ok(message) => Ok(Some(message.into())),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(unknown(error)),
        }
    }

    /// Messages of a subject from a place on, so many at most, from whichever server is near: the last
    /// ones may be missing. Empty: it has no more.
    pub(super) async fn batch(
        &self,
        log: &str,
        subject: &str,
        from: u64,
        count: usize,
        bytes_max: usize,
    ) -> Result<Vec<Stored>, Trouble> {
        let inbox = self.client.new_inbox();
        let mut answers = self.client.subscribe(inbox.clone()).await.map_err(unknown)?;
        let wanted =
            json!({ "seq": from, "next_by_subj": subject, "batch": count, "max_bytes": bytes_max });
        let asked = format!("$JS.API.DIRECT.GET.{log}");
        let wanted = wanted.to_string().into();
        self.client.publish_with_reply(asked, inbox, wanted).await.map_err(unknown)?;
        let mut found = Vec::new();
        loop {
            let answer = tokio::time::timeout(REQUEST_TIMEOUT, answers.next()).await;
            let answer = answer.map_err(|_| unknown("no answer to a read"))?;
            let answer = answer.ok_or_else(|| unknown("the connection was closed"))?;
            match answer.status {
                None => found.push(StreamMessage::try_from(answer).map_err(unknown)?.into()),
                // The end of the batch, or nothing at all.
                Some(StatusCode::NOT_FOUND) => return Ok(found),
                Some(status) if status.as_u16() == 204 => return Ok(found),
                Some(StatusCode::NO_RESPONDERS) => return Err(unknown("nobody serves reads")),
                Some(status) => {
                    let why = answer.description.unwrap_or_default();
                    return Err(unknown(format!("{status} {why}")));
                }
            }
        }
    }

    /// Removes all messages of a subject but the last few.
    pub(super) async fn purge(&self, log: &str, subject: &str, keep: u64) -> Result<(), Trouble> {
        let log = self.context.get_stream_no_info(log).await.map_err(unknown)?;
        let purge = log.purge().filter(subject);
        let purged = if keep == 0 { purge.await } else { purge.keep(keep).await };
        purged.map(drop).map_err(unknown)
    }

    /// Removes all messages of a subject up to this place.
    pub(super) async fn purge_upto(
        &self,
        log: &str,
        subject: &str,
        place: u64,
    ) -> Result<(), Trouble> {
        let log = self.context.get_stream_no_info(log).await.map_err(unknown)?;
        log.purge().filter(subject).sequence(place + 1).await.map(drop).map_err(unknown)
    }

    /// The subjects among these that have more than one message.
    pub(super) async fn crowded(&self, log: &str, subjects: &str) -> Result<Vec<String>, Trouble> {
        let log = self.context.get_stream_no_info(log).await.map_err(unknown)?;
        let counts = log.info_with_subjects(subjects).await.map_err(unknown)?;
        let crowded = counts.try_filter(|(_, count)| std::future::ready(1 < *count));
        crowded.map_ok(|(subject, _)| subject).try_collect().await.map_err(unknown)
    }

    pub(super) async fn extent(&self, log: &str) -> Result<Extent, Trouble> {
        let info = self.context.get_stream(log).await.map_err(unknown)?;
        let state = &info.cached_info().state;
        let (messages, bytes) = (state.messages, state.bytes);
        Ok(Extent { messages, bytes, last: state.last_sequence })
    }
}

impl From<StreamMessage> for Stored {
    fn from(it: StreamMessage) -> Stored {
        let (at, subject) = (it.sequence, it.subject.to_string());
        Stored { at, subject, time: it.time.into(), headers: it.headers, body: it.payload }
    }
}

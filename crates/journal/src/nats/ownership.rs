//! Ownership of logs. Each message contains the name of its writer, so the last message of a log
//! identifies the owner; after a release the log has no owner. A separate list contains the streams
//! of each owner, because other hosts must find them when the owner dies. The list may contain too
//! many streams, never too few.

use super::{
    NatsJournal, NatsStore,
    jetstream::NatsError,
    log::{LastMessage, RetryDeadline, invalid_append},
    message::{MessageKind, RecordHeader},
    summaries::{SUMMARIES_MAX, StreamPage, list_error},
};
use crate::{
    error::{AppendError, ReadError},
    record::{StoredEvent, validate_name},
    stream::StreamClaim,
};
use async_nats::HeaderMap;
use bytes::Bytes;
use std::{collections::BTreeMap, sync::Arc};

const BATCH_BYTES_MAX: usize = 1 << 20;

/// Adopts, releases and lists streams of a shared journal. Each call blocks until the servers
/// answer.
#[derive(Clone)]
pub struct StreamOwnership(Arc<NatsJournal>);

impl StreamOwnership {
    pub(crate) fn new(nats: Arc<NatsJournal>) -> StreamOwnership {
        StreamOwnership(nats)
    }

    /// Claims an existing stream, unless `is_alive` returns `true` for its owner.
    pub fn adopt_stream(
        &self,
        stream: &str,
        is_alive: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<AdoptedStream, AdoptError> {
        let (store, stream): (_, Arc<str>) = (self.0.store.clone(), stream.into());
        self.0.run_blocking(async move { store.adopt_stream(&stream, &is_alive).await })
    }

    /// Releases a stream that we own with this epoch. Does nothing if we do not own it.
    pub fn release_stream(&self, stream: &str, epoch: u64) -> Result<(), AppendError> {
        let (store, stream): (_, Arc<str>) = (self.0.store.clone(), stream.into());
        self.0.run_blocking(async move { store.release_stream(&stream, epoch).await })
    }

    pub fn last_writer(&self, stream: &str) -> Result<LastWriter, AdoptError> {
        let (store, stream): (_, Arc<str>) = (self.0.store.clone(), stream.into());
        self.0.run_blocking(async move { store.last_writer(&stream).await })
    }

    /// Lists `count` summaries before a position, most recently written first.
    pub fn list_page(&self, before: Option<u64>, count: usize) -> Result<StreamPage, ReadError> {
        let store = self.0.store.clone();
        self.0.run_blocking(async move { store.list_page(before, count).await })
    }

    /// Lists the summaries that were written at a position or after it, by stream name.
    pub fn list_since(&self, position: u64) -> Result<BTreeMap<Arc<str>, Bytes>, ReadError> {
        let store = self.0.store.clone();
        self.0.run_blocking(async move { store.list_since(position).await })
    }

    /// Reads the summary of a stream; empty if there is none.
    pub fn read_summary(&self, stream: &str) -> Result<Bytes, ReadError> {
        let (store, stream): (_, Arc<str>) = (self.0.store.clone(), stream.into());
        self.0.run_blocking(async move {
            let summary = || store.read_summary(&stream);
            RetryDeadline::new().retry(summary).await.map_err(list_error)
        })
    }

    /// Reads the events of a stream after `after`, up to both limits, without changing its owner.
    /// Empty if there are no more.
    pub fn read_events(
        &self,
        stream: &str,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        self.0.read_events(stream, after, events_max, bytes_max)
    }

    /// Lists the streams of an owner, and possibly some that it owned before. An owner may have the
    /// form `NAME/INCARNATION`; `NAME` alone lists the streams of all its incarnations.
    pub fn list_owned_by(&self, owner: &str) -> Result<Vec<Arc<str>>, ReadError> {
        let (store, owner) = (self.0.store.clone(), owner.to_owned());
        self.0.run_blocking(async move { store.list_owned_by(&owner).await })
    }
}

/// The last writer of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastWriter {
    /// `None` if the writer has no name.
    pub name: Option<String>,
    /// Whether it has released the stream.
    pub released: bool,
}

impl LastWriter {
    /// The writer, unless it has released the stream.
    pub fn owner(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| !self.released)
    }
}

/// A stream that was claimed from a dead owner or after a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdoptedStream {
    pub claim: StreamClaim,
    /// The last owner that appended to it, if it did not release it. Owners that claimed it since
    /// without appending do not count.
    pub from: Option<String>,
    pub summary: Bytes,
}

#[derive(Debug, Clone, thiserror::Error)]
pub enum AdoptError {
    #[error("stream `{stream}` belongs to `{owner}`, which is alive")]
    Owned { stream: Arc<str>, owner: String },

    #[error("stream `{stream}` does not exist")]
    Missing { stream: Arc<str> },

    #[error(transparent)]
    Claim(#[from] AppendError),
}

impl NatsStore {
    async fn adopt_stream(
        &self,
        stream: &Arc<str>,
        is_alive: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<AdoptedStream, AdoptError> {
        validate_name(stream).map_err(|source| invalid_append(stream, source))?;
        let adopted = || self.try_adopt_stream(stream, is_alive);
        RetryDeadline::new().retry(adopted).await.map_err(|it| claim_error(stream, it))?
    }

    async fn last_writer(&self, stream: &Arc<str>) -> Result<LastWriter, AdoptError> {
        let read = || self.read_last_message(stream);
        let last = RetryDeadline::new().retry(read).await;
        let last = last.map_err(|it| claim_error(stream, it))?;
        if !last.tail.exists {
            return Err(AdoptError::Missing { stream: stream.clone() });
        }
        Ok(LastWriter { name: last.writer, released: last.tail.released })
    }

    async fn try_adopt_stream(
        &self,
        stream: &Arc<str>,
        is_alive: &(dyn Fn(&str) -> bool + Sync),
    ) -> Result<Result<AdoptedStream, AdoptError>, NatsError> {
        let LastMessage { tail, writer, previous_owner } = self.read_last_message(stream).await?;
        if !tail.exists {
            // If the stream is still listed, its deletion was interrupted.
            if self.is_listed(stream).await? {
                self.delete_with_tail(stream, tail).await?;
            }
            return Ok(Err(AdoptError::Missing { stream: stream.clone() }));
        }
        let owner = writer.filter(|_| !tail.released);
        if let Some(owner) = owner.as_deref().filter(|it| is_alive(it)) {
            return Ok(Err(AdoptError::Owned { stream: stream.clone(), owner: owner.to_owned() }));
        }
        let not_ours = |it: &String| Some(it) != self.owner.as_ref();
        let from = previous_owner.or_else(|| owner.clone()).filter(not_ours);
        let claim = self.claim_with_tail(stream, tail, from.as_deref()).await?;
        if let Some(dead) = owner.filter(not_ours) {
            // If this fails, the list of the dead owner contains too many streams.
            let _ = self.remove_owned_entry(&dead, stream).await;
        }
        let summary = self.read_summary(stream).await?;
        Ok(Ok(AdoptedStream { claim, from, summary }))
    }

    pub(crate) async fn release_stream(
        &self,
        stream: &Arc<str>,
        epoch: u64,
    ) -> Result<(), AppendError> {
        let released = || self.try_release_stream(stream, epoch);
        RetryDeadline::new().retry(released).await.map_err(|it| claim_error(stream, it))
    }

    async fn try_release_stream(&self, stream: &Arc<str>, epoch: u64) -> Result<(), NatsError> {
        let tail = self.read_tail(stream).await?;
        if tail.exists && !tail.released && tail.epoch == epoch {
            let header =
                RecordHeader::without_events(stream, epoch, tail.head + 1, MessageKind::Release);
            self.publish_record(stream, header, Bytes::new(), tail.position).await?;
        }
        self.forget_stream(stream);
        self.remove_own_entry(stream).await
    }

    /// Adds a stream to our list, before we own it.
    pub(super) async fn add_owned_entry(&self, stream: &str) -> Result<(), NatsError> {
        let Some(owner) = &self.owner else { return Ok(()) };
        let subject = self.cell.owned_subject(owner, stream);
        self.jetstream
            .publish_message(subject, HeaderMap::new(), Bytes::new(), None)
            .await
            .map(drop)
    }

    /// Removes a stream from our list, after we owned it.
    pub(super) async fn remove_own_entry(&self, stream: &str) -> Result<(), NatsError> {
        let Some(owner) = &self.owner else { return Ok(()) };
        self.remove_owned_entry(owner, stream).await
    }

    async fn remove_owned_entry(&self, owner: &str, stream: &str) -> Result<(), NatsError> {
        let subject = self.cell.owned_subject(owner, stream);
        self.jetstream.purge_subject(&self.cell.owned_name(), &subject, 0).await
    }

    async fn list_owned_by(&self, owner: &str) -> Result<Vec<Arc<str>>, ReadError> {
        let names = || self.try_list_owned_by(owner);
        RetryDeadline::new().retry(names).await.map_err(list_error)
    }

    async fn try_list_owned_by(&self, owner: &str) -> Result<Vec<Arc<str>>, NatsError> {
        let (log, all) = (self.cell.owned_name(), self.cell.all_owned_subjects(owner));
        // A replica that lags behind would omit the latest entries.
        let last = self.jetstream.read_last(&log, &all).await?.map_or(0, |it| it.position);
        let (mut names, mut position) = (Vec::new(), 0);
        while position < last {
            let found = self
                .jetstream
                .read_batch(&log, &all, position + 1, SUMMARIES_MAX, BATCH_BYTES_MAX)
                .await?;
            let Some(end) = found.last() else {
                return Err(NatsError::Unknown("the replica lags behind its leader".to_owned()));
            };
            position = end.position;
            let found = found
                .iter()
                .filter_map(|it| super::CellConfig::stream_from_owned_subject(&it.subject));
            names.extend(found.map(Arc::from));
        }
        Ok(names)
    }
}

fn claim_error(stream: &Arc<str>, error: NatsError) -> AppendError {
    AppendError::ClaimFailed { stream: stream.clone(), source: Arc::new(error) }
}

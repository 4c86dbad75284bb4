//! Writes logs: claims, appends and deletions.

use super::{
    CellConfig, NatsStore, RETRY_DELAY, RETRY_TIMEOUT,
    jetstream::{NatsError, StoredMessage},
    message::{self, MessageKind, RecordHeader},
};
use crate::{
    error::{AppendError, InvalidAppend},
    record::{AppendRequest, RecordContent, split_into_records, validate_name},
    stream::StreamClaim,
};
use async_nats::HeaderMap;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::time::Instant;

/// The number of logs of one batch that are written concurrently.
const CONCURRENT_STREAMS_MAX: usize = 256;

/// The end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogTail {
    /// The position of its last message; 0 if the log is empty.
    pub(super) position: u64,
    pub(super) epoch: u64,
    /// The sequence number of the last event.
    pub(super) head: u64,
    /// Whether the stream exists and was not deleted.
    pub(super) exists: bool,
    /// Whether its writer has released it.
    pub(super) released: bool,
}

pub(super) const EMPTY_TAIL: LogTail =
    LogTail { position: 0, epoch: 0, head: 0, exists: false, released: false };

impl LogTail {
    pub(super) fn from_message(stored: &StoredMessage) -> Option<LogTail> {
        let header = RecordHeader::parse(&stored.headers)?;
        let (exists, released) =
            (header.kind != MessageKind::Gone, header.kind == MessageKind::Release);
        let (epoch, head) = (header.epoch, header.head());
        Some(LogTail { position: stored.position, epoch, head, exists, released })
    }
}

/// The last message of a log: its end and its writer.
#[derive(Debug)]
pub(super) struct LastMessage {
    pub(super) tail: LogTail,
    pub(super) writer: Option<String>,
    /// The previous owner, if the writer has claimed the log and not appended yet.
    pub(super) previous_owner: Option<String>,
}

impl NatsStore {
    /// Reads the end of a log from the leader.
    pub(super) async fn read_tail(&self, stream: &str) -> Result<LogTail, NatsError> {
        Ok(self.read_last_message(stream).await?.tail)
    }

    pub(super) async fn read_last_message(&self, stream: &str) -> Result<LastMessage, NatsError> {
        let last = self
            .jetstream
            .read_last(&self.cell.log_name(stream), &self.cell.log_subject(stream))
            .await?;
        let Some(last) = last else {
            return Ok(LastMessage { tail: EMPTY_TAIL, writer: None, previous_owner: None });
        };
        let foreign =
            || NatsError::Refused("the last message of the log has invalid headers".to_owned());
        let tail = LogTail::from_message(&last).ok_or_else(foreign)?;
        let writer = message::read_owner(&last.headers).map(str::to_owned);
        let previous_owner = message::read_previous_owner(&last.headers).map(str::to_owned);
        Ok(LastMessage { tail, writer, previous_owner })
    }

    fn cached_tail(&self, stream: &str) -> Option<LogTail> {
        self.tails.lock().expect(POISONED).get(stream).copied()
    }

    fn cache_tail(&self, stream: &Arc<str>, tail: LogTail) {
        self.tails.lock().expect(POISONED).insert(stream.clone(), tail);
        if self.archive.get().is_some() {
            self.archiving.mark_written(stream);
        }
    }

    /// Forgets the cached state of a stream that this process no longer writes.
    pub(crate) fn forget_stream(&self, stream: &str) {
        self.tails.lock().expect(POISONED).remove(stream);
        self.summaries.lock().expect(POISONED).remove(stream);
    }

    pub(crate) async fn claim_stream(&self, stream: &Arc<str>) -> Result<StreamClaim, AppendError> {
        validate_name(stream).map_err(|source| invalid_append(stream, source))?;
        let failed = |error: NatsError| AppendError::ClaimFailed {
            stream: stream.clone(),
            source: Arc::new(error),
        };
        RetryDeadline::new().retry(|| self.try_claim_stream(stream)).await.map_err(failed)
    }

    /// A claim whose outcome is unknown is repeated; that only consumes an epoch.
    async fn try_claim_stream(&self, stream: &Arc<str>) -> Result<StreamClaim, NatsError> {
        let tail = self.read_tail(stream).await?;
        self.claim_with_tail(stream, tail, None).await
    }

    /// Becomes the writer of a log that ends at `tail`. `previous_owner` is set if the last owner
    /// has not released the log.
    pub(super) async fn claim_with_tail(
        &self,
        stream: &Arc<str>,
        tail: LogTail,
        previous_owner: Option<&str>,
    ) -> Result<StreamClaim, NatsError> {
        let head = if tail.exists { tail.head } else { 0 };
        let epoch = tail.epoch + 1;
        if !tail.exists {
            // A stream of this name was deleted, and the deletion may have been interrupted.
            if tail != EMPTY_TAIL {
                self.purge_deleted(stream).await?;
            }
            self.ensure_listed(stream).await?;
        }
        self.add_owned_entry(stream).await?;
        let mut headers =
            RecordHeader::without_events(stream, epoch, head + 1, MessageKind::Claim).to_headers();
        if let Some(owner) = previous_owner {
            message::set_previous_owner(&mut headers, owner);
        }
        let position = self.publish_signed(stream, headers, Bytes::new(), tail.position).await?;
        self.cache_tail(stream, LogTail { position, epoch, head, exists: true, released: false });
        Ok(StreamClaim { epoch, head })
    }

    pub(super) async fn publish_record(
        &self,
        stream: &str,
        header: RecordHeader,
        body: Bytes,
        after: u64,
    ) -> Result<u64, NatsError> {
        self.publish_signed(stream, header.to_headers(), body, after).await
    }

    async fn publish_signed(
        &self,
        stream: &str,
        mut headers: HeaderMap,
        body: Bytes,
        after: u64,
    ) -> Result<u64, NatsError> {
        if let Some(owner) = &self.owner {
            message::set_owner(&mut headers, owner);
        }
        self.jetstream
            .publish_message(self.cell.log_subject(stream), headers, body, Some(after))
            .await
    }

    /// Appends to each stream in order, and to different streams concurrently.
    pub(crate) async fn append_batch(
        &self,
        batch: Vec<AppendRequest>,
    ) -> Vec<Result<u64, AppendError>> {
        let mut streams: BTreeMap<Arc<str>, Vec<usize>> = BTreeMap::new();
        for (index, append) in batch.iter().enumerate() {
            streams.entry(append.stream.clone()).or_default().push(index);
        }
        let batch = &batch;
        let append_in_order = |indices: Vec<usize>| async move {
            let mut outcomes = Vec::with_capacity(indices.len());
            for index in indices {
                outcomes.push((index, self.append_one(&batch[index]).await));
            }
            outcomes
        };
        let streams = stream::iter(streams.into_values()).map(append_in_order);
        let done: Vec<_> = streams.buffer_unordered(CONCURRENT_STREAMS_MAX).collect().await;
        let mut outcomes: Vec<_> = done.into_iter().flatten().collect();
        outcomes.sort_unstable_by_key(|(index, _)| *index);
        outcomes.into_iter().map(|(_, outcome)| outcome).collect()
    }

    /// A stream may have at most one append in progress: a second one would fail with a stale
    /// position.
    pub(crate) async fn append_one(&self, append: &AppendRequest) -> Result<u64, AppendError> {
        append.validate().map_err(|source| invalid_append(&append.stream, source))?;
        let failed = |error: NatsError| AppendError::Unavailable {
            stream: append.stream.clone(),
            count: append.count,
            source: Arc::new(error),
        };
        let retries = RetryDeadline::new();
        let head = loop {
            match self.try_append_one(append).await {
                Ok(head) => break head?,
                Err(error) => {
                    self.tails.lock().expect(POISONED).remove(&append.stream);
                    retries.wait_or_fail(error).await.map_err(failed)?;
                }
            }
        };
        if let Some(summary) = &append.summary {
            self.store_summary(append, summary.clone()).await.map_err(failed)?;
        }
        Ok(head)
    }

    /// The cached tail may be outdated. Then the server refuses the append, or the tail does not
    /// permit it. In both cases the leader is asked before the append fails.
    async fn try_append_one(
        &self,
        append: &AppendRequest,
    ) -> Result<Result<u64, AppendError>, NatsError> {
        let stream = &append.stream;
        let known = self.cached_tail(stream).filter(|it| check_append(append, it).is_ok());
        let mut tail = match known {
            Some(tail) => tail,
            None => self.read_tail(stream).await?,
        };
        if let Err(error) = check_append(append, &tail) {
            self.forget_stream(stream);
            return Ok(Err(error));
        }
        if let Some((first, body)) = append.missing_after(tail.head) {
            for content in split_into_records(first, append.last_seq(), body) {
                tail = self.append_record(append, content, tail).await?;
            }
        }
        self.cache_tail(stream, tail);
        Ok(Ok(tail.head))
    }

    async fn append_record(
        &self,
        append: &AppendRequest,
        content: RecordContent,
        tail: LogTail,
    ) -> Result<LogTail, NatsError> {
        let (stream, epoch) = (&append.stream, append.epoch);
        let (content, kind) = if content.is_large() {
            (self.store_blob(stream, epoch, &content).await?, MessageKind::Reference)
        } else {
            (content, MessageKind::Events)
        };
        let header = RecordHeader::new(stream, epoch, &content, kind);
        let position = self.publish_record(stream, header, content.body, tail.position).await?;
        Ok(LogTail { position, epoch, head: header.head(), exists: true, released: false })
    }

    pub(crate) async fn delete_stream(&self, stream: &Arc<str>) -> Result<(), AppendError> {
        validate_name(stream).map_err(|source| invalid_append(stream, source))?;
        let failed = |error: NatsError| AppendError::DeleteFailed {
            stream: stream.clone(),
            source: Arc::new(error),
        };
        RetryDeadline::new().retry(|| self.try_delete_stream(stream)).await.map_err(failed)
    }

    async fn try_delete_stream(&self, stream: &Arc<str>) -> Result<(), NatsError> {
        let tail = self.read_tail(stream).await?;
        self.delete_with_tail(stream, tail).await?;
        self.remove_own_entry(stream).await
    }

    /// Deletes a stream whose log ends at `tail`. The next deletion, adoption or claim of the
    /// stream completes an interrupted deletion.
    ///
    /// An unavailable archive is detected before anything is changed. Then the writer is fenced,
    /// the events are removed, and the archive is cleared once more: a segment that was stored in
    /// the meantime is either removed here, or the host that stored it finds that the stream is
    /// deleted.
    pub(super) async fn delete_with_tail(
        &self,
        stream: &Arc<str>,
        tail: LogTail,
    ) -> Result<(), NatsError> {
        if tail == EMPTY_TAIL {
            return Ok(());
        }
        if tail.exists {
            if let Some(archive) = self.archive.get() {
                self.check_used_archive().await?;
                archive.remove_stream(&CellConfig::archive_folder(stream)).await?;
            }
            let header = RecordHeader::without_events(stream, tail.epoch + 1, 1, MessageKind::Gone);
            self.publish_record(stream, header, Bytes::new(), tail.position).await?;
        }
        self.forget_stream(stream);
        self.purge_deleted(stream).await?;
        self.remove_summary(stream).await
    }

    /// Removes everything of a deleted stream except the tombstone.
    async fn purge_deleted(&self, stream: &str) -> Result<(), NatsError> {
        let log = self.cell.log_name(stream);
        self.jetstream.purge_subject(&log, &self.cell.log_subject(stream), 1).await?;
        self.jetstream.purge_subject(&log, &self.cell.all_blob_subjects(stream), 0).await?;
        if let Some(archive) = self.archive.get() {
            archive.remove_stream(&CellConfig::archive_folder(stream)).await?;
        }
        Ok(())
    }
}

/// Checks an append against the end of the log, according to the contract.
fn check_append(append: &AppendRequest, tail: &LogTail) -> Result<(), AppendError> {
    let stream = append.stream.clone();
    if append.epoch != tail.epoch || !tail.exists || tail.released {
        let actual = if tail.exists { tail.epoch } else { 0 };
        return Err(AppendError::Fenced { stream, epoch: append.epoch, actual });
    }
    if tail.head + 1 < append.first {
        return Err(AppendError::Gap { stream, first: append.first, head: tail.head });
    }
    Ok(())
}

pub(super) fn invalid_append(stream: &Arc<str>, source: InvalidAppend) -> AppendError {
    AppendError::Invalid { stream: stream.clone(), source }
}

/// Limits how long a request is retried.
pub(super) struct RetryDeadline {
    started_at: Instant,
    timeout: Duration,
}

impl RetryDeadline {
    pub(super) fn new() -> RetryDeadline {
        RetryDeadline::with_timeout(RETRY_TIMEOUT)
    }

    pub(super) fn with_timeout(timeout: Duration) -> RetryDeadline {
        RetryDeadline { started_at: Instant::now(), timeout }
    }

    /// Repeats `step` until it succeeds or must not be retried any more.
    pub(super) async fn retry<T, F: Future<Output = Result<T, NatsError>>>(
        &self,
        step: impl Fn() -> F,
    ) -> Result<T, NatsError> {
        loop {
            match step().await {
                Ok(done) => return Ok(done),
                Err(error) => self.wait_or_fail(error).await?,
            }
        }
    }

    /// Waits before the next attempt. Fails with `error` if there must be none.
    pub(super) async fn wait_or_fail(&self, error: NatsError) -> Result<(), NatsError> {
        if matches!(error, NatsError::Refused(_)) || self.timeout < self.started_at.elapsed() {
            return Err(error);
        }
        // Another writer was faster; an immediate retry may succeed.
        if !matches!(error, NatsError::Stale) {
            tokio::time::sleep(RETRY_DELAY.min(self.started_at.elapsed() + RETRY_DELAY / 10)).await;
        }
        Ok(())
    }
}

pub(super) const POISONED: &str = "nothing panics while it holds the cache";

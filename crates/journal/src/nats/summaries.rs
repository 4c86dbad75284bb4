//! The summaries of the streams. The list of summaries is also the list of streams.
//!
//! A summary is stored after its events, not atomically with them. If it is missing or outdated,
//! the reader only has to read more events.

use super::{
    NatsStore,
    jetstream::{BATCH_BYTES_MAX, NatsError, StoredMessage},
    log::{POISONED, RetryDeadline},
    message::parse_number,
};
use crate::{error::ReadError, record::AppendRequest, stream::StreamInfo};
use async_nats::HeaderMap;
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

/// The last event that the summary covers.
const UPTO_HEADER: &str = "S";

/// The number of summaries in one batch.
pub(super) const SUMMARIES_MAX: usize = 1024;
/// With any other pattern, a server scans all subjects for each batch in order to count the
/// matches.
const EVERY_SUBJECT: &str = ">";
/// The number of logs whose ends are read concurrently.
const CONCURRENT_TAILS_MAX: usize = 128;

/// One page of the list of streams.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamPage {
    /// Names and summaries.
    pub streams: Vec<(Arc<str>, Bytes)>,
    /// The position to request the next page with. `None` on the last page.
    pub before: Option<u64>,
    /// Summaries that are written after the first page was read have this position or a later one.
    pub end: u64,
}

/// Identifies the stored summary of a stream.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SummaryVersion {
    /// The position of its message; 0 if there is none.
    position: u64,
    upto: u64,
}

impl SummaryVersion {
    fn from_message(stored: &StoredMessage) -> SummaryVersion {
        SummaryVersion {
            position: stored.position,
            upto: parse_number(&stored.headers, UPTO_HEADER).unwrap_or(0),
        }
    }
}

impl NatsStore {
    /// Stores an empty summary for a new stream, so that the stream is listed before it is written.
    pub(super) async fn ensure_listed(&self, stream: &Arc<str>) -> Result<(), NatsError> {
        let current = self.read_summary_version(stream).await?;
        if current.position == 0 {
            self.publish_summary(stream, 0, Bytes::new(), current).await?;
        }
        Ok(())
    }

    /// Stores the summary of an append, unless a later one is stored.
    pub(super) async fn store_summary(
        &self,
        append: &AppendRequest,
        summary: Bytes,
    ) -> Result<(), NatsError> {
        let (stream, upto) = (&append.stream, append.last_seq());
        let mut known = self.summaries.lock().expect(POISONED).get(stream).copied();
        let retries = RetryDeadline::new();
        loop {
            let current = match known.take() {
                Some(current) => current,
                None => self.read_summary_version(stream).await?,
            };
            if upto < current.upto {
                return Ok(());
            }
            match self.publish_summary(stream, upto, summary.clone(), current).await {
                Ok(()) => return Ok(()),
                Err(error) => retries.wait_or_fail(error).await?,
            }
        }
    }

    async fn publish_summary(
        &self,
        stream: &Arc<str>,
        upto: u64,
        summary: Bytes,
        before: SummaryVersion,
    ) -> Result<(), NatsError> {
        let mut headers = HeaderMap::new();
        headers.insert(UPTO_HEADER, upto.to_string());
        let subject = self.cell.summary_subject(stream);
        let position = self
            .jetstream
            .publish_message(subject, headers, summary, Some(before.position))
            .await?;
        self.summaries
            .lock()
            .expect(POISONED)
            .insert(stream.clone(), SummaryVersion { position, upto });
        Ok(())
    }

    async fn read_summary_message(&self, stream: &str) -> Result<Option<StoredMessage>, NatsError> {
        self.jetstream
            .read_last(&self.cell.summaries_name(), &self.cell.summary_subject(stream))
            .await
    }

    async fn read_summary_version(&self, stream: &str) -> Result<SummaryVersion, NatsError> {
        Ok(self
            .read_summary_message(stream)
            .await?
            .as_ref()
            .map(SummaryVersion::from_message)
            .unwrap_or_default())
    }

    pub(super) async fn is_listed(&self, stream: &str) -> Result<bool, NatsError> {
        Ok(self.read_summary_message(stream).await?.is_some())
    }

    /// Reads the summary of a stream; empty if there is none.
    pub(super) async fn read_summary(&self, stream: &str) -> Result<Bytes, NatsError> {
        Ok(self.read_summary_message(stream).await?.map(|it| it.body).unwrap_or_default())
    }

    pub(super) async fn remove_summary(&self, stream: &str) -> Result<(), NatsError> {
        self.jetstream
            .purge_subject(&self.cell.summaries_name(), &self.cell.summary_subject(stream), 0)
            .await
    }

    /// Reads one batch of summaries from a position on, in the order in which they were written.
    pub(super) async fn read_summaries_from(
        &self,
        position: u64,
    ) -> Result<Vec<StoredMessage>, NatsError> {
        let log = self.cell.summaries_name();
        self.jetstream
            .read_batch(&log, EVERY_SUBJECT, position, SUMMARIES_MAX, BATCH_BYTES_MAX)
            .await
    }

    pub(super) async fn list_page(
        &self,
        before: Option<u64>,
        count: usize,
    ) -> Result<StreamPage, ReadError> {
        let page = || self.try_list_page(before, count);
        RetryDeadline::new().retry(page).await.map_err(list_error)
    }

    /// Only the last summary of each stream is stored, so there are gaps between the positions. The
    /// range that is read grows until it contains enough summaries.
    async fn try_list_page(
        &self,
        before: Option<u64>,
        count: usize,
    ) -> Result<StreamPage, NatsError> {
        let log = self.cell.summaries_name();
        let end = match before {
            Some(before) => before,
            None => self.jetstream.read_extent(&log).await?.last + 1,
        };
        let (mut from, mut width) = (end, count.max(1) as u64);
        let mut found: VecDeque<StoredMessage> = VecDeque::new();
        while found.len() < count && 1 < from {
            let until = from;
            from = from.saturating_sub(width).max(1);
            width = (width * 4).min(SUMMARIES_MAX as u64);
            let batch = self.read_summaries_from(from).await?;
            for stored in batch.into_iter().rev().filter(|it| it.position < until) {
                found.push_front(stored);
            }
        }
        let surplus = found.len().saturating_sub(count);
        let page = found.split_off(surplus);
        let before =
            page.front().map(|it| it.position).filter(|it| 1 < *it && (surplus != 0 || 1 < from));
        let to_listed_stream = |it: StoredMessage| self.to_listed_stream(it);
        Ok(StreamPage {
            streams: page.into_iter().rev().filter_map(to_listed_stream).collect(),
            before,
            end,
        })
    }

    fn to_listed_stream(&self, summary: StoredMessage) -> Option<(Arc<str>, Bytes)> {
        let name = self.cell.stream_from_summary_subject(&summary.subject)?;
        Some((Arc::from(name), summary.body))
    }

    /// Lists the streams whose summaries were written at a position or after it, by name.
    pub(super) async fn list_since(
        &self,
        position: u64,
    ) -> Result<BTreeMap<Arc<str>, Bytes>, ReadError> {
        let since = || self.try_list_since(position);
        RetryDeadline::new().retry(since).await.map_err(list_error)
    }

    async fn try_list_since(
        &self,
        mut position: u64,
    ) -> Result<BTreeMap<Arc<str>, Bytes>, NatsError> {
        let mut found = BTreeMap::new();
        loop {
            let batch = self.read_summaries_from(position).await?;
            let Some(last) = batch.last() else { return Ok(found) };
            position = last.position + 1;
            found.extend(batch.into_iter().filter_map(|it| self.to_listed_stream(it)));
        }
    }

    /// Lists all streams by name, each with the end of its log.
    pub(crate) async fn list_streams(&self) -> Result<Vec<StreamInfo>, ReadError> {
        let listed = || self.try_list_summaries();
        let listed = RetryDeadline::new().retry(listed).await.map_err(list_error)?;
        let to_stream_info = |(name, (current, summary)): (String, (SummaryVersion, Bytes))| async move {
            let tail = self.read_tail(&name).await?;
            let (epoch, head) = (tail.epoch, tail.head);
            let (name, summary_upto) = (name.into(), current.upto);
            let found = StreamInfo { name, epoch, head, summary, summary_upto };
            Ok::<_, NatsError>(tail.exists.then_some(found))
        };
        let found = stream::iter(listed).map(to_stream_info).buffered(CONCURRENT_TAILS_MAX);
        let found = found.try_filter_map(async |it| Ok(it));
        found.try_collect().await.map_err(list_error)
    }

    /// Lists the summaries as of the time of the call or later. Fails if the replica lags behind
    /// and omits the latest ones.
    async fn try_list_summaries(
        &self,
    ) -> Result<BTreeMap<String, (SummaryVersion, Bytes)>, NatsError> {
        let extent = self.jetstream.read_extent(&self.cell.summaries_name()).await?;
        let mut listed = BTreeMap::new();
        let mut position = 0;
        loop {
            let found = self.read_summaries_from(position + 1).await?;
            let Some(last) = found.last() else { break };
            position = last.position;
            for stored in found {
                if let Some(name) = self.cell.stream_from_summary_subject(&stored.subject) {
                    listed.insert(name, (SummaryVersion::from_message(&stored), stored.body));
                }
            }
        }
        if position < extent.last && (listed.len() as u64) < extent.messages {
            return Err(NatsError::Unknown("the replica lags behind its leader".to_owned()));
        }
        Ok(listed)
    }
}

pub(super) fn list_error(error: NatsError) -> ReadError {
    ReadError::ListFailed { source: Arc::new(error) }
}

//! Selects the logs to archive: those that this process wrote, and those of dead hosts.
//!
//! This process remembers since when a log has events that are not archived. For the logs of other
//! hosts, the message counts of the servers show it: a log with more than one message has events
//! that are not archived. So no extra state has to be stored, and a host that dies loses none.

use super::{
    CellConfig, NatsJournal, NatsStore,
    jetstream::NatsError,
    log::POISONED,
    retention::{ExpiredStreams, RetentionLimits},
};
use crate::error::{LogMaintenanceError, OpenError, SharedError};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use std::{
    collections::BTreeMap,
    future::{Future, ready},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;

/// The number of logs that are archived concurrently. Each has a segment in memory.
const CONCURRENT_LOGS_MAX: usize = 8;

/// Archives and expires the logs of a cell. It has no task of its own: the caller invokes it
/// periodically.
#[derive(Clone)]
pub struct StreamArchiver(Arc<NatsJournal>);

/// The state of the other hosts.
#[derive(Clone)]
pub struct PeerHosts {
    /// Whether the host of this name is alive.
    pub is_alive: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Whether this host, of all live hosts, is responsible for a stream whose writer is dead. Two
    /// hosts that both consider themselves responsible do no harm.
    pub is_ours: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

/// How much was moved to the archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchivingReport {
    pub segments: u64,
    /// The size in the log.
    pub raw_bytes: u64,
    /// The size in the archive.
    pub stored_bytes: u64,
    /// The age of the first message that stays in the log because it is not cold yet.
    pub(super) remaining_age: Option<Duration>,
}

impl ArchivingReport {
    pub(super) fn count_segment(&mut self, raw: u64, stored: u64) {
        self.segments += 1;
        self.raw_bytes += raw;
        self.stored_bytes += stored;
    }

    fn plus(self, other: ArchivingReport) -> ArchivingReport {
        ArchivingReport {
            segments: self.segments + other.segments,
            raw_bytes: self.raw_bytes + other.raw_bytes,
            stored_bytes: self.stored_bytes + other.stored_bytes,
            remaining_age: None,
        }
    }
}

/// How much this process has archived, and how much is left to archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchiveGauges {
    pub segments: u64,
    pub raw_bytes: u64,
    pub stored_bytes: u64,
    /// The number of streams that this process wrote and whose logs have events that are not
    /// archived.
    pub hot_streams: usize,
    /// The longest time that such a stream has had events that are not archived.
    pub oldest: Option<Duration>,
}

/// The logs that this process wrote, and the totals of what it archived.
#[derive(Default)]
pub(super) struct ArchivingState {
    /// Since when each stream has events that are not archived.
    hot: Mutex<BTreeMap<Arc<str>, Instant>>,
    segments: AtomicU64,
    raw_bytes: AtomicU64,
    stored_bytes: AtomicU64,
}

/// A stream that is being archived. Dropping the guard puts the stream back on the list unless
/// `since` was cleared.
struct HotStreamGuard<'a> {
    state: &'a ArchivingState,
    stream: Arc<str>,
    since: Option<Instant>,
}

impl Drop for HotStreamGuard<'_> {
    fn drop(&mut self) {
        if let Some(since) = self.since {
            self.state.put_back(&self.stream, since);
        }
    }
}

impl ArchivingState {
    pub(super) fn mark_written(&self, stream: &Arc<str>) {
        let mut hot = self.hot.lock().expect(POISONED);
        if !hot.contains_key(stream) {
            hot.insert(stream.clone(), Instant::now());
        }
    }

    pub(super) fn count_segment(&self, raw: u64, stored: u64) {
        self.segments.fetch_add(1, Ordering::Relaxed);
        self.raw_bytes.fetch_add(raw, Ordering::Relaxed);
        self.stored_bytes.fetch_add(stored, Ordering::Relaxed);
    }

    fn due_streams(&self, after: Duration) -> Vec<Arc<str>> {
        let hot = self.hot.lock().expect(POISONED);
        let due = hot.iter().filter(|(_, since)| after <= since.elapsed());
        due.map(|(stream, _)| stream.clone()).collect()
    }

    /// Removes a stream from the list before its log is read. A later append puts it back on the
    /// list.
    fn take_stream(&self, stream: &Arc<str>) -> HotStreamGuard<'_> {
        let since = self.hot.lock().expect(POISONED).remove(stream);
        HotStreamGuard { state: self, stream: stream.clone(), since }
    }

    fn put_back(&self, stream: &Arc<str>, since: Instant) {
        let mut hot = self.hot.lock().expect(POISONED);
        let known = hot.entry(stream.clone()).or_insert(since);
        *known = since.min(*known);
    }

    fn gauges(&self) -> ArchiveGauges {
        let hot = self.hot.lock().expect(POISONED);
        let read = |it: &AtomicU64| it.load(Ordering::Relaxed);
        ArchiveGauges {
            segments: read(&self.segments),
            raw_bytes: read(&self.raw_bytes),
            stored_bytes: read(&self.stored_bytes),
            hot_streams: hot.len(),
            oldest: hot.values().min().map(Instant::elapsed),
        }
    }
}

impl StreamArchiver {
    pub(crate) fn new(nats: Arc<NatsJournal>) -> StreamArchiver {
        StreamArchiver(nats)
    }

    /// Opens the archive of the cell, once: `file:///DIR` or `s3://BUCKET/PREFIX`. From then on,
    /// reads find archived events there, and deletions remove them.
    pub fn open_archive(&self, url: &str) -> Result<(), OpenError> {
        self.0.open_archive(url)
    }

    /// Archives the cold events of the streams that this process wrote.
    pub fn archive_own_streams(
        &self,
        after: Duration,
    ) -> impl Future<Output = Result<ArchivingReport, LogMaintenanceError>> + Send + 'static {
        let store = self.0.store.clone();
        self.0.run_task(
            async move { store.archive_own_streams(after).await.map_err(maintenance_error) },
        )
    }

    /// Archives the cold events of dead hosts' streams for which this host is responsible, and of
    /// our own streams that an earlier process wrote.
    pub fn archive_abandoned_streams(
        &self,
        after: Duration,
        peers: PeerHosts,
    ) -> impl Future<Output = Result<ArchivingReport, LogMaintenanceError>> + Send + 'static {
        let store = self.0.store.clone();
        self.0.run_task(async move {
            store.archive_abandoned_streams(after, &peers).await.map_err(maintenance_error)
        })
    }

    /// Deletes the streams that exceed the limits, oldest first, except those of live hosts.
    pub fn delete_expired_streams(
        &self,
        limits: RetentionLimits,
        peers: PeerHosts,
    ) -> impl Future<Output = Result<ExpiredStreams, LogMaintenanceError>> + Send + 'static {
        let store = self.0.store.clone();
        self.0.run_task(async move {
            store.delete_expired_streams(limits, &peers).await.map_err(maintenance_error)
        })
    }

    pub fn gauges(&self) -> ArchiveGauges {
        self.0.store.archiving.gauges()
    }
}

impl NatsStore {
    /// Stops at the first error: an archive that is unavailable is unavailable for all streams.
    async fn archive_own_streams(&self, after: Duration) -> Result<ArchivingReport, NatsError> {
        let due = self.archiving.due_streams(after);
        let reports = stream::iter(due).map(|it| self.archive_own_stream(it, after));
        let reports = reports.buffer_unordered(CONCURRENT_LOGS_MAX);
        reports.try_fold(ArchivingReport::default(), |sum, it| ready(Ok(sum.plus(it)))).await
    }

    async fn archive_own_stream(
        &self,
        stream: Arc<str>,
        after: Duration,
    ) -> Result<ArchivingReport, NatsError> {
        let mut guard = self.archiving.take_stream(&stream);
        let last = self.read_last_message(&stream).await?;
        // Another writer is responsible for a stream that it has claimed.
        let is_ours = last.tail.exists && last.writer == self.owner;
        let report = if is_ours {
            self.archive_log(&stream, after).await?
        } else {
            ArchivingReport::default()
        };
        let now = Instant::now();
        guard.since = report.remaining_age.map(|it| now.checked_sub(it).unwrap_or(now));
        Ok(report)
    }

    async fn archive_abandoned_streams(
        &self,
        after: Duration,
        peers: &PeerHosts,
    ) -> Result<ArchivingReport, NatsError> {
        let mut sum = ArchivingReport::default();
        for shard in 0..self.cell.shards {
            let (log, all) = (self.cell.shard_log_name(shard), self.cell.all_log_subjects(shard));
            let subjects = self.jetstream.list_backlogged_subjects(&log, &all).await?;
            let names = subjects.iter().filter_map(|it| CellConfig::stream_from_log_subject(it));
            let names = names.map(Arc::from);
            let own_names: Vec<Arc<str>> = names.filter(|it| (peers.is_ours)(it)).collect();
            let reports =
                stream::iter(own_names).map(|it| self.archive_if_abandoned(it, after, peers));
            let reports = reports.buffer_unordered(CONCURRENT_LOGS_MAX);
            sum = reports.try_fold(sum, |sum, it| ready(Ok(sum.plus(it)))).await?;
        }
        Ok(sum)
    }

    async fn archive_if_abandoned(
        &self,
        stream: Arc<str>,
        after: Duration,
        peers: &PeerHosts,
    ) -> Result<ArchivingReport, NatsError> {
        let writer = self.read_last_message(&stream).await?.writer;
        if writer != self.owner && writer.is_some_and(|it| (peers.is_alive)(&it)) {
            return Ok(ArchivingReport::default());
        }
        self.archive_log(&stream, after).await
    }
}

fn maintenance_error(error: NatsError) -> LogMaintenanceError {
    match error {
        NatsError::Archive(_) => {
            LogMaintenanceError::Archive { source: Arc::new(error) as SharedError }
        }
        _ => LogMaintenanceError::Log { source: Arc::new(error) as SharedError },
    }
}

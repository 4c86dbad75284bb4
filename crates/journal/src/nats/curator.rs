//! Which logs are archived, and when: those that were written here, and those of hosts that are gone.
//!
//! What was written here is remembered, since when. What others have written is found in the servers'
//! own count of messages: a log with more than one has something that is not archived. So nothing has to be
//! written down about it, and no host that dies takes it along.

use super::{
    Cell, Nats, Store,
    log::POISONED,
    retain::{Expired, Retention},
    servers::Trouble,
};
use crate::error::{CareError, Cause, OpenError};
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

/// Logs that are moved at the same time. Each has a segment in memory.
const AT_ONCE: usize = 8;

/// Looks after the logs of a cell. Nothing happens by itself: somebody has to call, now and then.
#[derive(Clone)]
pub struct Curator(Arc<Nats>);

/// What is known of the other hosts.
#[derive(Clone)]
pub struct Fellows {
    /// Whether the host of this name lives.
    pub is_alive: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Whether it falls to us, of all who live, to look after this stream if its writer is gone. Two who
    /// think so do no harm.
    pub is_ours: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

/// What was moved to the archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    pub segments: u64,
    /// As they were in the log.
    pub raw_bytes: u64,
    /// As they are in the archive.
    pub stored_bytes: u64,
    /// The age of the first message that was left in the log and is not its last.
    pub(super) left: Option<Duration>,
}

impl Moved {
    pub(super) fn count(&mut self, raw: u64, stored: u64) {
        self.segments += 1;
        self.raw_bytes += raw;
        self.stored_bytes += stored;
    }

    fn and(self, other: Moved) -> Moved {
        Moved {
            segments: self.segments + other.segments,
            raw_bytes: self.raw_bytes + other.raw_bytes,
            stored_bytes: self.stored_bytes + other.stored_bytes,
            left: None,
        }
    }
}

/// What this process has moved, and has to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArchiveGauges {
    pub segments: u64,
    pub raw_bytes: u64,
    pub stored_bytes: u64,
    /// Streams that were written here and have something in the log that is not archived.
    pub hot_streams: usize,
    /// For how long the one has had that that has had it longest.
    pub oldest: Option<Duration>,
}

/// What was written here, and what was moved.
#[derive(Default)]
pub(super) struct Care {
    /// Since when a stream has something that is not archived.
    hot: Mutex<BTreeMap<Arc<str>, Instant>>,
    segments: AtomicU64,
    raw_bytes: AtomicU64,
    stored_bytes: AtomicU64,
}

/// A stream that is being moved. Unless that is done, it stays on the list.
struct Taken<'a> {
    care: &'a Care,
    stream: Arc<str>,
    since: Option<Instant>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(since) = self.since {
            self.care.put_back(&self.stream, since);
        }
    }
}

impl Care {
    pub(super) fn written(&self, stream: &Arc<str>) {
        let mut hot = self.hot.lock().expect(POISONED);
        if !hot.contains_key(stream) {
            hot.insert(stream.clone(), Instant::now());
        }
    }

    pub(super) fn count(&self, raw: u64, stored: u64) {
        self.segments.fetch_add(1, Ordering::Relaxed);
        self.raw_bytes.fetch_add(raw, Ordering::Relaxed);
        self.stored_bytes.fetch_add(stored, Ordering::Relaxed);
    }

    fn due(&self, after: Duration) -> Vec<Arc<str>> {
        let hot = self.hot.lock().expect(POISONED);
        let due = hot.iter().filter(|(_, since)| after <= since.elapsed());
        due.map(|(stream, _)| stream.clone()).collect()
    }

    /// Takes a stream off the list before its log is looked at: what is written from then on puts it back.
    fn take(&self, stream: &Arc<str>) -> Taken<'_> {
        let since = self.hot.lock().expect(POISONED).remove(stream);
        Taken { care: self, stream: stream.clone(), since }
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

impl Curator {
    pub(crate) fn new(nats: Arc<Nats>) -> Curator {
        Curator(nats)
    }

    /// Names the archive of the cell, once: `file:///DIR` or `s3://BUCKET/PREFIX`. From then on what is not
    /// in a log any more is read from there, and what is deleted is deleted there.
    pub fn open_archive(&self, url: &str) -> Result<(), OpenError> {
        self.0.open_archive(url)
    }

    /// Moves what is cold of the streams that were written here.
    pub fn move_own(
        &self,
        after: Duration,
    ) -> impl Future<Output = Result<Moved, CareError>> + Send + 'static {
        let store = self.0.store.clone();
        self.0.ask(async move { store.move_own(after).await.map_err(failed) })
    }

    /// The same for the streams of all who are gone, as far as it falls to us, and our own that this
    /// process does not remember.
    pub fn move_left(
        &self,
        after: Duration,
        fellows: Fellows,
    ) -> impl Future<Output = Result<Moved, CareError>> + Send + 'static {
        let store = self.0.store.clone();
        self.0.ask(async move { store.move_left(after, &fellows).await.map_err(failed) })
    }

    /// Deletes what is not to be kept any longer: the oldest first, and nothing that a living host has.
    pub fn retain(
        &self,
        wish: Retention,
        fellows: Fellows,
    ) -> impl Future<Output = Result<Expired, CareError>> + Send + 'static {
        let store = self.0.store.clone();
        self.0.ask(async move { store.retain(wish, &fellows).await.map_err(failed) })
    }

    pub fn gauges(&self) -> ArchiveGauges {
        self.0.store.care.gauges()
    }
}

impl Store {
    /// The first that fails ends it: if the archive is away, it is away for all.
    async fn move_own(&self, after: Duration) -> Result<Moved, Trouble> {
        let due = self.care.due(after);
        let moved = stream::iter(due).map(|it| self.move_ours(it, after));
        let moved = moved.buffer_unordered(AT_ONCE);
        moved.try_fold(Moved::default(), |sum, it| ready(Ok(sum.and(it)))).await
    }

    async fn move_ours(&self, stream: Arc<str>, after: Duration) -> Result<Moved, Trouble> {
        let mut taken = self.care.take(&stream);
        let last = self.look_closely(&stream).await?;
        // Whoever writes it now looks after it.
        let is_ours = last.tail.exists && last.writer == self.owner;
        let moved = if is_ours { self.move_cold(&stream, after).await? } else { Moved::default() };
        let now = Instant::now();
        taken.since = moved.left.map(|it| now.checked_sub(it).unwrap_or(now));
        Ok(moved)
    }

    async fn move_left(&self, after: Duration, fellows: &Fellows) -> Result<Moved, Trouble> {
        let mut sum = Moved::default();
        for shard in 0..self.cell.shards {
            let (log, all) = (self.cell.shard_log(shard), self.cell.all_logs(shard));
            let crowded = self.servers.crowded(&log, &all).await?;
            let names = crowded.iter().filter_map(|it| Cell::named_by_log(it)).map(Arc::from);
            let ours: Vec<Arc<str>> = names.filter(|it| (fellows.is_ours)(it)).collect();
            let moved = stream::iter(ours).map(|it| self.move_if_left(it, after, fellows));
            let moved = moved.buffer_unordered(AT_ONCE);
            sum = moved.try_fold(sum, |sum, it| ready(Ok(sum.and(it)))).await?;
        }
        Ok(sum)
    }

    async fn move_if_left(
        &self,
        stream: Arc<str>,
        after: Duration,
        fellows: &Fellows,
    ) -> Result<Moved, Trouble> {
        let writer = self.look_closely(&stream).await?.writer;
        if writer != self.owner && writer.is_some_and(|it| (fellows.is_alive)(&it)) {
            return Ok(Moved::default());
        }
        self.move_cold(&stream, after).await
    }
}

fn failed(why: Trouble) -> CareError {
    match why {
        Trouble::Archive(_) => CareError::Archive { source: Arc::new(why) as Cause },
        _ => CareError::Log { source: Arc::new(why) as Cause },
    }
}

//! Deletes streams that were not used for long, and the oldest streams if all of them take too much
//! space.
//!
//! The list of streams is ordered by last change, so expired streams are at its front. Two hosts
//! may do this at once: a deletion expects the message that was checked as the last one, so a
//! stream that was claimed in the meantime is not deleted.

use super::{
    CellConfig, NatsStore,
    archiver::PeerHosts,
    jetstream::{NatsError, StoredMessage},
    log::{EMPTY_TAIL, LogTail},
    message,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// The limits of age and total size. Without limits, no stream is deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionLimits {
    /// A stream that was neither written nor claimed for this long is deleted.
    pub age: Option<Duration>,
    /// The oldest streams are deleted until archive and logs are within this size, not counting
    /// replicas.
    pub bytes: Option<u64>,
}

/// The streams that were deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpiredStreams {
    pub streams: Vec<Arc<str>>,
    /// The size of archive and logs afterwards, if the size is limited.
    pub bytes: Option<u64>,
}

/// The sizes of the archived streams and of the logs, in bytes.
struct StorageUsage {
    archived: BTreeMap<String, u64>,
    logs: Vec<u64>,
}

impl StorageUsage {
    fn total_bytes(&self) -> u64 {
        self.archived.values().sum::<u64>() + self.logs.iter().sum::<u64>()
    }
}

impl NatsStore {
    pub(super) async fn delete_expired_streams(
        &self,
        limits: RetentionLimits,
        peers: &PeerHosts,
    ) -> Result<ExpiredStreams, NatsError> {
        let mut expired = ExpiredStreams::default();
        let mut usage = match limits.bytes {
            Some(_) => Some(self.read_usage().await?),
            None => None,
        };
        let mut position = 0;
        'list: loop {
            let found = self.read_summaries_from(position + 1).await?;
            if found.is_empty() {
                break;
            }
            for summary in found {
                let is_over_limit =
                    usage.as_ref().is_some_and(|it| limits.bytes < Some(it.total_bytes()));
                let is_old =
                    |it: &StoredMessage| limits.age.is_some_and(|age| it.is_older_than(age));
                if !is_over_limit && !is_old(&summary) {
                    break 'list;
                }
                position = summary.position;
                let Some(name) = self.cell.stream_from_summary_subject(&summary.subject) else {
                    continue;
                };
                let stream: Arc<str> = name.into();
                let may_expire = |last: &StoredMessage| is_over_limit || is_old(last);
                if self.delete_if_expired(&stream, may_expire, peers).await? {
                    if let Some(usage) = &mut usage {
                        self.update_usage(&stream, usage).await?;
                    }
                    expired.streams.push(stream);
                }
            }
        }
        expired.bytes = usage.map(|it| it.total_bytes());
        Ok(expired)
    }

    /// Deletes a stream unless a live host owns it or `may_expire` rejects its last message.
    /// Returns whether it was deleted.
    async fn delete_if_expired(
        &self,
        stream: &Arc<str>,
        may_expire: impl Fn(&StoredMessage) -> bool,
        peers: &PeerHosts,
    ) -> Result<bool, NatsError> {
        let last = self
            .jetstream
            .read_last(&self.cell.log_name(stream), &self.cell.log_subject(stream))
            .await?;
        let Some(last) = last else {
            // The stream is listed before it is claimed for the first time.
            return Ok(false);
        };
        let tail = LogTail::from_message(&last).unwrap_or(EMPTY_TAIL);
        let owner = message::read_owner(&last.headers).filter(|_| !tail.released);
        let is_owned_by_live_host = tail.exists && owner.is_some_and(|it| (peers.is_alive)(it));
        if tail == EMPTY_TAIL || is_owned_by_live_host || !may_expire(&last) {
            return Ok(false);
        }
        match self.delete_with_tail(stream, tail).await {
            Ok(()) => Ok(true),
            // Another host has just claimed it.
            Err(NatsError::Stale | NatsError::Busy) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn read_usage(&self) -> Result<StorageUsage, NatsError> {
        let archived = match self.archive.get() {
            Some(archive) => archive.list_stream_sizes().await?,
            None => BTreeMap::new(),
        };
        let mut logs = Vec::new();
        for shard in 0..self.cell.shards {
            logs.push(self.jetstream.read_extent(&self.cell.shard_log_name(shard)).await?.bytes);
        }
        Ok(StorageUsage { archived, logs })
    }

    async fn update_usage(&self, stream: &str, usage: &mut StorageUsage) -> Result<(), NatsError> {
        usage.archived.remove(&CellConfig::archive_folder(stream));
        let extent = self.jetstream.read_extent(&self.cell.log_name(stream)).await?;
        usage.logs[usize::from(self.cell.shard_index(stream))] = extent.bytes;
        Ok(())
    }
}

//! Reads logs: the end of the log comes from the leader, the events from any replica, or from the
//! archive if the log starts after them.

use super::{
    CellConfig, NatsStore,
    jetstream::{BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, NatsError, StoredMessage},
    log::{POISONED, RetryDeadline},
    message::{MessageKind, RecordHeader},
};
use crate::{
    error::{ReadError, RecordDamage},
    record::{BlobReference, EventBatch, RecordContent, StoredEvent},
};
use bytes::Bytes;
use std::sync::Arc;

/// The number of logs with a read hint. Without a hint, a read starts at the beginning of the log.
const HINTS_MAX: usize = 10_000;

/// The message with the event `next` comes after the position `after`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadHint {
    next: u64,
    after: u64,
}

/// Why a read ends before the end of the log.
enum ReadStop {
    Full,
    Damaged(RecordDamage),
    /// The log starts after the requested event, or the hint was wrong.
    Misplaced,
}

impl NatsStore {
    pub(crate) async fn read_events(
        &self,
        stream: &Arc<str>,
        after: u64,
        events_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<StoredEvent>, ReadError> {
        let retries = RetryDeadline::new();
        loop {
            let mut batch = EventBatch::new(after, events_max, bytes_max);
            match self.try_read_events(stream, &mut batch).await {
                Ok(Some(damage)) if batch.is_empty() => {
                    let (stream, first) = (stream.clone(), batch.next_seq());
                    return Err(ReadError::Damaged { stream, first, damage });
                }
                Ok(_) => return Ok(batch.into_events()),
                Err(error) => retries.wait_or_fail(error).await.map_err(|error| {
                    let (stream, source) = (stream.clone(), Arc::new(error));
                    ReadError::Unavailable { stream, after, source }
                })?,
            }
        }
    }

    /// Fills the batch. Returns the damage if that is why the batch ends.
    async fn try_read_events(
        &self,
        stream: &Arc<str>,
        batch: &mut EventBatch,
    ) -> Result<Option<RecordDamage>, NatsError> {
        let tail = self.read_tail(stream).await?;
        if !tail.exists || tail.head < batch.next_seq() {
            return Ok(None);
        }
        let hint = self.read_hint(stream, batch.next_seq());
        let mut position = hint.unwrap_or(0);
        let mut is_hinted = hint.is_some();
        loop {
            let (log, subject) = (self.cell.log_name(stream), self.cell.log_subject(stream));
            let found = self
                .jetstream
                .read_batch(&log, &subject, position + 1, BATCH_MESSAGES_MAX, BATCH_BYTES_MAX)
                .await?;
            if found.is_empty() {
                if is_hinted {
                    (is_hinted, position) = (false, 0);
                    continue;
                }
                // The leader has the event, so this replica will receive it.
                return Err(NatsError::Unknown("the replica lags behind its leader".to_owned()));
            }
            for stored in found {
                match self.add_message(stream, &stored, batch).await? {
                    Ok(()) => position = stored.position,
                    Err(ReadStop::Misplaced) if is_hinted => {
                        (is_hinted, position) = (false, 0);
                        break;
                    }
                    Err(ReadStop::Full) => return Ok(None),
                    Err(stop) => match self.add_archived_segment(stream, stop, batch).await? {
                        // Read again: this message or a later one may contain the next event.
                        Ok(()) => break,
                        Err(ReadStop::Damaged(damage)) => return Ok(Some(damage)),
                        Err(ReadStop::Full | ReadStop::Misplaced) => return Ok(None),
                    },
                }
                self.set_hint(stream, ReadHint { next: batch.next_seq(), after: position });
                if tail.head < batch.next_seq() {
                    return Ok(None);
                }
            }
        }
    }

    /// Adds the events of a message.
    async fn add_message(
        &self,
        stream: &str,
        stored: &StoredMessage,
        batch: &mut EventBatch,
    ) -> Result<Result<(), ReadStop>, NatsError> {
        let damaged = |damage| Ok(Err(ReadStop::Damaged(damage)));
        let Some(header) = RecordHeader::parse(&stored.headers) else {
            return damaged(RecordDamage::Checksum);
        };
        // A message without events also contains the sequence number of the next event.
        if batch.next_seq() < header.first {
            return Ok(Err(ReadStop::Misplaced));
        }
        if header.head() < batch.next_seq() {
            return Ok(Ok(()));
        }
        let content =
            RecordContent { first: header.first, count: header.count, body: stored.body.clone() };
        if !header.matches(stream, &content) {
            return damaged(RecordDamage::Checksum);
        }
        let body = match header.kind {
            MessageKind::Reference => {
                match self.read_large_event(stream, &header, &content.body, batch).await? {
                    Ok(body) => body,
                    Err(stop) => return Ok(Err(stop)),
                }
            }
            _ => content.body,
        };
        let is_complete = batch.push_record(header.first, &body);
        Ok(if is_complete { Ok(()) } else { Err(ReadStop::Full) })
    }

    async fn read_large_event(
        &self,
        stream: &str,
        header: &RecordHeader,
        line: &[u8],
        batch: &EventBatch,
    ) -> Result<Result<Bytes, ReadStop>, NatsError> {
        let Some(reference) = BlobReference::parse(line) else {
            return Ok(Err(ReadStop::Damaged(RecordDamage::Blob)));
        };
        if !batch.has_space_for(reference.bytes) {
            return Ok(Err(ReadStop::Full));
        }
        let blob = self.read_blob(stream, header.epoch, header.first, reference).await?;
        Ok(blob.ok_or(ReadStop::Damaged(RecordDamage::Blob)))
    }

    /// Adds a segment of the archive, if the events were moved there.
    async fn add_archived_segment(
        &self,
        stream: &str,
        stop: ReadStop,
        batch: &mut EventBatch,
    ) -> Result<Result<(), ReadStop>, NatsError> {
        let (damage, may_be_archived) = match stop {
            ReadStop::Misplaced if self.archive.get().is_none() => (RecordDamage::Archived, false),
            ReadStop::Misplaced => (RecordDamage::Missing, true),
            // The blob may have been archived after its reference was read.
            ReadStop::Damaged(RecordDamage::Blob) => (RecordDamage::Blob, true),
            ReadStop::Damaged(damage) => (damage, false),
            ReadStop::Full => return Ok(Err(ReadStop::Full)),
        };
        let Some(archive) = self.archive.get().filter(|_| may_be_archived) else {
            return Ok(Err(ReadStop::Damaged(damage)));
        };
        match archive.read_segment(&CellConfig::archive_folder(stream), batch.next_seq()).await? {
            Ok(Some(segment)) => {
                let is_complete = batch.push_record(segment.first, &segment.body);
                Ok(if is_complete { Ok(()) } else { Err(ReadStop::Full) })
            }
            Ok(None) => {
                // The event may still exist if this archive is unavailable or not ours.
                self.check_used_archive().await?;
                Ok(Err(ReadStop::Damaged(damage)))
            }
            Err(damage) => Ok(Err(ReadStop::Damaged(damage))),
        }
    }

    fn read_hint(&self, stream: &str, next: u64) -> Option<u64> {
        let hints = self.hints.lock().expect(POISONED);
        hints.get(stream).filter(|it| it.next <= next).map(|it| it.after)
    }

    fn set_hint(&self, stream: &Arc<str>, hint: ReadHint) {
        let mut hints = self.hints.lock().expect(POISONED);
        if HINTS_MAX <= hints.len() {
            hints.clear();
        }
        hints.insert(stream.clone(), hint);
    }
}

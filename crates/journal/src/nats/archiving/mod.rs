//! Moves the cold messages of a log to the archive: stores them as segments, and then removes them
//! from the log.
//!
//! Any host may do it, even two at once: events do not change, so both store the same. The last
//! message of a log is never moved, because it is the lock.

#[cfg(test)]
mod test_host;
#[cfg(test)]
mod tests;

use super::{
    CellConfig, NatsStore,
    archiver::ArchivingReport,
    jetstream::{BATCH_BYTES_MAX, BATCH_MESSAGES_MAX, NatsError, StoredMessage},
    message::{MessageKind, RecordHeader},
};
use crate::{
    archive::{Archive, SegmentBuilder},
    record::{BlobReference, RecordContent},
};
use bytes::Bytes;
use std::{sync::Arc, time::Duration};

/// A log that is being archived.
struct LogTransfer<'a> {
    archive: &'a Archive,
    stream: &'a Arc<str>,
    folder: String,
    /// The next segment.
    builder: SegmentBuilder,
    /// The position of the last message in the next segment or in an earlier one.
    position: u64,
    /// The last event that was archived before. Determined with the first event of the log.
    archived: Option<u64>,
    report: ArchivingReport,
}

impl NatsStore {
    pub(super) fn archive(&self) -> Result<&Archive, NatsError> {
        self.archive.get().ok_or_else(|| NatsError::Refused("no archive is configured".to_owned()))
    }

    /// If the first message of a log is older than `after`, moves all messages that are older than
    /// half of `after`. So a session that is always active is moved in few large segments, not in
    /// many small ones.
    pub(super) async fn archive_log(
        &self,
        stream: &Arc<str>,
        after: Duration,
    ) -> Result<ArchivingReport, NatsError> {
        let (archive, folder) = (self.archive()?, CellConfig::archive_folder(stream));
        let (builder, report) = Default::default();
        let mut transfer =
            LogTransfer { archive, stream, folder, builder, position: 0, archived: None, report };
        let tail = self.read_tail(stream).await?;
        if tail.exists {
            self.check_archive().await?;
            self.collect_cold_messages(&mut transfer, tail.position, after).await?;
            self.flush_segment(&mut transfer).await?;
        }
        Ok(transfer.report)
    }

    async fn collect_cold_messages(
        &self,
        transfer: &mut LogTransfer<'_>,
        tail: u64,
        after: Duration,
    ) -> Result<(), NatsError> {
        let (log, subject) =
            (self.cell.log_name(transfer.stream), self.cell.log_subject(transfer.stream));
        let (mut position, mut age) = (0, after);
        loop {
            let found = self
                .jetstream
                .read_batch(&log, &subject, position + 1, BATCH_MESSAGES_MAX, BATCH_BYTES_MAX)
                .await?;
            if found.is_empty() {
                return Ok(());
            }
            for stored in found {
                if tail <= stored.position {
                    return Ok(());
                }
                if !stored.is_older_than(age) {
                    transfer.report.remaining_age = Some(stored.age());
                    return Ok(());
                }
                age = after / 2;
                self.collect_message(transfer, &stored).await?;
                position = stored.position;
            }
        }
    }

    /// Adds the events of a message to the next segment.
    async fn collect_message(
        &self,
        transfer: &mut LogTransfer<'_>,
        stored: &StoredMessage,
    ) -> Result<(), NatsError> {
        let stream = transfer.stream;
        let damaged = |what: String| {
            NatsError::Refused(format!("{what} of stream `{stream}`: it is not archived"))
        };
        let Some(header) = RecordHeader::parse(&stored.headers) else {
            return Err(damaged(format!("invalid headers of message {}", stored.position)));
        };
        let archived = match transfer.archived {
            Some(archived) => archived,
            None => find_archived_end(transfer, header.first).await?,
        };
        transfer.archived = Some(archived);
        if header.count != 0 && archived < header.head() {
            let Some(lines) = self.read_lines(stream, &header, stored).await? else {
                return Err(damaged(format!("damaged event {} in the log", header.first)));
            };
            if transfer.builder.would_exceed_limit(lines.len()) {
                self.flush_segment(transfer).await?;
            }
            if !transfer.builder.push_lines(header.first, header.head(), &lines) {
                return Err(damaged(format!("missing event before event {}", header.first)));
            }
        }
        transfer.position = stored.position;
        Ok(())
    }

    /// Reads the lines of a message, including a large event. `None` if they are damaged.
    async fn read_lines(
        &self,
        stream: &str,
        header: &RecordHeader,
        stored: &StoredMessage,
    ) -> Result<Option<Bytes>, NatsError> {
        let content =
            RecordContent { first: header.first, count: header.count, body: stored.body.clone() };
        if !header.matches(stream, &content) {
            return Ok(None);
        }
        if header.kind != MessageKind::Reference {
            return Ok(Some(content.body));
        }
        match BlobReference::parse(&content.body) {
            Some(reference) => self.read_blob(stream, header.epoch, header.first, reference).await,
            None => Ok(None),
        }
    }

    /// Stores the segment, and then removes its messages from the log.
    async fn flush_segment(&self, transfer: &mut LogTransfer<'_>) -> Result<(), NatsError> {
        if let Some(segment) = transfer.builder.finish() {
            let (range, raw) = (segment.range(), segment.body.len() as u64);
            let stored = transfer.archive.store_segment(&transfer.folder, segment).await?;
            // A concurrent deletion may have cleared the archive before this segment was stored.
            if !self.read_tail(transfer.stream).await?.exists {
                transfer.archive.remove_segment(&transfer.folder, range).await?;
                return Ok(());
            }
            transfer.report.count_segment(raw, stored);
            self.archiving.count_segment(raw, stored);
        }
        if transfer.position == 0 {
            return Ok(());
        }
        // The storage may have been unmounted while the segment was written.
        self.check_archive().await?;
        let log = self.cell.log_name(transfer.stream);
        self.jetstream
            .purge_upto(&log, &self.cell.log_subject(transfer.stream), transfer.position)
            .await?;
        // The parts of a large event are stored between the previous message and its own.
        self.jetstream
            .purge_upto(&log, &self.cell.all_blob_subjects(transfer.stream), transfer.position)
            .await
    }
}

/// The last event that the archive contains without a gap, starting right before `first`. The
/// archive must contain all events that the log no longer has; otherwise nothing more may be
/// removed from the log.
async fn find_archived_end(transfer: &LogTransfer<'_>, first: u64) -> Result<u64, NatsError> {
    let end = transfer.archive.find_last_contiguous(&transfer.folder, (first - 1).max(1)).await?;
    match end {
        Some(end) => Ok(end),
        None if first == 1 => Ok(0),
        None => {
            let (stream, before) = (transfer.stream, first - 1);
            let reason = format!(
                "event {before} of stream `{stream}` is neither in the log nor in the archive"
            );
            Err(NatsError::Refused(reason))
        }
    }
}

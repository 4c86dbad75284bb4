//! Stores events that are too long for a record in parts next to the log, which contains a
//! reference instead.

use super::{NatsStore, jetstream::NatsError};
use crate::limits::RECORD_BYTES_MAX;
use crate::record::{BlobReference, RecordContent};
use async_nats::HeaderMap;
use bytes::{Bytes, BytesMut};

/// A part is as long as a record may be, so that no message exceeds the limit of a record.
const PART_BYTES: usize = RECORD_BYTES_MAX;

impl NatsStore {
    /// Stores a large event. Returns the reference for the log. A retry writes the same parts
    /// again.
    pub(super) async fn store_blob(
        &self,
        stream: &str,
        epoch: u64,
        content: &RecordContent,
    ) -> Result<RecordContent, NatsError> {
        for (part, start) in (0..content.body.len()).step_by(PART_BYTES).enumerate() {
            let body = content.body.slice(start..content.body.len().min(start + PART_BYTES));
            let subject = self.cell.blob_subject(stream, epoch, content.first, part);
            self.jetstream.publish_message(subject, HeaderMap::new(), body, None).await?;
        }
        let line = BlobReference::for_body(&content.body).to_line();
        Ok(RecordContent { first: content.first, count: 1, body: line.into() })
    }

    /// Reads a large event. `None` if it is missing or does not match the reference.
    pub(super) async fn read_blob(
        &self,
        stream: &str,
        epoch: u64,
        seq: u64,
        reference: BlobReference,
    ) -> Result<Option<Bytes>, NatsError> {
        let log = self.cell.log_name(stream);
        let mut body = BytesMut::new();
        for part in 0..reference.bytes.div_ceil(PART_BYTES) {
            let subject = self.cell.blob_subject(stream, epoch, seq, part);
            let Some(stored) = self.jetstream.read_last(&log, &subject).await? else {
                return Ok(None);
            };
            body.extend_from_slice(&stored.body);
        }
        let body = body.freeze();
        Ok((BlobReference::for_body(&body) == reference).then_some(body))
    }
}

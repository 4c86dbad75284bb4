//! Events that are too long for a record: kept beside the log in parts, with a reference in their place.

use super::{Store, servers::Trouble};
use crate::record::{Piece, RECORD_BYTES_MAX, Reference};
use async_nats::HeaderMap;
use bytes::{Bytes, BytesMut};

/// A part is as long as a record may be, so that nothing on the way meets a longer message.
const PART_BYTES: usize = RECORD_BYTES_MAX;

impl Store {
    /// Keeps a large event; returns what stands in the log in its place. Parts that were put by a try
    /// that failed are the same ones.
    pub(super) async fn put_blob(
        &self,
        stream: &str,
        epoch: u64,
        piece: &Piece,
    ) -> Result<Piece, Trouble> {
        for (part, start) in (0..piece.body.len()).step_by(PART_BYTES).enumerate() {
            let body = piece.body.slice(start..piece.body.len().min(start + PART_BYTES));
            let subject = self.cell.blob_subject(stream, epoch, piece.first, part);
            self.servers.publish(subject, HeaderMap::new(), body, None).await?;
        }
        let line = Reference::to(&piece.body).to_line();
        Ok(Piece { first: piece.first, count: 1, body: line.into() })
    }

    /// The event that was put there; none if it is not what the reference says.
    pub(super) async fn blob(
        &self,
        stream: &str,
        epoch: u64,
        seq: u64,
        reference: Reference,
    ) -> Result<Option<Bytes>, Trouble> {
        let log = self.cell.log(stream);
        let mut body = BytesMut::new();
        for part in 0..reference.bytes.div_ceil(PART_BYTES) {
            let subject = self.cell.blob_subject(stream, epoch, seq, part);
            let Some(stored) = self.servers.last(&log, &subject).await? else { return Ok(None) };
            body.extend_from_slice(&stored.body);
        }
        let body = body.freeze();
        Ok((Reference::to(&body) == reference).then_some(body))
    }
}

//! Claims and deletes streams.

use super::writer::{BusyPolicy, SqliteWriter, StreamState};
use crate::{
    error::InvalidAppend, limits::STREAMS_MAX, record::RecordContent, stream::StreamClaim,
};
use bytes::Bytes;
use rusqlite::params;

impl SqliteWriter {
    pub(super) fn claim_stream(
        &mut self,
        stream: &str,
    ) -> rusqlite::Result<Result<StreamClaim, InvalidAppend>> {
        self.set_busy_policy(BusyPolicy::Wait)?;
        self.run_transaction(|it| it.claim_one(stream))
    }

    fn claim_one(&mut self, stream: &str) -> rusqlite::Result<Result<StreamClaim, InvalidAppend>> {
        let state = if let Some(state) = self.load_stream(stream)? {
            self.conn()
                .prepare_cached("UPDATE stream SET epoch = ?2 WHERE number = ?1")?
                .execute(params![state.number, (state.epoch + 1).cast_signed()])?;
            StreamState { epoch: state.epoch + 1, ..state }
        } else {
            let epoch: i64 = self
                .conn()
                .prepare_cached("SELECT epoch_floor + 1 FROM mark")?
                .query_row([], |row| row.get(0))?;
            self.conn()
                .prepare_cached("INSERT INTO stream (name, epoch) VALUES (?1, ?2)")?
                .execute(params![stream, epoch])?;
            let number = self.conn().last_insert_rowid();
            if STREAMS_MAX < number.cast_unsigned() {
                self.conn()
                    .prepare_cached("DELETE FROM stream WHERE number = ?1")?
                    .execute([number])?;
                return Ok(Err(InvalidAppend::TooManyStreams));
            }
            StreamState { number, epoch: epoch.cast_unsigned(), head: 0 }
        };
        // A record without events takes the next id, so every other writer detects the claim.
        let claim = RecordContent { first: state.head + 1, count: 0, body: Bytes::new() };
        self.insert_record(stream, state, &claim)?;
        self.cache_stream(&stream.into(), state);
        Ok(Ok(StreamClaim { epoch: state.epoch, head: state.head }))
    }

    /// Deletes the stream at once. Its records are removed later, a few at a time.
    pub(super) fn delete_stream(&mut self, stream: &str) -> rusqlite::Result<()> {
        self.set_busy_policy(BusyPolicy::Wait)?;
        self.run_transaction(|it| {
            let Some(state) = it.load_stream(stream)? else { return Ok(()) };
            let tombstone = RecordContent { first: 0, count: 0, body: Bytes::new() };
            it.insert_record("", StreamState { number: 0, epoch: 0, head: 0 }, &tombstone)?;
            it.conn()
                .prepare_cached("DELETE FROM stream WHERE number = ?1")?
                .execute([state.number])?;
            it.conn()
                .prepare_cached("INSERT INTO dead VALUES (?1, ?2)")?
                .execute([state.number, it.last_record()])?;
            it.conn()
                .prepare_cached("UPDATE mark SET epoch_floor = max(epoch_floor, ?1)")?
                .execute([state.epoch.cast_signed()])?;
            Ok(())
        })?;
        self.forget_stream(stream);
        Ok(())
    }
}

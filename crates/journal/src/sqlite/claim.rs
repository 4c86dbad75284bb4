//! Taking a stream over, and doing away with it.

use super::write::{Known, Wait, Writer};
use crate::{
    error::Invalid,
    journal::Claim,
    record::{Piece, STREAMS_MAX},
};
use bytes::Bytes;
use rusqlite::params;

impl Writer {
    pub(super) fn claim(&mut self, stream: &str) -> rusqlite::Result<Result<Claim, Invalid>> {
        self.be_patient(Wait::Yes)?;
        self.transaction(|it| it.claim_one(stream))
    }

    fn claim_one(&mut self, stream: &str) -> rusqlite::Result<Result<Claim, Invalid>> {
        let known = if let Some(known) = self.know(stream)? {
            self.conn()
                .prepare_cached("UPDATE stream SET epoch = ?2 WHERE number = ?1")?
                .execute(params![known.number, (known.epoch + 1).cast_signed()])?;
            Known { epoch: known.epoch + 1, ..known }
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
                return Ok(Err(Invalid::TooManyStreams));
            }
            Known { number, epoch: epoch.cast_unsigned(), head: 0 }
        };
        // A record of no events: it takes the next id, and so tells every other writer.
        let claim = Piece { first: known.head + 1, count: 0, body: Bytes::new() };
        self.insert(stream, known, &claim)?;
        self.remember(&stream.into(), known);
        Ok(Ok(Claim { epoch: known.epoch, head: known.head }))
    }

    /// The stream is gone at once; its records are swept later, a few at a time.
    pub(super) fn delete(&mut self, stream: &str) -> rusqlite::Result<()> {
        self.be_patient(Wait::Yes)?;
        self.transaction(|it| {
            let Some(known) = it.know(stream)? else { return Ok(()) };
            let tombstone = Piece { first: 0, count: 0, body: Bytes::new() };
            it.insert("", Known { number: 0, epoch: 0, head: 0 }, &tombstone)?;
            it.conn()
                .prepare_cached("DELETE FROM stream WHERE number = ?1")?
                .execute([known.number])?;
            it.conn()
                .prepare_cached("INSERT INTO dead VALUES (?1, ?2)")?
                .execute([known.number, it.last()])?;
            it.conn()
                .prepare_cached("UPDATE mark SET epoch_floor = max(epoch_floor, ?1)")?
                .execute([known.epoch.cast_signed()])?;
            Ok(())
        })?;
        self.forget(stream);
        Ok(())
    }
}

//! Inserts records into the log.

use super::writer::{RECORD_WAL_BYTES, SqliteWriter, StreamState};
use crate::record::{BlobReference, RecordContent, compute_checksum};
use rusqlite::params;

const INSERT_RECORD_SQL: &str = "INSERT INTO record VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

/// The content of a row of `record`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowKind {
    Lines,
    /// A reference to a row of `blob`.
    Reference,
}

impl SqliteWriter {
    /// Inserts a record, and its blob if it is too large for a record.
    pub(super) fn insert_record(
        &mut self,
        stream: &str,
        state: StreamState,
        content: &RecordContent,
    ) -> rusqlite::Result<()> {
        if content.is_large() {
            return self.insert_large(stream, state, content);
        }
        self.insert_row(stream, state, content, RowKind::Lines)
    }

    fn insert_large(
        &mut self,
        stream: &str,
        state: StreamState,
        content: &RecordContent,
    ) -> rusqlite::Result<()> {
        let line = BlobReference::for_body(&content.body).to_line();
        let reference = RecordContent { first: content.first, count: 1, body: line.into() };
        self.insert_row(stream, state, &reference, RowKind::Reference)?;
        self.conn()
            .prepare_cached("INSERT INTO blob VALUES (?1, ?2)")?
            .execute(params![self.last_record(), content.body.as_ref()])?;
        self.set_wal_bytes(self.wal_bytes() + content.body.len());
        Ok(())
    }

    fn insert_row(
        &mut self,
        stream: &str,
        state: StreamState,
        content: &RecordContent,
        kind: RowKind,
    ) -> rusqlite::Result<()> {
        let is_reference = kind == RowKind::Reference;
        let checksum = compute_checksum(stream, state.epoch, content, is_reference);
        let id = self.last_record() + 1;
        self.conn().prepare_cached(INSERT_RECORD_SQL)?.execute(params![
            id,
            state.number,
            state.epoch.cast_signed(),
            content.first.cast_signed(),
            content.count,
            checksum,
            is_reference,
            content.body.as_ref(),
        ])?;
        self.set_last_record(id);
        self.set_wal_bytes(self.wal_bytes() + RECORD_WAL_BYTES + content.body.len());
        Ok(())
    }
}

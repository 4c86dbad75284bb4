//! Upkeep: indexes records, removes records of deleted streams, and checkpoints the WAL, so that
//! appends need not do it.
//!
//! Upkeep does not change what a reader sees. Work that needs the writer is done in short turns, so
//! that an append never waits long.

use super::{
    schema::index_key,
    writer::{BusyPolicy, SqliteWriter},
};
use crate::limits::{SEQ_BITS, SEQ_MAX};
use rusqlite::{Connection, OptionalExtension, params};

/// The number of unindexed records that makes upkeep due. With more records, more of them share a
/// page of `place`, but a reader that has to scan them takes longer.
pub(super) const UNINDEXED_MAX: u64 = 4096;

/// The size of the WAL that makes upkeep due. A larger limit means fewer but longer pauses, and a
/// slower start after a crash.
pub(super) const WAL_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The number of records that one turn of the writer indexes.
const INDEXED_PER_TURN: i64 = 4096;

/// The number of records that one turn of the writer removes: fewer, because each may be long.
const SWEPT_PER_TURN: i64 = 64;

/// The number of checkpoint rounds that run concurrently with appends, before the last round that
/// blocks them.
const CHECKPOINT_ROUNDS_MAX: u32 = 3;

/// With fewer remaining WAL frames than this, the last round is short.
const REMAINING_FRAMES_MAX: i64 = 256;

/// The result of one turn of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnResult {
    MoreWork,
    Finished,
}

/// Indexes up to [`INDEXED_PER_TURN`] records and advances `mark.placed`.
pub(super) fn index_records(writer: &mut SqliteWriter) -> rusqlite::Result<TurnResult> {
    writer.set_busy_policy(BusyPolicy::Wait)?;
    let upto = writer.run_transaction(|it| {
        let indexed = it.indexed_upto();
        let upto = it.last_record().min(indexed + INDEXED_PER_TURN);
        it.conn()
            .prepare_cached(
                "INSERT INTO place
                 SELECT stream << ?3 | first, count, id FROM record
                  WHERE ?1 < id AND id <= ?2 AND 0 < count ORDER BY stream, first",
            )?
            .execute(params![indexed, upto, SEQ_BITS])?;
        it.conn().prepare_cached("UPDATE mark SET placed = ?1")?.execute([upto])?;
        Ok(upto)
    })?;
    writer.mark_indexed(upto);
    Ok(if upto < writer.last_record() { TurnResult::MoreWork } else { TurnResult::Finished })
}

/// Removes some records of a deleted stream. It finds them through `place`, so they must be indexed
/// first.
pub(super) fn sweep_deleted_records(writer: &mut SqliteWriter) -> rusqlite::Result<TurnResult> {
    writer.set_busy_policy(BusyPolicy::Wait)?;
    writer.run_transaction(|it| {
        let dead = it
            .conn()
            .prepare_cached("SELECT stream FROM dead WHERE tombstone <= ?1 LIMIT 1")?
            .query_row([it.indexed_upto()], |row| row.get::<_, i64>(0))
            .optional()?;
        let Some(stream) = dead else { return Ok(TurnResult::Finished) };
        let some = params![index_key(stream, 0), index_key(stream, SEQ_MAX), SWEPT_PER_TURN];
        let delete = |sql| it.conn().prepare_cached(sql)?.execute(some);
        delete(
            "DELETE FROM blob WHERE record IN
                (SELECT record FROM place WHERE at BETWEEN ?1 AND ?2 ORDER BY at LIMIT ?3)",
        )?;
        delete(
            "DELETE FROM record WHERE id IN
                (SELECT record FROM place WHERE at BETWEEN ?1 AND ?2 ORDER BY at LIMIT ?3)",
        )?;
        let swept = delete(
            "DELETE FROM place WHERE at IN
                (SELECT at FROM place WHERE at BETWEEN ?1 AND ?2 ORDER BY at LIMIT ?3)",
        )?;
        if swept == 0 {
            it.conn().prepare_cached("DELETE FROM dead WHERE stream = ?1")?.execute([stream])?;
        }
        Ok(TurnResult::MoreWork)
    })
}

/// Checkpoints the WAL concurrently with appends, until few frames remain.
pub(super) fn checkpoint_wal(upkeep_conn: &Connection) -> rusqlite::Result<()> {
    for _ in 0..CHECKPOINT_ROUNDS_MAX {
        if run_checkpoint(upkeep_conn)? < REMAINING_FRAMES_MAX {
            break;
        }
    }
    Ok(())
}

/// Checkpoints the remaining frames while the writer is locked, and indexes records. The first
/// write after a full checkpoint restarts the WAL and waits for the disk once, which is better done
/// here than in an append.
pub(super) fn restart_wal(
    upkeep_conn: &Connection,
    writer: &mut SqliteWriter,
) -> rusqlite::Result<()> {
    writer.close_snapshot();
    let left = run_checkpoint(upkeep_conn)?;
    index_records(writer)?;
    // A reader may have prevented a full checkpoint; then upkeep is due again soon.
    writer.set_wal_bytes(if left == 0 { 0 } else { WAL_BYTES_MAX / 2 });
    Ok(())
}

/// Returns the number of frames that could not be checkpointed yet.
fn run_checkpoint(upkeep_conn: &Connection) -> rusqlite::Result<i64> {
    upkeep_conn
        .prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?
        .query_row([], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?))
}

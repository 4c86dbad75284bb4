//! The work that appends are spared: placing records, sweeping dead streams, emptying the WAL.
//!
//! None of it changes what a reader sees. Whatever needs the writer is done in short turns, so
//! that an append never waits long.

use super::{
    schema::place,
    write::{Wait, Writer},
};
use crate::record::{SEQ_BITS, SEQ_MAX};
use rusqlite::{Connection, OptionalExtension, params};

/// Records that may lie beyond `mark.placed` before it is moved. The more there are, the more of
/// them go to the same page of `place`; and the longer takes whoever has to search them.
pub(super) const UNPLACED_MAX: u64 = 4096;

/// The size of the WAL at which it is worth emptying. A larger one makes fewer, longer pauses and
/// a slower start after a crash.
pub(super) const WAL_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Records placed in one turn of the writer.
const PLACE_TURN: i64 = 4096;

/// Records removed in one turn of the writer: fewer, because each may be long.
const SWEEP_TURN: i64 = 64;

/// Rounds of copying while appends go on, before the last one that keeps them out.
const ROUNDS_MAX: u32 = 3;

/// So few frames left in the WAL that the last round is short.
const FRAMES_LEFT: i64 = 256;

/// Whether there is more of the same to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    Yes,
    No,
}

/// Moves `mark.placed` on, up to the end of the log if that is near.
pub(super) fn place_some(writer: &mut Writer) -> rusqlite::Result<More> {
    writer.be_patient(Wait::Yes)?;
    let upto = writer.transaction(|it| {
        let placed = it.placed();
        let upto = it.last().min(placed + PLACE_TURN);
        it.conn()
            .prepare_cached(
                "INSERT INTO place
                 SELECT stream << ?3 | first, count, id FROM record
                  WHERE ?1 < id AND id <= ?2 AND 0 < count ORDER BY stream, first",
            )?
            .execute(params![placed, upto, SEQ_BITS])?;
        it.conn().prepare_cached("UPDATE mark SET placed = ?1")?.execute([upto])?;
        Ok(upto)
    })?;
    writer.was_placed(upto);
    Ok(if upto < writer.last() { More::Yes } else { More::No })
}

/// Removes some records of a dead stream. They are found by place, so those come first.
pub(super) fn sweep_some(writer: &mut Writer) -> rusqlite::Result<More> {
    writer.be_patient(Wait::Yes)?;
    writer.transaction(|it| {
        let dead = it
            .conn()
            .prepare_cached("SELECT stream FROM dead WHERE tombstone <= ?1 LIMIT 1")?
            .query_row([it.placed()], |row| row.get::<_, i64>(0))
            .optional()?;
        let Some(stream) = dead else { return Ok(More::No) };
        let some = params![place(stream, 0), place(stream, SEQ_MAX), SWEEP_TURN];
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
        Ok(More::Yes)
    })
}

/// Copies what is in the WAL into the database while appends go on, until little is left.
pub(super) fn copy_wal(keeper: &Connection) -> rusqlite::Result<()> {
    for _ in 0..ROUNDS_MAX {
        if checkpoint(keeper)? < FRAMES_LEFT {
            break;
        }
    }
    Ok(())
}

/// Copies the rest and writes something, with the writer kept out: the first write after
/// everything was copied starts the WAL over, and waits for the disk once. Better here than in
/// an append.
pub(super) fn restart_wal(keeper: &Connection, writer: &mut Writer) -> rusqlite::Result<()> {
    writer.let_go();
    let left = checkpoint(keeper)?;
    place_some(writer)?;
    // A reader may have been in the way: then soon again.
    writer.set_wal_bytes(if left == 0 { 0 } else { WAL_BYTES_MAX / 2 });
    Ok(())
}

/// Frames that could not be copied yet.
fn checkpoint(keeper: &Connection) -> rusqlite::Result<i64> {
    keeper
        .prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?
        .query_row([], |row| Ok(row.get::<_, i64>(1)? - row.get::<_, i64>(2)?))
}

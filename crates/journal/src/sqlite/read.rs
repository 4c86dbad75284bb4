//! Reading: each answer is one snapshot, on a connection that never blocks the writer.

use super::{
    schema::place,
    tail::{Glimpse, Unplaced},
};
use crate::{
    error::Damage,
    journal::Stream,
    record::{Answer, Event, Piece, Reference, SEQ_MAX, checksum},
};
use bytes::Bytes;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};
use std::{collections::HashMap, sync::Arc};

/// Why a read has no answer.
pub(super) enum Failure {
    Damaged { first: u64, damage: Damage },
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Failure {
        Failure::Sqlite(error)
    }
}

/// Whether there is a point in looking at the next record.
enum Next {
    Wanted,
    Done,
}

/// Reads on a snapshot that is younger than the glimpse.
pub(super) fn read(
    conn: &mut Connection,
    stream: &str,
    glimpse: Glimpse,
    mut answer: Answer,
) -> Result<Vec<Event>, Failure> {
    let snapshot = conn.transaction()?;
    match read_on(&snapshot, stream, glimpse, &mut answer) {
        Ok(()) => Ok(answer.into_events()),
        // What comes before the damage is good; the next read starts at it and says so.
        Err(Failure::Damaged { .. }) if !answer.is_empty() => Ok(answer.into_events()),
        Err(failure) => Err(failure),
    }
}

fn read_on(
    conn: &Connection,
    stream: &str,
    mut glimpse: Glimpse,
    answer: &mut Answer,
) -> Result<(), Failure> {
    let found = conn
        .prepare_cached("SELECT number, placed FROM stream, mark WHERE name = ?1")?
        .query_row([stream], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some::<(i64, i64)>((number, placed)) = found else { return Ok(()) };
    if glimpse.number != number && !glimpse.records.is_empty() {
        // Of an earlier stream of this name.
        glimpse = Glimpse::default();
    }

    // The record that contains the next event is the last one that starts no later.
    let start: Option<i64> = conn
        .prepare_cached("SELECT max(at) FROM place WHERE at BETWEEN ?1 AND ?2")?
        .query_row([place(number, 0), place(number, answer.next())], |row| row.get(0))?;
    let start = start.unwrap_or(place(number, 0));
    let by_place = conn.prepare_cached(
        "SELECT r.id, r.epoch, r.first, r.count, r.checksum, r.is_reference, r.body
           FROM place p CROSS JOIN record r ON r.id = p.record
          WHERE p.at BETWEEN ?1 AND ?2 ORDER BY p.at",
    )?;
    let through = [start, place(number, SEQ_MAX)];
    if let Next::Done = take_all(conn, stream, by_place, through, answer)? {
        return Ok(());
    }
    for unplaced in glimpse.records.iter().filter(|it| placed < it.id) {
        if let Next::Done = take_unplaced(conn, stream, *unplaced, answer)? {
            return Ok(());
        }
    }
    let by_search = conn.prepare_cached(
        "SELECT id, epoch, first, count, checksum, is_reference, body FROM record
          WHERE ?1 < id AND stream = ?2 AND 0 < count ORDER BY id",
    )?;
    let after = placed.max(glimpse.upto);
    take_all(conn, stream, by_search, [after, number], answer).map(drop)
}

fn take_unplaced(
    conn: &Connection,
    stream: &str,
    unplaced: Unplaced,
    answer: &mut Answer,
) -> Result<Next, Failure> {
    if !answer.has_room_for(0) {
        return Ok(Next::Done);
    }
    let by_id = conn.prepare_cached(
        "SELECT id, epoch, first, count, checksum, is_reference, body FROM record WHERE id = ?1",
    )?;
    let next = take_all(conn, stream, by_id, [unplaced.id], answer)?;
    if matches!(next, Next::Wanted) && answer.next() <= unplaced.last {
        return Err(Failure::Damaged { first: answer.next(), damage: Damage::Missing });
    }
    Ok(next)
}

fn take_all(
    conn: &Connection,
    stream: &str,
    mut records: CachedStatement<'_>,
    params: impl Params,
    answer: &mut Answer,
) -> Result<Next, Failure> {
    let mut rows = records.query(params)?;
    while let Some(row) = rows.next()? {
        if let Next::Done = take(conn, stream, row, answer)? {
            return Ok(Next::Done);
        }
    }
    Ok(Next::Wanted)
}

/// Adds what one record has to offer.
fn take(
    conn: &Connection,
    stream: &str,
    row: &Row<'_>,
    answer: &mut Answer,
) -> Result<Next, Failure> {
    let unsigned = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
    let (epoch, first, count) = (unsigned(1)?, unsigned(2)?, unsigned(3)?);
    let next = answer.next();
    if first.saturating_add(count) <= next {
        return Ok(Next::Wanted);
    }
    if next < first {
        return Err(Failure::Damaged { first: next, damage: Damage::Missing });
    }
    if !answer.has_room_for(0) {
        return Ok(Next::Done);
    }
    // The record may begin before the event that is asked for.
    let damaged = |damage| Failure::Damaged { first: next, damage };
    let count = u32::try_from(count).map_err(|_| damaged(Damage::Checksum))?;
    let is_reference = row.get(5)?;
    let body = row.get_ref(6)?.as_blob().map_err(|_| damaged(Damage::Checksum))?;
    let piece = Piece { first, count, body: Bytes::copy_from_slice(body) };
    if checksum(stream, epoch, &piece, is_reference) != row.get::<_, u32>(4)? {
        return Err(damaged(Damage::Checksum));
    }
    let all_fit = if is_reference {
        let reference = Reference::parse(&piece.body).ok_or(damaged(Damage::Blob))?;
        // Asked before it is fetched: it may be far too long for this answer.
        answer.has_room_for(reference.bytes)
            && answer.push(fetch(conn, row.get(0)?, reference)?.ok_or(damaged(Damage::Blob))?)
    } else {
        answer.unpack(first, &piece.body)
    };
    Ok(if all_fit { Next::Wanted } else { Next::Done })
}

fn fetch(conn: &Connection, record: i64, reference: Reference) -> rusqlite::Result<Option<Bytes>> {
    let mut blobs = conn.prepare_cached("SELECT body FROM blob WHERE record = ?1")?;
    let body: Option<Vec<u8>> = blobs.query_row([record], |row| row.get(0)).optional()?;
    Ok(body.filter(|it| Reference::to(it) == reference).map(Bytes::from))
}

pub(super) fn each_stream(
    conn: &mut Connection,
    take: &mut dyn FnMut(Stream),
) -> rusqlite::Result<()> {
    let conn = conn.transaction()?;
    let mut tail = HashMap::<i64, u64>::new();
    let mut records = conn.prepare_cached(
        "SELECT stream, max(first + count) - 1 FROM record, mark
          WHERE placed < id AND 0 < count GROUP BY stream",
    )?;
    let mut rows = records.query([])?;
    while let Some(row) = rows.next()? {
        tail.insert(row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned());
    }
    let mut streams = conn.prepare_cached(
        "SELECT number, name, epoch, summary, summary_upto,
                (SELECT (at & ?1) + count - 1 FROM place
                  WHERE at BETWEEN number << ?2 AND (number << ?2) | ?1 ORDER BY at DESC LIMIT 1)
           FROM stream ORDER BY name",
    )?;
    let found =
        streams.query_map([SEQ_MAX.cast_signed(), crate::record::SEQ_BITS.into()], |row| {
            let placed: Option<i64> = row.get(5)?;
            let head = tail.get(&row.get(0)?).copied();
            Ok(Stream {
                name: row.get::<_, Arc<str>>(1)?,
                epoch: row.get::<_, i64>(2)?.cast_unsigned(),
                head: head.unwrap_or(placed.unwrap_or(0).cast_unsigned()),
                summary: row.get::<_, Vec<u8>>(3)?.into(),
                summary_upto: row.get::<_, i64>(4)?.cast_unsigned(),
            })
        })?;
    for stream in found {
        take(stream?);
    }
    Ok(())
}

//! Reads events. Each read uses one snapshot, on a connection that never blocks the writer.

use super::{
    schema::index_key,
    unindexed_tail::{StreamTail, UnindexedRecord},
};
use crate::{
    error::RecordDamage,
    limits::SEQ_MAX,
    record::{BlobReference, EventBatch, RecordContent, StoredEvent, compute_checksum},
    stream::StreamInfo,
};
use bytes::Bytes;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};
use std::{collections::HashMap, sync::Arc};

/// Why a read failed.
pub(super) enum ReadFailure {
    Damaged { first: u64, damage: RecordDamage },
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for ReadFailure {
    fn from(error: rusqlite::Error) -> ReadFailure {
        ReadFailure::Sqlite(error)
    }
}

/// Whether to continue with the next record.
enum ReadProgress {
    Continue,
    Finished,
}

/// Reads from a snapshot that is newer than `stream_tail`.
pub(super) fn read_events(
    conn: &mut Connection,
    stream: &str,
    stream_tail: StreamTail,
    mut batch: EventBatch,
) -> Result<Vec<StoredEvent>, ReadFailure> {
    let snapshot = conn.transaction()?;
    match fill_batch(&snapshot, stream, stream_tail, &mut batch) {
        Ok(()) => Ok(batch.into_events()),
        // The events before the damage are intact. The next read starts at the damage and fails.
        Err(ReadFailure::Damaged { .. }) if !batch.is_empty() => Ok(batch.into_events()),
        Err(failure) => Err(failure),
    }
}

fn fill_batch(
    conn: &Connection,
    stream: &str,
    mut stream_tail: StreamTail,
    batch: &mut EventBatch,
) -> Result<(), ReadFailure> {
    let found = conn
        .prepare_cached("SELECT number, placed FROM stream, mark WHERE name = ?1")?
        .query_row([stream], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some::<(i64, i64)>((number, indexed)) = found else { return Ok(()) };
    if stream_tail.number != number && !stream_tail.records.is_empty() {
        // It belongs to an earlier stream of this name.
        stream_tail = StreamTail::default();
    }

    // The record that contains the next event is the last one that starts no later.
    let start: Option<i64> = conn
        .prepare_cached("SELECT max(at) FROM place WHERE at BETWEEN ?1 AND ?2")?
        .query_row([index_key(number, 0), index_key(number, batch.next_seq())], |row| row.get(0))?;
    let start = start.unwrap_or(index_key(number, 0));
    let by_index = conn.prepare_cached(
        "SELECT r.id, r.epoch, r.first, r.count, r.checksum, r.is_reference, r.body
           FROM place p CROSS JOIN record r ON r.id = p.record
          WHERE p.at BETWEEN ?1 AND ?2 ORDER BY p.at",
    )?;
    let range = [start, index_key(number, SEQ_MAX)];
    if let ReadProgress::Finished = add_records(conn, stream, by_index, range, batch)? {
        return Ok(());
    }
    for unindexed in stream_tail.records.iter().filter(|it| indexed < it.id) {
        if let ReadProgress::Finished = add_unindexed_record(conn, stream, *unindexed, batch)? {
            return Ok(());
        }
    }
    let by_search = conn.prepare_cached(
        "SELECT id, epoch, first, count, checksum, is_reference, body FROM record
          WHERE ?1 < id AND stream = ?2 AND 0 < count ORDER BY id",
    )?;
    let after = indexed.max(stream_tail.upto);
    add_records(conn, stream, by_search, [after, number], batch).map(drop)
}

fn add_unindexed_record(
    conn: &Connection,
    stream: &str,
    unindexed: UnindexedRecord,
    batch: &mut EventBatch,
) -> Result<ReadProgress, ReadFailure> {
    if !batch.has_space_for(0) {
        return Ok(ReadProgress::Finished);
    }
    let by_id = conn.prepare_cached(
        "SELECT id, epoch, first, count, checksum, is_reference, body FROM record WHERE id = ?1",
    )?;
    let next = add_records(conn, stream, by_id, [unindexed.id], batch)?;
    if matches!(next, ReadProgress::Continue) && batch.next_seq() <= unindexed.last {
        return Err(ReadFailure::Damaged {
            first: batch.next_seq(),
            damage: RecordDamage::Missing,
        });
    }
    Ok(next)
}

fn add_records(
    conn: &Connection,
    stream: &str,
    mut records: CachedStatement<'_>,
    params: impl Params,
    batch: &mut EventBatch,
) -> Result<ReadProgress, ReadFailure> {
    let mut rows = records.query(params)?;
    while let Some(row) = rows.next()? {
        if let ReadProgress::Finished = add_record(conn, stream, row, batch)? {
            return Ok(ReadProgress::Finished);
        }
    }
    Ok(ReadProgress::Continue)
}

/// Adds the events of one record.
fn add_record(
    conn: &Connection,
    stream: &str,
    row: &Row<'_>,
    batch: &mut EventBatch,
) -> Result<ReadProgress, ReadFailure> {
    let unsigned = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
    let (epoch, first, count) = (unsigned(1)?, unsigned(2)?, unsigned(3)?);
    let next = batch.next_seq();
    if first.saturating_add(count) <= next {
        return Ok(ReadProgress::Continue);
    }
    if next < first {
        return Err(ReadFailure::Damaged { first: next, damage: RecordDamage::Missing });
    }
    if !batch.has_space_for(0) {
        return Ok(ReadProgress::Finished);
    }
    // The record may start before the requested event.
    let damaged = |damage| ReadFailure::Damaged { first: next, damage };
    let count = u32::try_from(count).map_err(|_| damaged(RecordDamage::Checksum))?;
    let is_reference = row.get(5)?;
    let body = row.get_ref(6)?.as_blob().map_err(|_| damaged(RecordDamage::Checksum))?;
    let content = RecordContent { first, count, body: Bytes::copy_from_slice(body) };
    if compute_checksum(stream, epoch, &content, is_reference) != row.get::<_, u32>(4)? {
        return Err(damaged(RecordDamage::Checksum));
    }
    let all_fit = if is_reference {
        let reference = BlobReference::parse(&content.body).ok_or(damaged(RecordDamage::Blob))?;
        // The size is checked before the blob is read: it may be far too long for this batch.
        batch.has_space_for(reference.bytes)
            && batch.push_line(
                read_blob(conn, row.get(0)?, reference)?.ok_or(damaged(RecordDamage::Blob))?,
            )
    } else {
        batch.push_record(first, &content.body)
    };
    Ok(if all_fit { ReadProgress::Continue } else { ReadProgress::Finished })
}

fn read_blob(
    conn: &Connection,
    record: i64,
    reference: BlobReference,
) -> rusqlite::Result<Option<Bytes>> {
    let mut blobs = conn.prepare_cached("SELECT body FROM blob WHERE record = ?1")?;
    let body: Option<Vec<u8>> = blobs.query_row([record], |row| row.get(0)).optional()?;
    Ok(body.filter(|it| BlobReference::for_body(it) == reference).map(Bytes::from))
}

pub(super) fn for_each_stream(
    conn: &mut Connection,
    visit: &mut dyn FnMut(StreamInfo),
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
        streams.query_map([SEQ_MAX.cast_signed(), crate::limits::SEQ_BITS.into()], |row| {
            let indexed: Option<i64> = row.get(5)?;
            let head = tail.get(&row.get(0)?).copied();
            Ok(StreamInfo {
                name: row.get::<_, Arc<str>>(1)?,
                epoch: row.get::<_, i64>(2)?.cast_unsigned(),
                head: head.unwrap_or(indexed.unwrap_or(0).cast_unsigned()),
                summary: row.get::<_, Vec<u8>>(3)?.into(),
                summary_upto: row.get::<_, i64>(4)?.cast_unsigned(),
            })
        })?;
    for stream in found {
        visit(stream?);
    }
    Ok(())
}

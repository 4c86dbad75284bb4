//! The one connection that writes, and what it remembers of the streams.
//!
//! What it remembers is true as of record `last`. Every change by anyone takes the next record id,
//! so an insert of `last + 1` that succeeds proves that nothing changed in between; one that meets
//! an existing row proves that something did, and everything is read again.

use super::{
    schema::{PATIENCE, is_busy, last_record, place},
    snapshot::{Snapshot, is_outrun},
    tail::{SharedTail, Unplaced},
};
use crate::{
    error::AppendError,
    record::{Append, Piece, RECORD_BYTES_MAX, Reference, SEQ_MAX, checksum, pieces},
};
use rusqlite::{Connection, OptionalExtension, params};
use std::{collections::HashMap, sync::Arc, time::Duration};

/// Streams remembered at once; beyond that everything is forgotten and read again when needed.
/// Few in tests, so that they see it.
const KNOWN_MAX: usize = if cfg!(test) { 64 } else { 65_536 };

/// What one record adds to the WAL beside its body: its page, and now and then a few more.
const RECORD_WAL_BYTES: usize = 5_000;

const INSERT: &str = "INSERT INTO record VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";

pub(super) struct Writer {
    conn: Connection,
    /// Whether the rest may be trusted.
    is_fresh: bool,
    /// The last record of the log.
    last: i64,
    /// `place` covers the log up to here.
    placed: i64,
    known: HashMap<Arc<str>, Known>,
    /// The records beyond `placed`, for the readers.
    tail: SharedTail,
    patience: Duration,
    /// An estimate of what was written to the WAL since it was last emptied.
    wal_bytes: usize,
    snapshot: Snapshot,
}

/// What is known of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) number: i64,
    pub(super) epoch: u64,
    pub(super) head: u64,
}

/// Whether to wait for another process that is writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    Yes,
    No,
}

type Outcome = Result<u64, AppendError>;

impl Writer {
    pub(super) fn new(conn: Connection, tail: SharedTail) -> Writer {
        Writer {
            conn,
            is_fresh: false,
            last: 0,
            placed: 0,
            known: HashMap::new(),
            tail,
            patience: PATIENCE,
            wal_bytes: 0,
            snapshot: Snapshot::default(),
        }
    }

    pub(super) fn unplaced(&self) -> u64 {
        (self.last - self.placed).cast_unsigned()
    }

    pub(super) fn wal_bytes(&self) -> usize {
        self.wal_bytes
    }

    pub(super) fn set_wal_bytes(&mut self, bytes: usize) {
        self.wal_bytes = bytes;
    }

    pub(super) fn last(&self) -> i64 {
        self.last
    }

    pub(super) fn placed(&self) -> i64 {
        self.placed
    }

    pub(super) fn conn(&self) -> &Connection {
        &self.conn
    }

    /// Appends a batch in one transaction. None only with `Wait::No`: another process writes.
    pub(super) fn append(&mut self, batch: &[Append], wait: Wait) -> Option<Vec<Outcome>> {
        let mut outcomes = Vec::with_capacity(batch.len());
        let done = self.be_patient(wait).and_then(|()| match batch {
            [] => Ok(()),
            [append] if self.append_quickly(append, wait, &mut outcomes)? => Ok(()),
            _ => self.transaction(|it| it.append_all(batch, &mut outcomes)),
        });
        let error = match done {
            Ok(()) => return Some(outcomes),
            Err(error) if wait == Wait::No && is_busy(&error) => return None,
            Err(error) => Arc::new(error),
        };
        let unavailable = |append: &Append| AppendError::Unavailable {
            stream: Arc::clone(&append.stream),
            count: append.count,
            source: error.clone(),
        };
        // What was refused stays refused; what was to be stored was not.
        let mut judged = outcomes.into_iter();
        Some(
            batch
                .iter()
                .map(|append| match judged.next() {
                    Some(Err(refusal)) => Err(refusal),
                    _ => Err(unavailable(append)),
                })
                .collect(),
        )
    }

    /// The common case, in one statement: one record behind a stream we know. False if it is not.
    fn append_quickly(
        &mut self,
        append: &Append,
        wait: Wait,
        outcomes: &mut Vec<Outcome>,
    ) -> rusqlite::Result<bool> {
        let Some(&known) = self.known.get(&append.stream).filter(|_| self.is_fresh) else {
            return Ok(false);
        };
        let continues = known.epoch == append.epoch && known.head + 1 == append.first;
        let is_plain = append.summary.is_none() && append.body.len() <= RECORD_BYTES_MAX;
        if !continues || !is_plain || append.check().is_err() {
            return Ok(false);
        }
        let piece = Piece { first: append.first, count: append.count, body: append.body.clone() };
        // Who waits may wait for a copy of the WAL, and a snapshot would be in its way.
        let ready = if wait == Wait::No { self.snapshot.begin(&self.conn) } else { Ok(()) };
        match ready.and_then(|()| self.insert(&append.stream, known, &piece)) {
            Ok(()) => {
                self.add_to_tail(&append.stream, known, &piece);
                self.tail.commit(self.last);
                self.remember(&append.stream, Known { head: append.last(), ..known });
                outcomes.push(Ok(append.last()));
                Ok(true)
            }
            Err(error) if is_outrun(&error) => Ok(false),
            Err(error) => {
                self.is_fresh = false;
                Err(error)
            }
        }
    }

    fn append_all(
        &mut self,
        batch: &[Append],
        outcomes: &mut Vec<Outcome>,
    ) -> rusqlite::Result<()> {
        for append in batch {
            let outcome = match append.check() {
                Ok(()) => self.append_one(append)?,
                Err(source) => {
                    Err(AppendError::Invalid { stream: Arc::clone(&append.stream), source })
                }
            };
            outcomes.push(outcome);
        }
        Ok(())
    }

    fn append_one(&mut self, append: &Append) -> rusqlite::Result<Outcome> {
        let stream = &append.stream;
        let known = self.know(stream)?;
        let actual = known.map_or(0, |it| it.epoch);
        let Some(mut known) = known.filter(|it| it.epoch == append.epoch) else {
            let (stream, epoch) = (Arc::clone(stream), append.epoch);
            return Ok(Err(AppendError::Fenced { stream, epoch, actual }));
        };
        if known.head + 1 < append.first {
            let (stream, first, head) = (Arc::clone(stream), append.first, known.head);
            return Ok(Err(AppendError::Gap { stream, first, head }));
        }
        if let Some((first, body)) = append.missing_after(known.head) {
            for piece in pieces(first, append.last(), body) {
                self.insert(stream, known, &piece)?;
                self.add_to_tail(stream, known, &piece);
            }
            known.head = append.last();
            self.remember(stream, known);
        }
        if let Some(summary) = &append.summary {
            self.conn
                .prepare_cached(
                    "UPDATE stream SET summary = ?2, summary_upto = ?3
                      WHERE number = ?1 AND summary_upto <= ?3",
                )?
                .execute(params![known.number, summary.as_ref(), append.last().cast_signed()])?;
            self.wal_bytes += RECORD_WAL_BYTES + summary.len();
        }
        Ok(Ok(known.head))
    }

    pub(super) fn forget(&mut self, stream: &str) {
        self.known.remove(stream);
        self.tail.lock().forget(stream);
    }

    /// Notes that `place` now covers the log up to this record.
    pub(super) fn was_placed(&mut self, upto: i64) {
        self.placed = upto;
        self.tail.lock().was_placed(upto);
    }

    fn add_to_tail(&mut self, stream: &Arc<str>, known: Known, piece: &Piece) {
        let last = piece.first + u64::from(piece.count) - 1;
        let record = Unplaced { id: self.last, first: piece.first, last };
        self.tail.add(stream, known.number, record);
    }

    /// Runs the work in a transaction that nobody else can come between, on fresh knowledge.
    pub(super) fn transaction<T>(
        &mut self,
        work: impl FnOnce(&mut Writer) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        // It would refuse to write if somebody else has written since.
        self.let_go();
        self.run("BEGIN IMMEDIATE")?;
        let done = self.refresh().and_then(|()| work(self)).and_then(|done| {
            self.run("COMMIT")?;
            Ok(done)
        });
        if done.is_ok() {
            self.tail.commit(self.last);
        } else {
            self.tail.roll_back();
            self.is_fresh = false;
            if !self.conn.is_autocommit() {
                // The first error says more than one from here, and the next `BEGIN` would fail.
                let _ = self.run("ROLLBACK");
            }
        }
        done
    }

    /// Reads everything again if anyone else wrote.
    fn refresh(&mut self) -> rusqlite::Result<()> {
        let last = last_record(&self.conn)?;
        if self.is_fresh && self.last == last {
            return Ok(());
        }
        self.known.clear();
        self.last = last;
        self.placed =
            self.conn.prepare_cached("SELECT placed FROM mark")?.query_row([], |row| row.get(0))?;
        let mut unplaced = self.conn.prepare_cached(
            "SELECT name, number, id, first, first + count - 1
               FROM record CROSS JOIN stream ON number = record.stream
              WHERE ?1 < id AND 0 < count ORDER BY id",
        )?;
        let mut rows = unplaced.query([self.placed])?;
        let mut tail = self.tail.lock();
        // Should this fail half-way, the readers search for the rest themselves.
        tail.restart(self.placed);
        while let Some(row) = rows.next()? {
            let seq = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
            let record = Unplaced { id: row.get(2)?, first: seq(3)?, last: seq(4)? };
            tail.add(&row.get(0)?, row.get(1)?, record);
            tail.reached(record.id);
        }
        tail.reached(last);
        self.is_fresh = true;
        Ok(())
    }

    /// What is known of a stream, read if need be; only inside a transaction.
    pub(super) fn know(&mut self, stream: &str) -> rusqlite::Result<Option<Known>> {
        if let Some(&known) = self.known.get(stream) {
            return Ok(Some(known));
        }
        let found = self
            .conn
            .prepare_cached("SELECT number, epoch FROM stream WHERE name = ?1")?
            .query_row([stream], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some::<(i64, i64)>((number, epoch)) = found else { return Ok(None) };
        let unplaced = self.tail.lock().head(stream);
        let head = match unplaced {
            Some(head) => head,
            None => placed_head(&self.conn, number)?,
        };
        let known = Known { number, epoch: epoch.cast_unsigned(), head };
        self.remember(&stream.into(), known);
        Ok(Some(known))
    }

    pub(super) fn remember(&mut self, stream: &Arc<str>, known: Known) {
        if let Some(it) = self.known.get_mut(stream) {
            *it = known;
            return;
        }
        if KNOWN_MAX <= self.known.len() {
            // What follows in this transaction still builds on it; the next one starts anew.
            self.is_fresh = false;
        }
        self.known.insert(Arc::clone(stream), known);
    }

    pub(super) fn insert(
        &mut self,
        stream: &str,
        known: Known,
        piece: &Piece,
    ) -> rusqlite::Result<()> {
        if piece.is_large() {
            return self.insert_large(stream, known, piece);
        }
        self.insert_record(stream, known, piece, false)
    }

    fn insert_large(&mut self, stream: &str, known: Known, piece: &Piece) -> rusqlite::Result<()> {
        let line = Reference::to(&piece.body).to_line();
        let reference = Piece { first: piece.first, count: 1, body: line.into() };
        self.insert_record(stream, known, &reference, true)?;
        self.conn
            .prepare_cached("INSERT INTO blob VALUES (?1, ?2)")?
            .execute(params![self.last, piece.body.as_ref()])?;
        self.wal_bytes += piece.body.len();
        Ok(())
    }

    fn insert_record(
        &mut self,
        stream: &str,
        known: Known,
        piece: &Piece,
        is_reference: bool,
    ) -> rusqlite::Result<()> {
        let checksum = checksum(stream, known.epoch, piece, is_reference);
        self.conn.prepare_cached(INSERT)?.execute(params![
            self.last + 1,
            known.number,
            known.epoch.cast_signed(),
            piece.first.cast_signed(),
            piece.count,
            checksum,
            is_reference,
            piece.body.as_ref(),
        ])?;
        self.last += 1;
        self.wal_bytes += RECORD_WAL_BYTES + piece.body.len();
        Ok(())
    }

    pub(super) fn be_patient(&mut self, wait: Wait) -> rusqlite::Result<()> {
        let patience = if wait == Wait::Yes { PATIENCE } else { Duration::ZERO };
        if self.patience != patience {
            self.conn.busy_timeout(patience)?;
            self.patience = patience;
        }
        Ok(())
    }

    /// What is in the WAL can be copied only as far as no snapshot needs it there.
    pub(super) fn let_go(&mut self) {
        self.snapshot.end(&self.conn);
    }

    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(drop)
    }
}

/// The head of a stream as far as `place` knows.
fn placed_head(conn: &Connection, number: i64) -> rusqlite::Result<u64> {
    let head: Option<i64> = conn
        .prepare_cached(
            "SELECT (at & ?3) + count - 1 FROM place
              WHERE at BETWEEN ?1 AND ?2 ORDER BY at DESC LIMIT 1",
        )?
        .query_row([place(number, 0), place(number, SEQ_MAX), SEQ_MAX.cast_signed()], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(head.unwrap_or(0).cast_unsigned())
}

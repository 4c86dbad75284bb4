//! The connection that writes, and its cache of stream states.
//!
//! The cache is valid as of record `last`. Every change by any process takes the next record id. So
//! a successful insert of `last + 1` proves that nothing changed in between. An insert that finds
//! an existing row proves the opposite, and the cache is loaded again.

use super::{
    read_snapshot::{ReadSnapshot, is_overtaken},
    schema::{BUSY_TIMEOUT, index_key, is_busy, last_record},
    unindexed_tail::{TailUpdates, UnindexedRecord},
};
use crate::{
    error::AppendError,
    limits::{RECORD_BYTES_MAX, SEQ_MAX},
    record::{AppendRequest, RecordContent, split_into_records},
};
use rusqlite::{Connection, OptionalExtension, params};
use std::{collections::HashMap, sync::Arc, time::Duration};

/// The size of the cache. When it is full, the cache is cleared and filled again on demand. Low in
/// tests, so that tests reach it.
const CACHED_STREAMS_MAX: usize = if cfg!(test) { 64 } else { 65_536 };

/// The estimated overhead of one record in the WAL: its page, and occasionally a few more.
pub(super) const RECORD_WAL_BYTES: usize = 5_000;

pub(super) struct SqliteWriter {
    conn: Connection,
    /// Whether the following fields are valid.
    is_fresh: bool,
    /// The id of the last record of the log.
    last: i64,
    /// The id of the last record that `place` contains.
    indexed: i64,
    streams: HashMap<Arc<str>, StreamState>,
    /// The records after `indexed`, for readers.
    tail: TailUpdates,
    busy_timeout: Duration,
    /// An estimate of the bytes written to the WAL since it was last restarted.
    wal_bytes: usize,
    snapshot: ReadSnapshot,
}

/// The cached state of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamState {
    pub(super) number: i64,
    pub(super) epoch: u64,
    pub(super) head: u64,
}

/// What to do while another process is writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BusyPolicy {
    Wait,
    Fail,
}

type AppendOutcome = Result<u64, AppendError>;

impl SqliteWriter {
    pub(super) fn new(conn: Connection, tail: TailUpdates) -> SqliteWriter {
        SqliteWriter {
            conn,
            is_fresh: false,
            last: 0,
            indexed: 0,
            streams: HashMap::new(),
            tail,
            busy_timeout: BUSY_TIMEOUT,
            wal_bytes: 0,
            snapshot: ReadSnapshot::default(),
        }
    }

    pub(super) fn unindexed_count(&self) -> u64 {
        (self.last - self.indexed).cast_unsigned()
    }

    pub(super) fn wal_bytes(&self) -> usize {
        self.wal_bytes
    }

    pub(super) fn set_wal_bytes(&mut self, bytes: usize) {
        self.wal_bytes = bytes;
    }

    pub(super) fn last_record(&self) -> i64 {
        self.last
    }

    pub(super) fn set_last_record(&mut self, id: i64) {
        self.last = id;
    }

    pub(super) fn indexed_upto(&self) -> i64 {
        self.indexed
    }

    pub(super) fn conn(&self) -> &Connection {
        &self.conn
    }

    /// Appends a batch in one transaction. Returns `None` only with [`BusyPolicy::Fail`], if
    /// another process is writing.
    pub(super) fn append_batch(
        &mut self,
        batch: &[AppendRequest],
        busy_policy: BusyPolicy,
    ) -> Option<Vec<AppendOutcome>> {
        let mut outcomes = Vec::with_capacity(batch.len());
        let done = self.set_busy_policy(busy_policy).and_then(|()| match batch {
            [] => Ok(()),
            [append] if self.try_append_single(append, busy_policy, &mut outcomes)? => Ok(()),
            _ => self.run_transaction(|it| it.append_all(batch, &mut outcomes)),
        });
        let error = match done {
            Ok(()) => return Some(outcomes),
            Err(error) if busy_policy == BusyPolicy::Fail && is_busy(&error) => return None,
            Err(error) => Arc::new(error),
        };
        let unavailable = |append: &AppendRequest| AppendError::Unavailable {
            stream: Arc::clone(&append.stream),
            count: append.count,
            source: error.clone(),
        };
        // Refused appends keep their error; the others were not stored.
        let mut outcomes = outcomes.into_iter();
        Some(
            batch
                .iter()
                .map(|append| match outcomes.next() {
                    Some(Err(refusal)) => Err(refusal),
                    _ => Err(unavailable(append)),
                })
                .collect(),
        )
    }

    /// Handles the common case with one statement: one record after the head of a cached stream.
    /// Returns `false` if the append is not of this kind.
    fn try_append_single(
        &mut self,
        append: &AppendRequest,
        busy_policy: BusyPolicy,
        outcomes: &mut Vec<AppendOutcome>,
    ) -> rusqlite::Result<bool> {
        let Some(&state) = self.streams.get(&append.stream).filter(|_| self.is_fresh) else {
            return Ok(false);
        };
        let continues = state.epoch == append.epoch && state.head + 1 == append.first;
        let is_plain = append.summary.is_none() && append.body.len() <= RECORD_BYTES_MAX;
        if !continues || !is_plain || append.validate().is_err() {
            return Ok(false);
        }
        let content =
            RecordContent { first: append.first, count: append.count, body: append.body.clone() };
        // With `BusyPolicy::Wait` a checkpoint may be running, which an open snapshot would
        // obstruct.
        let ready = if busy_policy == BusyPolicy::Fail {
            self.snapshot.ensure_open(&self.conn)
        } else {
            Ok(())
        };
        match ready.and_then(|()| self.insert_record(&append.stream, state, &content)) {
            Ok(()) => {
                self.add_to_tail(&append.stream, state, &content);
                self.tail.commit(self.last);
                self.cache_stream(&append.stream, StreamState { head: append.last_seq(), ..state });
                outcomes.push(Ok(append.last_seq()));
                Ok(true)
            }
            Err(error) if is_overtaken(&error) => Ok(false),
            Err(error) => {
                self.is_fresh = false;
                Err(error)
            }
        }
    }

    fn append_all(
        &mut self,
        batch: &[AppendRequest],
        outcomes: &mut Vec<AppendOutcome>,
    ) -> rusqlite::Result<()> {
        for append in batch {
            let outcome = match append.validate() {
                Ok(()) => self.append_one(append)?,
                Err(source) => {
                    Err(AppendError::Invalid { stream: Arc::clone(&append.stream), source })
                }
            };
            outcomes.push(outcome);
        }
        Ok(())
    }

    fn append_one(&mut self, append: &AppendRequest) -> rusqlite::Result<AppendOutcome> {
        let stream = &append.stream;
        let state = self.load_stream(stream)?;
        let actual = state.map_or(0, |it| it.epoch);
        let Some(mut state) = state.filter(|it| it.epoch == append.epoch) else {
            let (stream, epoch) = (Arc::clone(stream), append.epoch);
            return Ok(Err(AppendError::Fenced { stream, epoch, actual }));
        };
        if state.head + 1 < append.first {
            let (stream, first, head) = (Arc::clone(stream), append.first, state.head);
            return Ok(Err(AppendError::Gap { stream, first, head }));
        }
        if let Some((first, body)) = append.missing_after(state.head) {
            for content in split_into_records(first, append.last_seq(), body) {
                self.insert_record(stream, state, &content)?;
                self.add_to_tail(stream, state, &content);
            }
            state.head = append.last_seq();
            self.cache_stream(stream, state);
        }
        if let Some(summary) = &append.summary {
            self.conn
                .prepare_cached(
                    "UPDATE stream SET summary = ?2, summary_upto = ?3
                      WHERE number = ?1 AND summary_upto <= ?3",
                )?
                .execute(params![
                    state.number,
                    summary.as_ref(),
                    append.last_seq().cast_signed()
                ])?;
            self.wal_bytes += RECORD_WAL_BYTES + summary.len();
        }
        Ok(Ok(state.head))
    }

    pub(super) fn forget_stream(&mut self, stream: &str) {
        self.streams.remove(stream);
        self.tail.lock().forget_stream(stream);
    }

    /// Records that `place` now contains the log up to this record.
    pub(super) fn mark_indexed(&mut self, upto: i64) {
        self.indexed = upto;
        self.tail.lock().mark_indexed(upto);
    }

    fn add_to_tail(&mut self, stream: &Arc<str>, state: StreamState, content: &RecordContent) {
        let last = content.first + u64::from(content.count) - 1;
        let record = UnindexedRecord { id: self.last, first: content.first, last };
        self.tail.add_record(stream, state.number, record);
    }

    /// Runs `work` in an exclusive write transaction with a valid cache.
    pub(super) fn run_transaction<T>(
        &mut self,
        work: impl FnOnce(&mut SqliteWriter) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        // SQLite would refuse to write on a snapshot that another connection has overtaken.
        self.close_snapshot();
        self.execute_sql("BEGIN IMMEDIATE")?;
        let done = self.refresh_cache().and_then(|()| work(self)).and_then(|done| {
            self.execute_sql("COMMIT")?;
            Ok(done)
        });
        if done.is_ok() {
            self.tail.commit(self.last);
        } else {
            self.tail.roll_back();
            self.is_fresh = false;
            if !self.conn.is_autocommit() {
                // Without the rollback the next `BEGIN` would fail. The first error is reported.
                let _ = self.execute_sql("ROLLBACK");
            }
        }
        done
    }

    /// Reloads the cache if another connection has written.
    fn refresh_cache(&mut self) -> rusqlite::Result<()> {
        let last = last_record(&self.conn)?;
        if self.is_fresh && self.last == last {
            return Ok(());
        }
        self.streams.clear();
        self.last = last;
        self.indexed =
            self.conn.prepare_cached("SELECT placed FROM mark")?.query_row([], |row| row.get(0))?;
        let mut unindexed = self.conn.prepare_cached(
            "SELECT name, number, id, first, first + count - 1
               FROM record CROSS JOIN stream ON number = record.stream
              WHERE ?1 < id AND 0 < count ORDER BY id",
        )?;
        let mut rows = unindexed.query([self.indexed])?;
        let mut tail = self.tail.lock();
        // If this fails halfway, readers scan for the remaining records.
        tail.reset(self.indexed);
        while let Some(row) = rows.next()? {
            let seq = |column| row.get::<_, i64>(column).map(i64::cast_unsigned);
            let record = UnindexedRecord { id: row.get(2)?, first: seq(3)?, last: seq(4)? };
            tail.add_record(&row.get(0)?, row.get(1)?, record);
            tail.advance_to(record.id);
        }
        tail.advance_to(last);
        self.is_fresh = true;
        Ok(())
    }

    /// The state of a stream, loaded if it is not cached. Only inside a transaction.
    pub(super) fn load_stream(&mut self, stream: &str) -> rusqlite::Result<Option<StreamState>> {
        if let Some(&state) = self.streams.get(stream) {
            return Ok(Some(state));
        }
        let found = self
            .conn
            .prepare_cached("SELECT number, epoch FROM stream WHERE name = ?1")?
            .query_row([stream], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some::<(i64, i64)>((number, epoch)) = found else { return Ok(None) };
        let unindexed = self.tail.lock().head(stream);
        let head = match unindexed {
            Some(head) => head,
            None => indexed_head(&self.conn, number)?,
        };
        let state = StreamState { number, epoch: epoch.cast_unsigned(), head };
        self.cache_stream(&stream.into(), state);
        Ok(Some(state))
    }

    pub(super) fn cache_stream(&mut self, stream: &Arc<str>, state: StreamState) {
        if let Some(it) = self.streams.get_mut(stream) {
            *it = state;
            return;
        }
        if CACHED_STREAMS_MAX <= self.streams.len() {
            // The rest of this transaction still needs the cache; the next transaction reloads it.
            self.is_fresh = false;
        }
        self.streams.insert(Arc::clone(stream), state);
    }

    pub(super) fn set_busy_policy(&mut self, busy_policy: BusyPolicy) -> rusqlite::Result<()> {
        let busy_timeout =
            if busy_policy == BusyPolicy::Wait { BUSY_TIMEOUT } else { Duration::ZERO };
        if self.busy_timeout != busy_timeout {
            self.conn.busy_timeout(busy_timeout)?;
            self.busy_timeout = busy_timeout;
        }
        Ok(())
    }

    /// Closes the snapshot. A checkpoint cannot go beyond an open snapshot.
    pub(super) fn close_snapshot(&mut self) {
        self.snapshot.close(&self.conn);
    }

    fn execute_sql(&self, sql: &str) -> rusqlite::Result<()> {
        self.conn.prepare_cached(sql)?.execute([]).map(drop)
    }
}

/// The head of a stream according to `place`.
fn indexed_head(conn: &Connection, number: i64) -> rusqlite::Result<u64> {
    let head: Option<i64> = conn
        .prepare_cached(
            "SELECT (at & ?3) + count - 1 FROM place
              WHERE at BETWEEN ?1 AND ?2 ORDER BY at DESC LIMIT 1",
        )?
        .query_row(
            [index_key(number, 0), index_key(number, SEQ_MAX), SEQ_MAX.cast_signed()],
            |row| row.get(0),
        )
        .optional()?;
    Ok(head.unwrap_or(0).cast_unsigned())
}

//! Where sessions are kept: one SQLite file, which people can open with `sqlite3`.
//!
//! An append is one transaction, so that what is read back after a crash is a prefix of what was
//! said. Several processes use the file at once; a session that two of them write to is told apart by
//! its numbers: the second writer of a number is refused.

use crate::history::Entry;
use crate::options::Choices;
use jackfield_private_files as private_files;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many sessions are listed at once.
const PAGE: i64 = 50;
/// Another process holds the file for one append.
const BUSY_MAX: Duration = Duration::from_secs(10);

/// What is known of a session beside its history.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) id: String,
    /// The working directory first, then the additional ones.
    pub(crate) dirs: Vec<PathBuf>,
    pub(crate) title: Option<String>,
    pub(crate) choices: Choices,
    /// What the user allowed for good, by the names of grants.
    pub(crate) allowed: Vec<String>,
    /// Milliseconds since 1970.
    pub(crate) updated: i64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("the sessions cannot be kept in `{path}`")]
    Open { path: PathBuf, source: rusqlite::Error },
    #[error("the directory `{path}` cannot be made")]
    Directory { path: PathBuf, source: std::io::Error },
    #[error("the file `{path}` cannot be made private")]
    File { path: PathBuf, source: std::io::Error },
    #[error("session `{0}` is being used by another process: close it there first")]
    Elsewhere(String),
    #[error("the sessions cannot be read or written")]
    Sql(#[from] rusqlite::Error),
    #[error("session `{id}` is damaged in the store")]
    Damaged { id: String, source: serde_json::Error },
    #[error("`{0}` is no cursor of ours: leave it out to begin anew")]
    Cursor(String),
}

pub(crate) struct Store {
    sql: Connection,
}

/// A page of sessions, the last used first, and where the next one begins.
pub(crate) struct Page {
    pub(crate) records: Vec<Record>,
    pub(crate) next: Option<String>,
}

impl Store {
    pub(crate) fn open(path: &Path) -> Result<Store, StoreError> {
        if let Some(dir) = path.parent() {
            private_files::create_dir(dir)
                .map_err(|source| StoreError::Directory { path: dir.to_owned(), source })?;
        }
        private_files::prepare_database(path)
            .map_err(|source| StoreError::File { path: path.to_owned(), source })?;
        let failed = |source| StoreError::Open { path: path.to_owned(), source };
        let sql = Connection::open(path).map_err(failed)?;
        sql.busy_timeout(BUSY_MAX).map_err(failed)?;
        sql.execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = NORMAL;
             CREATE TABLE IF NOT EXISTS sessions (
                id TEXT PRIMARY KEY, cwd TEXT NOT NULL, dirs TEXT NOT NULL, title TEXT,
                choices TEXT NOT NULL, allowed TEXT NOT NULL, updated INTEGER NOT NULL
             ) STRICT;
             CREATE INDEX IF NOT EXISTS sessions_by_use ON sessions (updated DESC, id);
             CREATE TABLE IF NOT EXISTS entries (
                session TEXT NOT NULL, seq INTEGER NOT NULL, entry TEXT NOT NULL,
                PRIMARY KEY (session, seq)
             ) STRICT, WITHOUT ROWID;",
        )
        .map_err(failed)?;
        Ok(Store { sql })
    }

    /// Writes what is known of a session, new or not.
    pub(crate) fn put(&self, record: &Record) -> Result<(), StoreError> {
        let cwd = record.dirs.first().map(|it| it.to_string_lossy().into_owned());
        self.sql.execute(
            "INSERT OR REPLACE INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                record.id,
                cwd.unwrap_or_default(),
                json(&record.dirs),
                record.title,
                json(&record.choices),
                json(&record.allowed),
                now(),
            ],
        )?;
        Ok(())
    }

    pub(crate) fn get(&self, id: &str) -> Result<Option<Record>, StoreError> {
        let mut query = self.sql.prepare_cached("SELECT * FROM sessions WHERE id = ?1")?;
        let row = query.query_row([id], Row::read).optional()?;
        row.map(Row::record).transpose()
    }

    /// Appends entries behind the first `count`, all or none.
    pub(crate) fn append(
        &mut self,
        id: &str,
        count: i64,
        entries: &[Entry],
    ) -> Result<(), StoreError> {
        // At once, so that a second writer waits here and not half way.
        let work = self.sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert = work.prepare_cached("INSERT INTO entries VALUES (?1, ?2, ?3)")?;
            for (seq, entry) in (count..).zip(entries) {
                insert.execute(params![id, seq, json(entry)]).map_err(|error| {
                    match error.sqlite_error_code() {
                        Some(rusqlite::ErrorCode::ConstraintViolation) => {
                            StoreError::Elsewhere(id.to_owned())
                        }
                        _ => error.into(),
                    }
                })?;
            }
            let mut touch =
                work.prepare_cached("UPDATE sessions SET updated = ?2 WHERE id = ?1")?;
            touch.execute(params![id, now()])?;
        }
        work.commit()?;
        Ok(())
    }

    pub(crate) fn entries(&self, id: &str) -> Result<Vec<Entry>, StoreError> {
        let mut query =
            self.sql.prepare_cached("SELECT entry FROM entries WHERE session = ?1 ORDER BY seq")?;
        let rows = query.query_map([id], |row| row.get::<_, String>(0))?;
        let damaged = |source| StoreError::Damaged { id: id.to_owned(), source };
        rows.map(|row| serde_json::from_str(&row?).map_err(damaged)).collect()
    }

    /// Lists sessions, of one working directory or all.
    pub(crate) fn list(
        &self,
        cwd: Option<&Path>,
        cursor: Option<&str>,
    ) -> Result<Page, StoreError> {
        let (before, id) = match cursor {
            Some(cursor) => parse_cursor(cursor)?,
            None => (i64::MAX, String::new()),
        };
        let cwd = cwd.map(|it| it.to_string_lossy().into_owned());
        let mut query = self.sql.prepare_cached(
            "SELECT * FROM sessions
             WHERE (?1 IS NULL OR cwd = ?1) AND (updated < ?2 OR (updated = ?2 AND id > ?3))
             ORDER BY updated DESC, id LIMIT ?4",
        )?;
        let rows = query.query_map(params![cwd, before, id, PAGE + 1], Row::read)?;
        let records: Result<Vec<Record>, StoreError> = rows.map(|row| row?.record()).collect();
        let mut records = records?;
        let count = i64::try_from(records.len()).unwrap_or(i64::MAX);
        let more = records.pop_if(|_| PAGE < count).is_some();
        let next = records.last().filter(|_| more).map(|it| format!("{}-{}", it.updated, it.id));
        Ok(Page { records, next })
    }

    /// Copies the history of one session to another.
    pub(crate) fn copy(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.sql.execute(
            "INSERT INTO entries SELECT ?2, seq, entry FROM entries WHERE session = ?1",
            [from, to],
        )?;
        Ok(())
    }

    /// Forgets a session; it may be unknown.
    pub(crate) fn delete(&mut self, id: &str) -> Result<(), StoreError> {
        let work = self.sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        work.execute("DELETE FROM entries WHERE session = ?1", [id])?;
        work.execute("DELETE FROM sessions WHERE id = ?1", [id])?;
        work.commit()?;
        Ok(())
    }
}

/// A row of `sessions`, as it is stored.
struct Row {
    id: String,
    dirs: String,
    title: Option<String>,
    choices: String,
    allowed: String,
    updated: i64,
}

impl Row {
    fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
        Ok(Row {
            id: row.get("id")?,
            dirs: row.get("dirs")?,
            title: row.get("title")?,
            choices: row.get("choices")?,
            allowed: row.get("allowed")?,
            updated: row.get("updated")?,
        })
    }

    fn record(self) -> Result<Record, StoreError> {
        let damaged = |source| StoreError::Damaged { id: self.id.clone(), source };
        Ok(Record {
            dirs: serde_json::from_str(&self.dirs).map_err(damaged)?,
            choices: serde_json::from_str(&self.choices).map_err(damaged)?,
            allowed: serde_json::from_str(&self.allowed).map_err(damaged)?,
            id: self.id,
            title: self.title,
            updated: self.updated,
        })
    }
}

fn parse_cursor(cursor: &str) -> Result<(i64, String), StoreError> {
    let parts = cursor.split_once('-').and_then(|(at, id)| Some((at.parse().ok()?, id.to_owned())));
    parts.ok_or_else(|| StoreError::Cursor(cursor.to_owned()))
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our own types are JSON")
}

pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Mode;
    use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
    use std::cell::{Cell, RefCell};

    fn record(id: &str, cwd: &str) -> Record {
        let choices = Choices { mode: Mode::Edit, model: "m".to_owned(), effort: None };
        Record {
            id: id.to_owned(),
            dirs: vec![cwd.into(), "/more".into()],
            title: Some("A title".to_owned()),
            choices,
            allowed: vec!["shell cargo test".to_owned()],
            updated: 0,
        }
    }

    fn hint(text: &str) -> Entry {
        Entry::Hint { text: text.to_owned() }
    }

    #[test]
    fn what_was_put_is_there_for_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/agent.db");
        let mut store = Store::open(&path).unwrap();
        store.put(&record("a", "/w")).unwrap();
        store.append("a", 0, &[hint("1"), hint("2")]).unwrap();
        store.append("a", 2, &[hint("3")]).unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        let found = store.get("a").unwrap().unwrap();
        assert_eq!(Record { updated: 0, ..found }, record("a", "/w"));
        assert_eq!(store.entries("a").unwrap(), [hint("1"), hint("2"), hint("3")]);
        assert_eq!(store.get("b").unwrap(), None);
    }

    #[test]
    fn a_second_writer_of_a_session_is_refused_and_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.db");
        let (mut one, mut two) = (Store::open(&path).unwrap(), Store::open(&path).unwrap());
        one.put(&record("a", "/w")).unwrap();
        one.append("a", 0, &[hint("1"), hint("2")]).unwrap();
        let refused = two.append("a", 1, &[hint("x"), hint("y")]);
        assert!(matches!(refused, Err(StoreError::Elsewhere(id)) if id == "a"));
        assert_eq!(one.entries("a").unwrap(), [hint("1"), hint("2")]);
    }

    #[test]
    fn pages_tell_every_session_once_the_last_used_first() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("agent.db")).unwrap();
        for at in 0..120 {
            let cwd = if at % 2 == 0 { "/even" } else { "/odd" };
            store.put(&record(&format!("s-{at:03}"), cwd)).unwrap();
        }
        let all = |cwd: Option<&Path>| {
            let (mut seen, mut cursor) = (Vec::new(), None);
            loop {
                let page = store.list(cwd, cursor.as_deref()).unwrap();
                seen.extend(page.records.into_iter().map(|it| (it.updated, it.id)));
                cursor = page.next;
                if cursor.is_none() {
                    return seen;
                }
            }
        };
        let seen = all(None);
        let mut ids: Vec<&String> = seen.iter().map(|it| &it.1).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 120);
        assert!(seen.is_sorted_by(|a, b| b.0 <= a.0));
        assert_eq!(all(Some(Path::new("/even"))).len(), 60);
        assert!(matches!(store.list(None, Some("x")), Err(StoreError::Cursor(_))));
    }

    #[test]
    fn a_copy_is_its_own_and_what_is_deleted_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("agent.db")).unwrap();
        store.put(&record("a", "/w")).unwrap();
        store.append("a", 0, &[hint("1")]).unwrap();
        store.copy("a", "b").unwrap();
        store.put(&record("b", "/w")).unwrap();
        store.append("b", 1, &[hint("2")]).unwrap();
        store.delete("a").unwrap();
        store.delete("a").unwrap();
        assert_eq!(store.get("a").unwrap(), None);
        assert_eq!(store.entries("a").unwrap(), []);
        assert_eq!(store.entries("b").unwrap(), [hint("1"), hint("2")]);
    }

    #[test]
    fn whatever_is_appended_in_whatever_pieces_is_read_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let store = RefCell::new(Store::open(&dir.path().join("agent.db")).unwrap());
        let pieces = vec(vec(".*", 0..4), 0..6);
        let mut runner = TestRunner::new(ProptestConfig::with_cases(256));
        let count = Cell::new(0);
        runner
            .run(&pieces, |pieces| {
                count.set(count.get() + 1);
                let (id, mut store) = (format!("s-{}", count.get()), store.borrow_mut());
                let mut all = Vec::new();
                for piece in pieces {
                    let new: Vec<Entry> = piece.iter().map(|it| hint(it)).collect();
                    store.append(&id, i64::try_from(all.len()).unwrap(), &new).unwrap();
                    all.extend(new);
                }
                prop_assert_eq!(store.entries(&id).unwrap(), all);
                Ok(())
            })
            .unwrap();
    }
}

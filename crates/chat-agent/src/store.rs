//! Stores sessions in one SQLite file, which users can inspect with `sqlite3`.
//!
//! An append is one transaction, so after a crash the stored history is a prefix of the
//! conversation. Several processes use the file at once. If two of them write to the same session,
//! the sequence numbers of their entries collide, and the second writer is refused.

use crate::history::HistoryEntry;
use crate::options::SessionOptions;
use jackfield_private_files as private_files;
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The number of sessions on one page of a list.
const PAGE_LEN: i64 = 50;
/// How long to wait while another process writes. It holds the lock for one append only.
const BUSY_MAX: Duration = Duration::from_secs(10);

/// The properties of a session, without its history.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredSession {
    pub(crate) id: String,
    /// The working directory first, then the additional ones.
    pub(crate) dirs: Vec<PathBuf>,
    pub(crate) title: Option<String>,
    pub(crate) options: SessionOptions,
    /// The names of the permissions that the user granted permanently.
    pub(crate) granted_permissions: Vec<String>,
    /// In milliseconds since 1970.
    pub(crate) updated_at_ms: i64,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("failed to open the session store `{path}`")]
    Open { path: PathBuf, source: rusqlite::Error },
    #[error("failed to create the directory `{path}`")]
    Directory { path: PathBuf, source: std::io::Error },
    #[error("failed to make the file `{path}` private")]
    File { path: PathBuf, source: std::io::Error },
    #[error("session `{0}` is being used by another process: close it there first")]
    UsedElsewhere(String),
    #[error("failed to read or write the session store")]
    Sql(#[from] rusqlite::Error),
    #[error("session `{id}` is damaged in the store")]
    Damaged { id: String, source: serde_json::Error },
    #[error("`{0}` is not a valid cursor; omit it to start from the beginning")]
    InvalidCursor(String),
}

pub(crate) struct ChatSessionStore {
    connection: Connection,
}

/// A page of sessions, most recently used first, and the cursor of the next page.
pub(crate) struct StoredSessionPage {
    pub(crate) records: Vec<StoredSession>,
    pub(crate) next_cursor: Option<String>,
}

impl ChatSessionStore {
    pub(crate) fn open(path: &Path) -> Result<ChatSessionStore, StoreError> {
        if let Some(dir) = path.parent() {
            private_files::create_dir(dir)
                .map_err(|source| StoreError::Directory { path: dir.to_owned(), source })?;
        }
        private_files::prepare_database(path)
            .map_err(|source| StoreError::File { path: path.to_owned(), source })?;
        let connect = || {
            let connection = Connection::open(path)?;
            connection.busy_timeout(BUSY_MAX)?;
            ChatSessionStore::with_tables(connection)
        };
        connect().map_err(|source| StoreError::Open { path: path.to_owned(), source })
    }

    /// A store that ends with the process.
    pub(crate) fn open_in_memory() -> Result<ChatSessionStore, StoreError> {
        Ok(ChatSessionStore::with_tables(Connection::open_in_memory()?)?)
    }

    fn with_tables(connection: Connection) -> rusqlite::Result<ChatSessionStore> {
        connection.execute_batch(
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
        )?;
        Ok(ChatSessionStore { connection })
    }

    /// Inserts or replaces the record of a session.
    pub(crate) fn save_record(&self, record: &StoredSession) -> Result<(), StoreError> {
        let cwd = record.dirs.first().map(|it| it.to_string_lossy().into_owned());
        self.connection.execute(
            "INSERT OR REPLACE INTO sessions VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                record.id,
                cwd.unwrap_or_default(),
                to_json(&record.dirs),
                record.title,
                to_json(&record.options),
                to_json(&record.granted_permissions),
                unix_time_ms(),
            ],
        )?;
        Ok(())
    }

    pub(crate) fn load_record(&self, id: &str) -> Result<Option<StoredSession>, StoreError> {
        let mut query = self.connection.prepare_cached("SELECT * FROM sessions WHERE id = ?1")?;
        let row = query.query_row([id], SessionColumns::from_sql).optional()?;
        row.map(SessionColumns::into_record).transpose()
    }

    /// Appends entries after the first `count` ones, all or none.
    pub(crate) fn append_entries(
        &mut self,
        id: &str,
        count: i64,
        entries: &[HistoryEntry],
    ) -> Result<(), StoreError> {
        // The lock is taken at the start, so that a second writer waits here and not in the middle.
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut insert =
                transaction.prepare_cached("INSERT INTO entries VALUES (?1, ?2, ?3)")?;
            for (seq, entry) in (count..).zip(entries) {
                insert.execute(params![id, seq, to_json(entry)]).map_err(|error| {
                    match error.sqlite_error_code() {
                        Some(rusqlite::ErrorCode::ConstraintViolation) => {
                            StoreError::UsedElsewhere(id.to_owned())
                        }
                        _ => error.into(),
                    }
                })?;
            }
            let mut update =
                transaction.prepare_cached("UPDATE sessions SET updated = ?2 WHERE id = ?1")?;
            update.execute(params![id, unix_time_ms()])?;
        }
        transaction.commit()?;
        Ok(())
    }

    pub(crate) fn load_entries(&self, id: &str) -> Result<Vec<HistoryEntry>, StoreError> {
        let mut query = self
            .connection
            .prepare_cached("SELECT entry FROM entries WHERE session = ?1 ORDER BY seq")?;
        let rows = query.query_map([id], |row| row.get::<_, String>(0))?;
        let to_damaged = |source| StoreError::Damaged { id: id.to_owned(), source };
        rows.map(|row| serde_json::from_str(&row?).map_err(to_damaged)).collect()
    }

    /// Lists the sessions of one working directory, or all sessions.
    pub(crate) fn list_sessions(
        &self,
        cwd: Option<&Path>,
        cursor: Option<&str>,
    ) -> Result<StoredSessionPage, StoreError> {
        let (before, id) = match cursor {
            Some(cursor) => parse_cursor(cursor)?,
            None => (i64::MAX, String::new()),
        };
        let cwd = cwd.map(|it| it.to_string_lossy().into_owned());
        let mut query = self.connection.prepare_cached(
            "SELECT * FROM sessions
             WHERE (?1 IS NULL OR cwd = ?1) AND (updated < ?2 OR (updated = ?2 AND id > ?3))
             ORDER BY updated DESC, id LIMIT ?4",
        )?;
        // One more than a page shows whether there is a next page.
        let rows =
            query.query_map(params![cwd, before, id, PAGE_LEN + 1], SessionColumns::from_sql)?;
        let records: Result<Vec<StoredSession>, StoreError> =
            rows.map(|row| row?.into_record()).collect();
        let mut records = records?;
        let count = i64::try_from(records.len()).unwrap_or(i64::MAX);
        let has_next = records.pop_if(|_| PAGE_LEN < count).is_some();
        let last = records.last().filter(|_| has_next);
        let next_cursor = last.map(|it| format!("{}-{}", it.updated_at_ms, it.id));
        Ok(StoredSessionPage { records, next_cursor })
    }

    /// Copies the history of one session to another.
    pub(crate) fn copy_entries(&self, from: &str, to: &str) -> Result<(), StoreError> {
        self.connection.execute(
            "INSERT INTO entries SELECT ?2, seq, entry FROM entries WHERE session = ?1",
            [from, to],
        )?;
        Ok(())
    }

    /// Deletes a session. Does nothing if it does not exist.
    pub(crate) fn delete_session(&mut self, id: &str) -> Result<(), StoreError> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute("DELETE FROM entries WHERE session = ?1", [id])?;
        transaction.execute("DELETE FROM sessions WHERE id = ?1", [id])?;
        transaction.commit()?;
        Ok(())
    }
}

/// A row of `sessions`, with the JSON columns as text.
struct SessionColumns {
    id: String,
    dirs: String,
    title: Option<String>,
    choices: String,
    allowed: String,
    updated: i64,
}

impl SessionColumns {
    fn from_sql(row: &rusqlite::Row<'_>) -> rusqlite::Result<SessionColumns> {
        Ok(SessionColumns {
            id: row.get("id")?,
            dirs: row.get("dirs")?,
            title: row.get("title")?,
            choices: row.get("choices")?,
            allowed: row.get("allowed")?,
            updated: row.get("updated")?,
        })
    }

    fn into_record(self) -> Result<StoredSession, StoreError> {
        let to_damaged = |source| StoreError::Damaged { id: self.id.clone(), source };
        Ok(StoredSession {
            dirs: serde_json::from_str(&self.dirs).map_err(to_damaged)?,
            options: serde_json::from_str(&self.choices).map_err(to_damaged)?,
            granted_permissions: serde_json::from_str(&self.allowed).map_err(to_damaged)?,
            id: self.id,
            title: self.title,
            updated_at_ms: self.updated,
        })
    }
}

fn parse_cursor(cursor: &str) -> Result<(i64, String), StoreError> {
    let parts = cursor.split_once('-').and_then(|(at, id)| Some((at.parse().ok()?, id.to_owned())));
    parts.ok_or_else(|| StoreError::InvalidCursor(cursor.to_owned()))
}

fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our own types can be serialized")
}

/// Returns the current time in milliseconds since 1970.
pub(crate) fn unix_time_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::AgentMode;
    use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
    use std::cell::{Cell, RefCell};

    fn record(id: &str, cwd: &str) -> StoredSession {
        let options = SessionOptions { mode: AgentMode::Edit, model: "m".to_owned(), effort: None };
        StoredSession {
            id: id.to_owned(),
            dirs: vec![cwd.into(), "/more".into()],
            title: Some("A title".to_owned()),
            options,
            granted_permissions: vec!["shell cargo test".to_owned()],
            updated_at_ms: 0,
        }
    }

    fn hint(text: &str) -> HistoryEntry {
        HistoryEntry::Hint { text: text.to_owned() }
    }

    #[test]
    fn stored_session_is_readable_after_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/agent.db");
        let mut store = ChatSessionStore::open(&path).unwrap();
        store.save_record(&record("a", "/w")).unwrap();
        store.append_entries("a", 0, &[hint("1"), hint("2")]).unwrap();
        store.append_entries("a", 2, &[hint("3")]).unwrap();
        drop(store);
        let store = ChatSessionStore::open(&path).unwrap();
        let found = store.load_record("a").unwrap().unwrap();
        assert_eq!(StoredSession { updated_at_ms: 0, ..found }, record("a", "/w"));
        assert_eq!(store.load_entries("a").unwrap(), [hint("1"), hint("2"), hint("3")]);
        assert_eq!(store.load_record("b").unwrap(), None);
    }

    #[test]
    fn second_writer_of_a_session_is_refused_and_writes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.db");
        let (mut one, mut two) =
            (ChatSessionStore::open(&path).unwrap(), ChatSessionStore::open(&path).unwrap());
        one.save_record(&record("a", "/w")).unwrap();
        one.append_entries("a", 0, &[hint("1"), hint("2")]).unwrap();
        let refused = two.append_entries("a", 1, &[hint("x"), hint("y")]);
        assert!(matches!(refused, Err(StoreError::UsedElsewhere(id)) if id == "a"));
        assert_eq!(one.load_entries("a").unwrap(), [hint("1"), hint("2")]);
    }

    #[test]
    fn pages_list_every_session_once_most_recently_used_first() {
        let dir = tempfile::tempdir().unwrap();
        let store = ChatSessionStore::open(&dir.path().join("agent.db")).unwrap();
        for at in 0..120 {
            let cwd = if at % 2 == 0 { "/even" } else { "/odd" };
            store.save_record(&record(&format!("s-{at:03}"), cwd)).unwrap();
        }
        let all = |cwd: Option<&Path>| {
            let (mut seen, mut cursor) = (Vec::new(), None);
            loop {
                let page = store.list_sessions(cwd, cursor.as_deref()).unwrap();
                seen.extend(page.records.into_iter().map(|it| (it.updated_at_ms, it.id)));
                cursor = page.next_cursor;
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
        assert!(matches!(store.list_sessions(None, Some("x")), Err(StoreError::InvalidCursor(_))));
    }

    #[test]
    fn copy_is_independent_and_deleted_session_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = ChatSessionStore::open(&dir.path().join("agent.db")).unwrap();
        store.save_record(&record("a", "/w")).unwrap();
        store.append_entries("a", 0, &[hint("1")]).unwrap();
        store.copy_entries("a", "b").unwrap();
        store.save_record(&record("b", "/w")).unwrap();
        store.append_entries("b", 1, &[hint("2")]).unwrap();
        store.delete_session("a").unwrap();
        store.delete_session("a").unwrap();
        assert_eq!(store.load_record("a").unwrap(), None);
        assert_eq!(store.load_entries("a").unwrap(), []);
        assert_eq!(store.load_entries("b").unwrap(), [hint("1"), hint("2")]);
    }

    #[test]
    fn appended_entries_are_read_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let store = RefCell::new(ChatSessionStore::open(&dir.path().join("agent.db")).unwrap());
        let pieces = vec(vec(".*", 0..4), 0..6);
        let mut runner = TestRunner::new(ProptestConfig::with_cases(256));
        let count = Cell::new(0);
        runner
            .run(&pieces, |pieces| {
                count.set(count.get() + 1);
                let (id, mut store) = (format!("s-{}", count.get()), store.borrow_mut());
                let mut all = Vec::new();
                for piece in pieces {
                    let new: Vec<HistoryEntry> = piece.iter().map(|it| hint(it)).collect();
                    store.append_entries(&id, i64::try_from(all.len()).unwrap(), &new).unwrap();
                    all.extend(new);
                }
                prop_assert_eq!(store.load_entries(&id).unwrap(), all);
                Ok(())
            })
            .unwrap();
    }
}

//! Session records on disk: one small file each, so that a later adapter can resume a session under
//! the program's own session id.

use crate::{SessionRecord, SessionStore};
use jackfield_private_files as private_files;
use std::fs;
use std::path::PathBuf;

pub(super) struct SessionFiles {
    dir: PathBuf,
    tag: String,
}

impl SessionFiles {
    pub(super) fn new(dir: PathBuf) -> SessionFiles {
        SessionFiles { dir, tag: random_name() }
    }

    /// A random id of this adapter.
    pub(super) fn tag(&self) -> &str {
        &self.tag
    }

    /// `None` for an id that could name a file in another directory.
    fn path(&self, session: &str) -> Option<PathBuf> {
        let is_plain = !session.is_empty()
            && session.len() <= 64
            && session.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        is_plain.then(|| self.dir.join(format!("{session}.json")))
    }
}

impl SessionStore for SessionFiles {
    fn create_session_id(&mut self) -> String {
        random_name()
    }

    /// If a record cannot be written, the session cannot be resumed, but the running turn
    /// continues.
    fn save_record(&mut self, session: &str, record: &SessionRecord) {
        let (Some(path), Ok(text)) = (self.path(session), serde_json::to_vec(record)) else {
            return;
        };
        let _result = private_files::replace_file(&path, &text);
    }

    fn load_record(&mut self, session: &str) -> Option<SessionRecord> {
        serde_json::from_slice(&fs::read(self.path(session)?).ok()?).ok()
    }
}

fn random_name() -> String {
    let mut bytes = [0; 16];
    // Without a source of randomness, the time and the process id must do.
    if getrandom::fill(&mut bytes).is_err() {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
        bytes = (now ^ (u128::from(std::process::id()) << 96)).to_be_bytes();
    }
    format!("{:032x}", u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_outlives_the_adapter_and_an_id_cannot_name_another_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = SessionFiles::new(dir.path().join("deep/adapt"));
        let record = SessionRecord {
            agent_session_id: Some("t-1".into()),
            cwd: "/w".into(),
            ..SessionRecord::default()
        };
        let id = files.create_session_id();
        files.save_record(&id, &record);
        let mut later = SessionFiles::new(dir.path().join("deep/adapt"));
        assert_eq!(later.load_record(&id), Some(record));
        assert_ne!(later.create_session_id(), id);
        for bad in ["", "../x", "a/b", "a.b"] {
            assert_eq!(later.load_record(bad), None, "{bad}");
        }
    }
}

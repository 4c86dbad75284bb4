//! Notes about sessions on disk: one small file each, so that an adapter started tomorrow knows under
//! which id the program keeps the session.

use crate::{Memory, Note};
use jackfield_private_files as private_files;
use std::fs;
use std::path::PathBuf;

pub(super) struct Notes {
    dir: PathBuf,
    tag: String,
}

impl Notes {
    pub(super) fn new(dir: PathBuf) -> Notes {
        Notes { dir, tag: random_name() }
    }

    /// A word that no other adapter has.
    pub(super) fn tag(&self) -> &str {
        &self.tag
    }

    /// None for an id that could name a file elsewhere.
    fn path(&self, session: &str) -> Option<PathBuf> {
        let plain = !session.is_empty()
            && session.len() <= 64
            && session.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        plain.then(|| self.dir.join(format!("{session}.json")))
    }
}

impl Memory for Notes {
    fn new_id(&mut self) -> String {
        random_name()
    }

    /// A note that cannot be written costs a resume, not the turn that runs now.
    fn remember(&mut self, session: &str, note: &Note) {
        let (Some(path), Ok(text)) = (self.path(session), serde_json::to_vec(note)) else { return };
        let _lost = private_files::replace_file(&path, &text);
    }

    fn recall(&mut self, session: &str) -> Option<Note> {
        serde_json::from_slice(&fs::read(self.path(session)?).ok()?).ok()
    }
}

fn random_name() -> String {
    let mut bytes = [0; 16];
    // Without randomness there is still the process and its count of nanoseconds.
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
    fn a_note_outlives_the_adapter_and_an_id_cannot_name_another_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut notes = Notes::new(dir.path().join("deep/adapt"));
        let note = Note { native: Some("t-1".into()), cwd: "/w".into(), ..Note::default() };
        let id = notes.new_id();
        notes.remember(&id, &note);
        let mut later = Notes::new(dir.path().join("deep/adapt"));
        assert_eq!(later.recall(&id), Some(note));
        assert_ne!(later.new_id(), id);
        for bad in ["", "../x", "a/b", "a.b"] {
            assert_eq!(later.recall(bad), None, "{bad}");
        }
    }
}

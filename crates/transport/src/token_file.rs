//! The token of a running daemon, which is read again when its file was replaced.

use crate::token::{BearerToken, TokenError};
use jackfield_protocol::chain;
use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

/// A token file, and its last valid token.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    last: Mutex<(FileStamp, BearerToken)>,
}

/// The attributes that show whether a file has changed.
type FileStamp = Option<(SystemTime, u64, u64)>;

impl TokenFile {
    /// Reads the token in `path`, or writes a new one there.
    pub fn open(path: &Path) -> Result<TokenFile, TokenError> {
        let token = BearerToken::create_or_read(path)?;
        Ok(TokenFile { path: path.to_owned(), last: Mutex::new((None, token)) })
    }

    /// The current token. If the file is missing or invalid, the last valid token is kept.
    pub(crate) fn token(&self) -> BearerToken {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = file_stamp(&self.path);
        if stamp != last.0 {
            last.0 = stamp; // So that an invalid file is logged only once.
            match BearerToken::read(&self.path) {
                Ok(token) => last.1 = token,
                Err(error) => {
                    tracing::error!(
                        why = chain(&error),
                        "failed to read the token file; the last token stays valid"
                    );
                }
            }
        }
        last.1.clone()
    }
}

fn file_stamp(path: &Path) -> FileStamp {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_token_is_used_and_an_invalid_file_keeps_the_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let file = TokenFile::open(&path).unwrap();
        let first = file.token();
        assert!(first.matches(BearerToken::read(&path).unwrap().reveal()));
        let second = BearerToken::replace(&path).unwrap();
        assert!(!second.matches(first.reveal()));
        assert!(file.token().matches(second.reveal()));
        fs::write(&path, "no token").unwrap();
        assert!(file.token().matches(second.reveal()));
        fs::remove_file(&path).unwrap();
        assert!(file.token().matches(second.reveal()));
        let third = BearerToken::replace(&path).unwrap();
        assert!(file.token().matches(third.reveal()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
    }
}

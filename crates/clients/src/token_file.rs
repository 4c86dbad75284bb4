//! The token of a daemon that runs: read again when its file was replaced.

use crate::token::{Token, TokenError};
use jackfield_wire::chain;
use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

/// A token file, and the token that it had when it was last usable.
#[derive(Debug)]
pub struct TokenFile {
    path: PathBuf,
    last: Mutex<(Stamp, Token)>,
}

/// What shows that a file is another than before.
type Stamp = Option<(SystemTime, u64, u64)>;

impl TokenFile {
    /// Reads the token in `path`, or writes a new one there.
    pub fn open(path: &Path) -> Result<TokenFile, TokenError> {
        let token = Token::create_or_read(path)?;
        Ok(TokenFile { path: path.to_owned(), last: Mutex::new((None, token)) })
    }

    /// The token that lets clients in now. A file that is missing or unusable leaves the last one.
    pub(crate) fn token(&self) -> Token {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.path);
        if stamp != last.0 {
            last.0 = stamp; // Once: a broken file is logged when it breaks.
            match Token::read(&self.path) {
                Ok(token) => last.1 = token,
                Err(error) => {
                    tracing::error!(
                        why = chain(&error),
                        "the token file cannot be used; the last token stays"
                    );
                }
            }
        }
        last.1.clone()
    }
}

fn stamp(path: &Path) -> Stamp {
    let metadata = fs::symlink_metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_token_is_noticed_and_a_broken_file_leaves_the_last_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let file = TokenFile::open(&path).unwrap();
        let first = file.token();
        assert!(first.matches(Token::read(&path).unwrap().reveal()));
        let second = Token::replace(&path).unwrap();
        assert!(!second.matches(first.reveal()));
        assert!(file.token().matches(second.reveal()));
        fs::write(&path, "no token").unwrap();
        assert!(file.token().matches(second.reveal()));
        fs::remove_file(&path).unwrap();
        assert!(file.token().matches(second.reveal()));
        let third = Token::replace(&path).unwrap();
        assert!(file.token().matches(third.reveal()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
    }
}

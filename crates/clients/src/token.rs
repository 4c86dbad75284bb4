//! The bearer token: what a TCP client shows to prove that it may read a file of ours.

use crate::hex;
use jackfield_private_files as private_files;
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fmt, hint, process};

const RANDOM_BYTES: usize = 32;
const HEX_BYTES: usize = 2 * RANDOM_BYTES;

/// 32 random bytes in hex. `Debug` does not show it.
#[derive(Clone)]
pub struct Token(String);

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("token file `{path}` could not be {attempted}")]
    Io {
        path: PathBuf,
        attempted: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("token file `{path}` is open to others (mode {mode:o}): remove it, a new one is made")]
    NotPrivate { path: PathBuf, mode: u32 },
    #[error("token file `{path}` belongs to uid {owner}, not to us: use another directory")]
    NotOurs { path: PathBuf, owner: u32 },
    #[error("`{path}` holds no token: remove it, the daemon makes a new one when it starts")]
    NoToken { path: PathBuf },
    #[error("the system gives no random bytes for a token")]
    NoRandomness {
        #[source]
        source: io::Error,
    },
}

impl TokenError {
    /// Whether there is no token file.
    pub fn is_absent(&self) -> bool {
        matches!(self, TokenError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl Token {
    /// The token in `path`, or a new one written there. Of two that start at once both get the
    /// same.
    pub fn create_or_read(path: &Path) -> Result<Token, TokenError> {
        match Token::read(path) {
            Err(error) if error.is_absent() => {}
            read => return read,
        }
        Token::random()?.keep(path)
    }

    /// Writes it to `path`, and returns the token that is there then: if another process was faster,
    /// that is another one.
    pub fn keep(self, path: &Path) -> Result<Token, TokenError> {
        // Complete before it has its name: nobody reads half a token.
        let draft = path.with_added_extension(format!("{}.new", process::id()));
        let written = self.write(&draft).and_then(|()| fs::hard_link(&draft, path));
        let _ = fs::remove_file(&draft);
        match written {
            Ok(()) => Ok(self),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Token::read(path),
            Err(source) => {
                Err(TokenError::Io { path: path.to_owned(), attempted: "written", source })
            }
        }
    }

    /// Writes a new token to `path`, in the place of the one that may be there.
    pub fn replace(path: &Path) -> Result<Token, TokenError> {
        let token = Token::random()?;
        private_files::replace_file(path, token.0.as_bytes()).map_err(|source| TokenError::Io {
            path: path.to_owned(),
            attempted: "replaced",
            source,
        })?;
        Ok(token)
    }

    /// The token in `path`, which must be ours and closed to others.
    pub fn read(path: &Path) -> Result<Token, TokenError> {
        let failed = |source| TokenError::Io { path: path.to_owned(), attempted: "read", source };
        // Not through a link, and a pipe in its place shall not hold us.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|it| failed(it.into()))?;
        let file = File::from(file);
        let metadata = file.metadata().map_err(failed)?;
        if metadata.uid() != geteuid().as_raw() {
            return Err(TokenError::NotOurs { path: path.to_owned(), owner: metadata.uid() });
        }
        if metadata.mode() & 0o077 != 0 {
            let mode = metadata.mode() & 0o7777;
            return Err(TokenError::NotPrivate { path: path.to_owned(), mode });
        }
        let mut text = String::new();
        file.take(HEX_BYTES as u64 + 2).read_to_string(&mut text).map_err(failed)?;
        text.truncate(text.trim_end().len());
        Token::from_hex(text).ok_or_else(|| TokenError::NoToken { path: path.to_owned() })
    }

    /// One that nobody knows, and that is kept nowhere.
    pub fn random() -> Result<Token, TokenError> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| TokenError::NoRandomness {
            source: io::Error::other(error.to_string()),
        })?;
        Ok(Token(hex::encode(&bytes)))
    }

    fn from_hex(text: String) -> Option<Token> {
        let good = text.len() == HEX_BYTES && text.bytes().all(|it| it.is_ascii_hexdigit());
        good.then_some(Token(text))
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        // Left over by one that had our pid and was killed in between.
        let _ = fs::remove_file(path);
        let mut file =
            private_files::open_file(path, OpenOptions::new().write(true).create_new(true))?;
        file.write_all(self.0.as_bytes())
    }

    /// How long this takes says nothing about where the first wrong character stands.
    pub(crate) fn matches(&self, shown: &str) -> bool {
        let (ours, shown) = (self.0.as_bytes(), shown.as_bytes());
        if ours.len() != shown.len() {
            return false;
        }
        let difference =
            ours.iter().zip(shown).fold(0, |sum, (a, b)| hint::black_box(sum | (a ^ b)));
        hint::black_box(difference) == 0
    }

    /// For the command that prints it, and for clients of others, which show it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn a_token_is_made_once_private_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let made = Token::create_or_read(&path).unwrap();
        assert_eq!(made.0.len(), 64);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(Token::create_or_read(&path).unwrap().0, made.0);
        assert_eq!(Token::read(&path).unwrap().0, made.0);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
        let other = Token::create_or_read(&dir.path().join("other")).unwrap();
        assert_ne!(other.0, made.0);
    }

    #[test]
    fn only_the_same_token_matches() {
        let token = Token::random().unwrap();
        assert!(token.matches(&token.0.clone()));
        let changed = |at: usize| {
            let mut bytes = token.0.clone().into_bytes();
            bytes[at] ^= 1;
            String::from_utf8(bytes).unwrap()
        };
        for wrong in [changed(0), changed(63), String::new(), token.0[..63].to_owned()] {
            assert!(!token.matches(&wrong));
        }
        assert!(!token.matches(&format!("{}0", token.0)));
        assert_eq!(format!("{token:?}"), "Token(***)");
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_with_a_way_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        Token::create_or_read(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = Token::create_or_read(&path).unwrap_err().to_string();
        assert!(error.contains("(mode 640)") && error.contains("remove it"), "{error}");
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        for text in ["", "abc", &"g".repeat(64), &"0".repeat(65), &"0".repeat(6400)] {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let error = Token::create_or_read(&path).unwrap_err();
            assert!(matches!(error, TokenError::NoToken { .. }), "{error}");
        }
        fs::write(&path, format!("{}\n", "0".repeat(64))).unwrap();
        assert!(Token::read(&path).is_ok(), "an editor may have added a newline");
    }

    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        Token::create_or_read(&dir.path().join("real")).unwrap();
        symlink(dir.path().join("real"), dir.path().join("token")).unwrap();
        assert!(Token::create_or_read(&dir.path().join("token")).is_err());
    }
}

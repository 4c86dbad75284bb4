//! The bearer token, which proves that a client can read a private file of the daemon's user.

use crate::hex;
use jackfield_private_files as private_files;
use rustix::fs::{Mode, OFlags};
use rustix::process::geteuid;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fmt, process};
use subtle::ConstantTimeEq as _;

const RANDOM_BYTES: usize = 32;
const HEX_BYTES: usize = 2 * RANDOM_BYTES;

/// 32 random bytes in hex. `Debug` does not show it.
#[derive(Clone)]
pub struct BearerToken(String);

/// Why a token cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("token file `{path}` could not be {attempted}")]
    Io {
        path: PathBuf,
        attempted: &'static str,
        #[source]
        source: io::Error,
    },
    #[error(
        "token file `{path}` is accessible to others (mode {mode:o}): remove it; a new one is created"
    )]
    NotPrivate { path: PathBuf, mode: u32 },
    #[error("token file `{path}` belongs to uid {owner}, not to us: use another directory")]
    NotOurs { path: PathBuf, owner: u32 },
    #[error("`{path}` contains no token: remove it; the daemon creates a new one when it starts")]
    NoToken { path: PathBuf },
    #[error("the system provides no random bytes for a token")]
    NoRandomness {
        #[source]
        source: io::Error,
    },
}

impl TokenError {
    /// Whether the token file does not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self, TokenError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl BearerToken {
    /// Reads the token in `path`, or writes a new one. Two processes that start at the same time
    /// get the same token.
    pub fn create_or_read(path: &Path) -> Result<BearerToken, TokenError> {
        match BearerToken::read(path) {
            Err(error) if error.is_absent() => {}
            read => return read,
        }
        BearerToken::random()?.store(path)
    }

    /// Writes the token to `path`. Returns the token in the file, which is another one if another
    /// process was faster.
    pub fn store(self, path: &Path) -> Result<BearerToken, TokenError> {
        // Written completely before it gets its name, so that no process reads a partial token.
        let draft = path.with_added_extension(format!("{}.new", process::id()));
        let written = self.write(&draft).and_then(|()| fs::hard_link(&draft, path));
        let _ = fs::remove_file(&draft);
        match written {
            Ok(()) => Ok(self),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => BearerToken::read(path),
            Err(source) => {
                Err(TokenError::Io { path: path.to_owned(), attempted: "written", source })
            }
        }
    }

    /// Writes a new token to `path` and replaces an existing one.
    pub fn replace(path: &Path) -> Result<BearerToken, TokenError> {
        let token = BearerToken::random()?;
        private_files::replace_file(path, token.0.as_bytes()).map_err(|source| TokenError::Io {
            path: path.to_owned(),
            attempted: "replaced",
            source,
        })?;
        Ok(token)
    }

    /// Reads the token in `path`, which must belong to us and be inaccessible to others.
    pub fn read(path: &Path) -> Result<BearerToken, TokenError> {
        let failed = |source| TokenError::Io { path: path.to_owned(), attempted: "read", source };
        // Symbolic links are not followed, and a pipe in its place must not block.
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
        BearerToken::from_hex(text).ok_or_else(|| TokenError::NoToken { path: path.to_owned() })
    }

    /// A new random token, which is not stored.
    pub fn random() -> Result<BearerToken, TokenError> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| TokenError::NoRandomness {
            source: io::Error::other(error.to_string()),
        })?;
        Ok(BearerToken(hex::encode_hex(&bytes)))
    }

    fn from_hex(text: String) -> Option<BearerToken> {
        let is_valid = text.len() == HEX_BYTES && text.bytes().all(|it| it.is_ascii_hexdigit());
        is_valid.then_some(BearerToken(text))
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        // Left over from a killed process with the same pid.
        let _ = fs::remove_file(path);
        let mut file =
            private_files::open_file(path, OpenOptions::new().write(true).create_new(true))?;
        file.write_all(self.0.as_bytes())
    }

    /// Compares in constant time, so that the duration does not reveal the first wrong character.
    pub(crate) fn matches(&self, shown: &str) -> bool {
        self.0.as_bytes().ct_eq(shown.as_bytes()).into()
    }

    /// The token as text, for the command that prints it and for clients that send it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerToken(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    #[test]
    fn token_is_created_once_with_private_mode_and_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let made = BearerToken::create_or_read(&path).unwrap();
        assert_eq!(made.0.len(), 64);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(BearerToken::create_or_read(&path).unwrap().0, made.0);
        assert_eq!(BearerToken::read(&path).unwrap().0, made.0);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft is left");
        let other = BearerToken::create_or_read(&dir.path().join("other")).unwrap();
        assert_ne!(other.0, made.0);
    }

    #[test]
    fn only_the_same_token_matches() {
        let token = BearerToken::random().unwrap();
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
        assert_eq!(format!("{token:?}"), "BearerToken(***)");
    }

    #[test]
    fn file_readable_by_others_is_refused_with_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        BearerToken::create_or_read(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = BearerToken::create_or_read(&path).unwrap_err().to_string();
        assert!(error.contains("(mode 640)") && error.contains("remove it"), "{error}");
    }

    #[test]
    fn invalid_token_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        for text in ["", "abc", &"g".repeat(64), &"0".repeat(65), &"0".repeat(6400)] {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            let error = BearerToken::create_or_read(&path).unwrap_err();
            assert!(matches!(error, TokenError::NoToken { .. }), "{error}");
        }
        fs::write(&path, format!("{}\n", "0".repeat(64))).unwrap();
        assert!(BearerToken::read(&path).is_ok(), "an editor may have added a newline");
    }

    #[test]
    fn symbolic_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        BearerToken::create_or_read(&dir.path().join("real")).unwrap();
        symlink(dir.path().join("real"), dir.path().join("token")).unwrap();
        assert!(BearerToken::create_or_read(&dir.path().join("token")).is_err());
    }
}

//! The daemon's token: where it is stored, where earlier versions stored it, and how it is
//! replaced.

use crate::paths::Paths;
use jackfield_protocol::chain;
use jackfield_transport::{BearerToken, TokenError, TokenFile};
use std::fs;

/// Opens the token at the start of a daemon. It is created if there is none; one that an earlier
/// version stored in the runtime directory is moved, so that its clients continue to work.
pub(crate) fn open_token(paths: &Paths) -> Result<TokenFile, TokenError> {
    if is_absent(&BearerToken::read(&paths.token())) {
        move_former(paths)?;
    }
    TokenFile::open(&paths.token())
}

fn move_former(paths: &Paths) -> Result<(), TokenError> {
    let former = paths.former_token();
    match BearerToken::read(&former) {
        Ok(token) => {
            token.store(&paths.token())?;
            fs::remove_file(&former).map_err(|source| TokenError::Io {
                path: former,
                attempted: "removed",
                source,
            })
        }
        Err(error) if error.is_absent() => Ok(()),
        Err(error) => {
            tracing::warn!(why = chain(&error), "ignoring the token of an earlier version");
            Ok(())
        }
    }
}

/// The token for a client. A daemon of an earlier version may be running, with the token in another
/// place.
pub fn read(paths: &Paths) -> Result<BearerToken, TokenError> {
    let read = BearerToken::read(&paths.token());
    if is_absent(&read) { BearerToken::read(&paths.former_token()).or(read) } else { read }
}

/// Replaces the token, also of a running daemon.
pub fn rotate(paths: &Paths) -> Result<BearerToken, TokenError> {
    BearerToken::replace(&paths.token())
}

fn is_absent(read: &Result<BearerToken, TokenError>) -> bool {
    read.as_ref().is_err_and(TokenError::is_absent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jackfield_private_files as private_files;
    use std::{os::unix::fs::PermissionsExt as _, path::Path};

    fn paths(dir: &Path) -> Paths {
        let paths = Paths::below(dir);
        private_files::create_dir(&paths.state).unwrap();
        private_files::create_dir(&paths.runtime).unwrap();
        paths
    }

    #[test]
    fn token_of_an_earlier_version_is_moved_once() {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(dir.path());
        assert!(read(&paths).unwrap_err().is_absent());
        let former = BearerToken::create_or_read(&paths.former_token()).unwrap();
        assert_eq!(read(&paths).unwrap().reveal(), former.reveal(), "the daemon still runs");
        open_token(&paths).unwrap();
        assert_eq!(BearerToken::read(&paths.token()).unwrap().reveal(), former.reveal());
        assert!(!paths.former_token().exists());
        let stale = BearerToken::create_or_read(&paths.former_token()).unwrap();
        open_token(&paths).unwrap();
        assert_ne!(read(&paths).unwrap().reveal(), stale.reveal());
    }

    #[test]
    fn former_token_that_others_could_read_is_ignored() {
        let dir = tempfile::tempdir().unwrap();
        let paths = paths(dir.path());
        let former = BearerToken::create_or_read(&paths.former_token()).unwrap();
        fs::set_permissions(paths.former_token(), fs::Permissions::from_mode(0o644)).unwrap();
        open_token(&paths).unwrap();
        assert_ne!(read(&paths).unwrap().reveal(), former.reveal());
    }
}

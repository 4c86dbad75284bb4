//! The path of a unix socket: its length and its folder.

use crate::socket_system::PATH_BYTES_MAX;
use std::path::{Path, PathBuf};

/// A path that is too long for a socket.
#[derive(Debug, thiserror::Error)]
#[error(
    "socket path `{}` has {} bytes; the limit is {PATH_BYTES_MAX}: set `JACKFIELD_RUNTIME_DIR` to a \
     shorter directory",
    path.display(), path.as_os_str().len()
)]
pub struct PathTooLong {
    path: PathBuf,
}

/// Whether a socket can have this path.
pub fn check_length(path: &Path) -> Result<(), PathTooLong> {
    if path.as_os_str().len() <= PATH_BYTES_MAX {
        Ok(())
    } else {
        Err(PathTooLong { path: path.to_owned() })
    }
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

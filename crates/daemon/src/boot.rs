//! Coming up: private directories, one daemon at a time, leftovers reaped.

use crate::{paths::Paths, serve::BootError};
use jackfield_agents::Ledger;
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// What a daemon was starting when it was killed holds its lock too, until it runs a program of its own.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Makes the daemon's directories, ours and closed to others.
pub(crate) fn directories(paths: &Paths) -> Result<(), BootError> {
    for dir in [&paths.state, &paths.runtime, &paths.ledger()] {
        private(dir).map_err(|source| BootError::Directory { path: dir.clone(), source })?;
    }
    Ok(())
}

fn private(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let meta = dir.symlink_metadata()?;
    let ours = rustix::process::getuid().as_raw();
    if !meta.is_dir() || meta.uid() != ours {
        let why = format!("it is not a directory of user {ours}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    if meta.mode() & 0o077 != 0 {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// One daemon a state directory: held for as long as the file is open, whatever ends the process.
pub(crate) fn lock(path: &Path) -> Result<File, BootError> {
    let unusable = |source| BootError::Lock { path: path.to_owned(), source };
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
        .map_err(unusable)?;
    let since = Instant::now();
    while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        if LOCK_PATIENCE < since.elapsed() {
            return Err(BootError::AlreadyRuns { path: path.to_owned() });
        }
        thread::sleep(LOCK_PAUSE);
    }
    file.set_len(0).map_err(unusable)?;
    writeln!(file, "{}", std::process::id()).map_err(unusable)?;
    Ok(file)
}

/// Ends what an earlier daemon left behind, if it is proved to be ours.
pub(crate) fn reap(ledger: &Ledger) {
    let reaped = ledger.reap();
    if !reaped.ended.is_empty() {
        tracing::warn!(pids = ?reaped.ended, "ended what an earlier daemon left behind");
    }
    if !reaped.survivors.is_empty() {
        tracing::error!(pids = ?reaped.survivors, "processes of an earlier daemon could not be ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_let_go_in_a_moment_is_waited_for_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = lock(&path).unwrap();
        assert!(matches!(lock(&path), Err(BootError::AlreadyRuns { .. })));
        let leaving = thread::spawn(move || {
            thread::sleep(LOCK_PATIENCE / 10);
            drop(held);
        });
        lock(&path).unwrap();
        leaving.join().unwrap();
    }
}

//! Coming up: private directories, one daemon at a time, leftovers reaped.

use crate::{paths::Paths, serve::BootError};
use jackfield_agents::Ledger;
use jackfield_private_files as private_files;
use rustix::fs::{FlockOperation, flock};
use std::{
    fs::{File, OpenOptions},
    io::Write as _,
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
        private_files::claim_dir(dir)
            .map_err(|source| BootError::Directory { path: dir.clone(), source })?;
    }
    Ok(())
}

/// One daemon a state directory: held for as long as the file is open, whatever ends the process.
pub(crate) fn lock(path: &Path) -> Result<File, BootError> {
    let unusable = |source| BootError::Lock { path: path.to_owned(), source };
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let mut file = private_files::open_file(path, &mut options).map_err(unusable)?;
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

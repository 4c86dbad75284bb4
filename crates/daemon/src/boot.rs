//! What a daemon does before it listens: private directories, and leftovers of an earlier daemon.

use crate::{lock::DaemonLock, paths::Paths, serve::BootError};
use jackfield_agents::{ProcessLedger, ReapReport};
use jackfield_private_files as private_files;
use jackfield_protocol::chain;
use jackfield_transport::remove_stale_socket;

/// Creates the daemon's directories, or takes away the access of others to those that exist.
pub(crate) fn directories(paths: &Paths) -> Result<(), BootError> {
    for dir in [&paths.state, &paths.runtime, &paths.ledger()] {
        private_files::ensure_private_dir(dir)
            .map_err(|source| BootError::Directory { path: dir.clone(), source })?;
    }
    Ok(())
}

/// Ends what an earlier daemon left behind, if it is proved to be ours.
pub(crate) fn reap(ledger: &ProcessLedger) -> ReapReport {
    let reaped = ledger.reap();
    if !reaped.ended.is_empty() {
        tracing::warn!(pids = ?reaped.ended, "ended what an earlier daemon left behind");
    }
    if !reaped.survivors.is_empty() {
        tracing::error!(pids = ?reaped.survivors, "processes of an earlier daemon could not be ended");
    }
    reaped
}

/// Ends what a daemon that was killed left behind, as the next start would, and removes its socket. Fails
/// with [`BootError::AlreadyRuns`] if another daemon runs by now.
pub fn clean_up(paths: &Paths) -> Result<ReapReport, BootError> {
    let lock = DaemonLock::take(&paths.lock(), &paths.socket())?;
    let ledger = ProcessLedger::open(&paths.ledger())
        .map_err(|source| BootError::System { what: "the ledger", source })?;
    let reaped = reap(&ledger);
    // A service manager that listens on the socket may start the next daemon now.
    drop(lock);
    if let Err(error) = remove_stale_socket(&paths.socket()) {
        tracing::warn!(why = chain(&error), "the socket of an earlier daemon could not be removed");
    }
    Ok(reaped)
}

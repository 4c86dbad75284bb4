//! Steps before a daemon listens: private directories, processes of an earlier daemon, and a random
//! seed.

use crate::{boot_error::BootError, lock::DaemonLock, paths::Paths};
use jackfield_agents::{ProcessLedger, ReapReport};
use jackfield_private_files as private_files;
use jackfield_protocol::chain;
use jackfield_transport::remove_stale_socket;
use std::io;

/// Creates the directories of the daemon, or makes existing ones private.
pub(crate) fn create_directories(paths: &Paths) -> Result<(), BootError> {
    for dir in [&paths.state, &paths.runtime, &paths.ledger()] {
        private_files::ensure_private_dir(dir)
            .map_err(|source| BootError::Directory { path: dir.clone(), source })?;
    }
    Ok(())
}

/// Ends processes of an earlier daemon that are proven to belong to it.
pub(crate) fn reap_processes(ledger: &ProcessLedger) -> ReapReport {
    let reaped = ledger.reap();
    if !reaped.ended.is_empty() {
        tracing::warn!(pids = ?reaped.ended, "ended processes of an earlier daemon");
    }
    if !reaped.survivors.is_empty() {
        tracing::error!(pids = ?reaped.survivors, "failed to end processes of an earlier daemon");
    }
    reaped
}

/// Ends the processes of a daemon that was killed, as the next start would, and removes its socket.
/// Fails with [`BootError::AlreadyRuns`] if another daemon is running.
pub fn clean_up(paths: &Paths) -> Result<ReapReport, BootError> {
    let lock = DaemonLock::take(&paths.lock(), &paths.socket())?;
    let ledger = ProcessLedger::open(&paths.ledger())
        .map_err(|source| BootError::System { what: "the ledger", source })?;
    let reaped = reap_processes(&ledger);
    // A service manager that listens on the socket may now start the next daemon.
    drop(lock);
    if let Err(error) = remove_stale_socket(&paths.socket()) {
        tracing::warn!(why = chain(&error), "failed to remove the socket of an earlier daemon");
    }
    Ok(reaped)
}

pub(crate) fn random_seed() -> Result<u64, BootError> {
    getrandom::u64().map_err(|error| BootError::System {
        what: "random numbers",
        source: io::Error::other(error.to_string()),
    })
}

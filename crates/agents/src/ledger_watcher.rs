//! The process that ends remaining processes when the daemon and its guards are killed together.
//!
//! A guard ends its tree when the daemon exits. If the guard was killed as well, nothing would
//! happen until the next daemon starts. Each daemon that has started an agent therefore has one
//! more process, the ledger watcher. It sleeps until the daemon exits, gives the guards time to
//! finish, and ends the processes that the ledger still lists. Its process name differs from those
//! of the daemon and the guards, so that a kill by name does not end it.

use crate::{
    ledger::{ProcessLedger, wait_for_exit},
    os::{self, ProcessIdentity},
};
use std::{
    ffi::OsStr,
    io::{self, Read as _},
    os::unix::process::parent_id,
    path::Path,
    time::Duration,
};

/// How long the daemon may take to exit after it has closed its files.
const DAEMON_TIMEOUT: Duration = Duration::from_secs(10);
/// How long guards without a daemon may take: longer than all their grace periods.
const GUARD_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the watcher. Its stdin ends when the daemon exits.
pub(crate) fn run_watcher(ledger: &OsStr) -> io::Result<()> {
    let daemon = ProcessIdentity::find(parent_id());
    os::launch::become_watcher()?;
    let mut rest = Vec::new();
    io::stdin().lock().read_to_end(&mut rest)?;
    wait_for_exit(daemon.as_slice(), DAEMON_TIMEOUT);
    let ledger = ProcessLedger::open(Path::new(ledger))?;
    // Guards end their trees gracefully and know them best. Their last phase is a kill.
    wait_for_exit(&ledger.orphaned_guards(), GUARD_TIMEOUT);
    ledger.reap();
    Ok(())
}

//! The daemon's handle to the process that watches its ledger, which `ledger_watcher` implements.

use crate::launch_command::GuardCommand;
use std::{
    io::{self, PipeWriter},
    path::Path,
    process::{Child, Command, Stdio},
};

/// The guard's command-line option that starts the watcher of a ledger instead.
pub(crate) const WATCHER_OPTION: &str = "--ledger";

/// A running ledger watcher.
#[derive(Debug)]
pub(crate) struct LedgerWatcher {
    child: Child,
    /// The kernel closes it when the daemon exits, which wakes the watcher.
    _open: PipeWriter,
}

impl LedgerWatcher {
    pub(crate) fn start(guard: &GuardCommand, ledger: &Path) -> io::Result<LedgerWatcher> {
        let (reader, writer) = io::pipe()?;
        let child = Command::new(&guard.program)
            // The subcommand that starts a guard, without the options for agents.
            .args(guard.args.first())
            .args([WATCHER_OPTION, "."])
            .current_dir(ledger)
            .env_clear()
            .stdin(reader)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(LedgerWatcher { child, _open: writer })
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

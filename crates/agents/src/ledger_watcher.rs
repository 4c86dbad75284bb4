//! The process that ends what is left when the daemon and guards are killed together.
//!
//! A guard ends its tree when the daemon is gone. Where the guard was killed as well, nothing would happen until the
//! next daemon starts. So beside each daemon that has started an agent there is one more process, the ledger watcher.
//! It sleeps until the daemon is gone, gives the guards time to finish, and ends what the ledger still has.
//! It has a name of its own, so that a kill by the name of the daemon or of the guards does not end it.

use crate::{
    ledger::Ledger,
    os::{self, Process},
    spec::GuardCommand,
};
use std::{
    ffi::OsStr,
    io::{self, PipeWriter, Read as _},
    os::unix::process::parent_id,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The option of the guard's command line that makes it the watcher of a ledger.
pub(crate) const OPTION: &str = "--ledger";

/// How long the daemon may take to end after it has closed its files.
const DAEMON_PATIENCE: Duration = Duration::from_secs(10);
/// How long guards without a daemon may take: more than all their steps.
const GUARD_PATIENCE: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The watcher as the daemon has it.
#[derive(Debug)]
pub(crate) struct LedgerWatcher {
    child: Child,
    /// The kernel closes it with the daemon, and so tells the watcher.
    _open: PipeWriter,
}

impl LedgerWatcher {
    pub(crate) fn start(guard: &GuardCommand, ledger: &Path) -> io::Result<LedgerWatcher> {
        let (reader, writer) = io::pipe()?;
        let child = Command::new(&guard.program)
            // What makes the program a guard; its options are for agents.
            .args(guard.args.first())
            .args([OPTION, "."])
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

/// The whole life of the watcher: standard input ends with the daemon.
pub(crate) fn run(ledger: &OsStr) -> io::Result<()> {
    let daemon = Process::find(parent_id());
    os::launch::become_watcher()?;
    let mut rest = Vec::new();
    io::stdin().lock().read_to_end(&mut rest)?;
    let deadline = Instant::now() + DAEMON_PATIENCE;
    while daemon.is_some_and(Process::lives) && Instant::now() < deadline {
        thread::sleep(LOOK_AGAIN);
    }
    let ledger = Ledger::open(Path::new(ledger))?;
    // They end their trees step by step, and know them better. The last step is a kill.
    let deadline = Instant::now() + GUARD_PATIENCE;
    while ledger.has_orphaned_guards() && Instant::now() < deadline {
        thread::sleep(LOOK_AGAIN);
    }
    ledger.reap();
    Ok(())
}

//! Records the running agents on disk, so that the next daemon can end processes that this one left
//! behind.
//!
//! Guards normally end their trees. The ledger is for the case that guard and daemon are killed
//! together: then the `ledger_watcher` reads it, and the next daemon. It has one small file per
//! agent, named by the agent's mark, which exists as long as the process tree does.

use crate::agent_trees::{AgentTrees, PeerLookup};
use crate::launch_command::{GuardCommand, is_valid_mark};
use crate::os::cgroup::{self, ControlGroup};
use crate::os::{self, ProcessIdentity, ProcessPin, Signal};
use crate::sweep::{ProcessSweeper, SweepTarget, sweep_trees};
use crate::watcher_handle::LedgerWatcher;
use jackfield_private_files as private_files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const RECORD_EXTENSION: &str = "json";
/// The extension of a record that is being written.
const DRAFT_EXTENSION: &str = "draft";
const VERSION: u32 = 1;
/// How long a guard without a daemon may take to finish.
const GUARD_TIMEOUT: Duration = Duration::from_secs(3);

/// The directory with one record for each running agent.
#[derive(Debug, Clone)]
pub struct ProcessLedger {
    dir: PathBuf,
    boot_id: String,
    daemon: Option<ProcessIdentity>,
    /// The directory in which control groups may be created.
    groups: Option<PathBuf>,
    sweeper: Arc<ProcessSweeper>,
    trees: Arc<AgentTrees>,
    /// Started with the first agent.
    watcher: Arc<Mutex<Option<LedgerWatcher>>>,
}

/// The contents of one file. Its processes are valid only for the same boot; the mark in the
/// environment of a process is always valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct LedgerRecord {
    version: u32,
    boot_id: String,
    daemon: Option<ProcessIdentity>,
    guard: Option<ProcessIdentity>,
    agent: Option<ProcessIdentity>,
    /// The control group of the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<PathBuf>,
}

/// The result of [`ProcessLedger::reap`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReapReport {
    /// Marks of trees that have ended; their records were removed.
    pub closed: Vec<String>,
    /// Marks of trees of a living daemon or of a newer version; their records were not touched.
    pub held: Vec<String>,
    /// Pids of processes that were ended.
    pub ended: Vec<u32>,
    /// Pids of processes that could not be ended; their records are kept.
    pub survivors: Vec<u32>,
}

impl ProcessLedger {
    /// Opens the ledger and creates its directory if necessary.
    pub fn open(dir: &Path) -> io::Result<ProcessLedger> {
        private_files::create_dir(dir)?;
        let daemon = ProcessIdentity::find(std::process::id());
        let (dir, boot_id) = (dir.to_owned(), os::boot_id());
        let groups = cgroup::delegated_directory();
        let (sweeper, trees, watcher) = Default::default();
        Ok(ProcessLedger { dir, boot_id, daemon, groups, sweeper, trees, watcher })
    }

    /// Whether a daemon that is started here may put each agent into a control group of its own.
    pub fn has_control_groups() -> bool {
        cgroup::delegated_directory().is_some()
    }

    /// A ledger without files, for a process that itself runs below a guard, whose ledger suffices.
    pub fn without_files() -> ProcessLedger {
        let (dir, boot_id) = (PathBuf::new(), String::new());
        let (sweeper, trees, watcher) = Default::default();
        ProcessLedger { dir, boot_id, daemon: None, groups: None, sweeper, trees, watcher }
    }

    /// Ends processes that earlier daemons left running, and only those that are proved to be
    /// theirs: processes with the recorded pid and start time since the same boot, processes with
    /// the mark, and descendants of these. Blocks for up to a few seconds, so call it before the
    /// first agent is started.
    pub fn reap(&self) -> ReapReport {
        let mut reaped = ReapReport::default();
        let mut open = Vec::new();
        for (mark, record) in self.records() {
            if self.is_held(record.as_ref()) {
                reaped.held.push(mark);
            } else {
                open.push((mark, record));
            }
        }
        if open.is_empty() {
            return reaped;
        }
        let same_boot =
            |record: &&LedgerRecord| record.boot_id == self.boot_id && !record.boot_id.is_empty();
        let filter_current =
            |record: &Option<LedgerRecord>| record.as_ref().filter(same_boot).cloned();
        let open = open.into_iter().map(|(mark, record)| (mark, filter_current(&record)));
        let open: Vec<(String, Option<LedgerRecord>)> = open.collect();
        let guards = open.iter().filter_map(|(_, record)| record.as_ref()?.guard);
        reaped.ended = finish_guards(&guards.collect::<Vec<_>>());

        let target = |(mark, record): (String, Option<LedgerRecord>)| {
            let group = record.as_ref().and_then(|it| it.group.as_deref());
            let group = group.and_then(|it| ControlGroup::from_record(it, &mark));
            let known =
                record.map(|record| [record.guard, record.agent]).into_iter().flatten().flatten();
            SweepTarget { mark, known: known.collect(), group }
        };
        let targets: Vec<SweepTarget> = open.into_iter().map(target).collect();
        let swept = sweep_trees(&targets);
        reaped.ended.extend(swept.ended);
        for (target, survivors) in targets.into_iter().zip(swept.survivors) {
            if survivors.is_empty() {
                // The file may already be gone.
                let _ = fs::remove_file(self.path(&target.mark, DRAFT_EXTENSION));
                let _ = fs::remove_file(self.path(&target.mark, RECORD_EXTENSION));
                reaped.closed.push(target.mark);
            }
            reaped.survivors.extend(survivors);
        }
        reaped
    }

    /// The guards whose daemon has exited.
    pub(crate) fn orphaned_guards(&self) -> Vec<ProcessIdentity> {
        let records = self.records().into_iter().filter_map(|(_, record)| record);
        records.filter(|it| !self.is_held(Some(it))).filter_map(|it| it.guard).collect()
    }

    /// Determines whether the process that connected to a unix socket is in a tree that was started
    /// with this ledger. `pid` is the kernel's value for the peer of that socket.
    pub fn look_up_peer(&self, socket: impl AsFd, pid: u32) -> PeerLookup {
        self.trees.look_up(socket.as_fd(), pid)
    }

    pub(crate) fn sweeper(&self) -> Arc<ProcessSweeper> {
        Arc::clone(&self.sweeper)
    }

    /// Starts the process that ends remaining processes if the daemon and its guards are killed
    /// together. Without it, the next daemon ends them.
    pub(crate) fn ensure_watcher(&self, guard: &GuardCommand) {
        if self.dir.as_os_str().is_empty() {
            return;
        }
        let mut watcher = self.watcher.lock().expect("no thread panics while it holds the lock");
        if !watcher.as_mut().is_some_and(LedgerWatcher::is_alive) {
            *watcher = LedgerWatcher::start(guard, &self.dir).ok();
        }
    }

    /// Creates the record of an agent that is about to be started.
    pub(crate) fn add_entry(&self, mark: &str) -> io::Result<LedgerEntry> {
        let record = LedgerRecord {
            version: VERSION,
            boot_id: self.boot_id.clone(),
            daemon: self.daemon,
            guard: None,
            agent: None,
            group: self
                .groups
                .as_ref()
                .map(|it| ControlGroup::new(it, mark).directory().to_owned()),
        };
        let has_files = !self.dir.as_os_str().is_empty();
        let path = has_files.then(|| self.path(mark, RECORD_EXTENSION));
        let entry =
            LedgerEntry { path, record, mark: mark.to_owned(), trees: Arc::clone(&self.trees) };
        entry.write()?;
        Ok(entry)
    }

    fn path(&self, mark: &str, extension: &str) -> PathBuf {
        self.dir.join(mark).with_extension(extension)
    }

    /// All records by mark. A record that cannot be read still has its file name, which is the
    /// mark.
    fn records(&self) -> Vec<(String, Option<LedgerRecord>)> {
        let files = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let marks: BTreeSet<String> = files
            .filter_map(|file| {
                let name = file.file_name();
                let (mark, extension) = name.to_str()?.rsplit_once('.')?;
                let is_extension = [RECORD_EXTENSION, DRAFT_EXTENSION].contains(&extension);
                (is_extension && is_valid_mark(mark)).then(|| mark.to_owned())
            })
            .collect();
        let read = |mark: &str| {
            let bytes = fs::read(self.path(mark, RECORD_EXTENSION)).ok()?;
            serde_json::from_slice(&bytes).ok()
        };
        marks.into_iter().map(|mark| (mark.clone(), read(&mark))).collect()
    }

    fn is_held(&self, record: Option<&LedgerRecord>) -> bool {
        record.is_some_and(|record| {
            VERSION < record.version
                || (record.boot_id == self.boot_id
                    && record.daemon.is_some_and(ProcessIdentity::is_alive))
        })
    }
}

/// Lets guards that lost their daemon end their own trees first, because they know them best.
/// Returns the guards that have exited.
fn finish_guards(guards: &[ProcessIdentity]) -> Vec<u32> {
    let alive: Vec<ProcessIdentity> =
        guards.iter().copied().filter(|guard| guard.is_alive()).collect();
    for guard in &alive {
        guard.signal(Signal::TERM);
        guard.signal(Signal::CONT);
    }
    wait_for_exit(&alive, GUARD_TIMEOUT);
    alive.into_iter().filter(|guard| !guard.is_alive()).map(|guard| guard.pid).collect()
}

/// Returns when all of these processes have exited, or after the timeout.
pub(crate) fn wait_for_exit(processes: &[ProcessIdentity], timeout: Duration) {
    let deadline = Instant::now() + timeout;
    for process in processes {
        let pin = ProcessPin::open(process.pid);
        // Checked after the process was pinned, so that the pin is of this process.
        if let Some(pin) = pin.filter(|_| process.is_alive()) {
            pin.wait_for_exit(deadline.saturating_duration_since(Instant::now()));
        }
    }
}

/// The ledger's entry of one running agent.
#[derive(Debug)]
pub(crate) struct LedgerEntry {
    /// `None` in a ledger without files.
    path: Option<PathBuf>,
    record: LedgerRecord,
    mark: String,
    trees: Arc<AgentTrees>,
}

impl LedgerEntry {
    /// Registers the guard, so that processes below it are recognized as part of the tree.
    pub(crate) fn add_guard(&self, guard: ProcessIdentity) {
        self.trees.add(&self.mark, guard);
    }

    /// The control group in which the guard starts the agent, if the system supports it.
    pub(crate) fn group(&self) -> Option<ControlGroup> {
        self.record.group.clone().map(ControlGroup::at)
    }

    /// Records the guard and the agent.
    pub(crate) fn set_processes(
        &mut self,
        guard: Option<ProcessIdentity>,
        agent: Option<ProcessIdentity>,
    ) {
        self.record.guard = guard;
        self.record.agent = agent;
        // If the write fails, the mark in the file name still identifies all processes.
        let _ = self.write();
    }

    pub(crate) fn close(self) {
        self.trees.remove(&self.mark);
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }

    /// Writes the record atomically, so that a reader never sees a partial one.
    fn write(&self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let draft = path.with_extension(DRAFT_EXTENSION);
        private_files::write_file(&draft, &serde_json::to_vec(&self.record)?)?;
        fs::rename(draft, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn sleeper() -> (Child, ProcessIdentity) {
        let child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let process = ProcessIdentity::find(child.id()).unwrap();
        (child, process)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn process_with_only_the_same_pid_is_not_signaled() {
        let dir = tempfile::tempdir().unwrap();
        let mut ledger = ProcessLedger::open(dir.path()).unwrap();
        ledger.daemon = None;
        let (child, process) = sleeper();
        let other = ProcessIdentity { start: process.start + 1, ..process };
        ledger.add_entry("other-start").unwrap().set_processes(Some(other), Some(other));
        ledger.boot_id = "another boot".into();
        ledger.add_entry("other-boot").unwrap().set_processes(Some(process), Some(process));
        let mut reaped = ProcessLedger::open(dir.path()).unwrap().reap();
        assert!(process.is_alive());
        reaped.closed.sort();
        let closed = vec!["other-boot".to_owned(), "other-start".to_owned()];
        assert_eq!(reaped, ReapReport { closed, ..ReapReport::default() });
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        end(child);
    }

    #[test]
    fn torn_record_is_identified_by_its_name_and_newer_one_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("torn.json"), "{\"version\":1,").unwrap();
        fs::write(dir.path().join("notes.txt"), "not ours").unwrap();
        let ledger = ProcessLedger::open(dir.path()).unwrap();
        let mut entry = ledger.add_entry("newer").unwrap();
        entry.record.version = VERSION + 1;
        entry.write().unwrap();
        let reaped = ledger.reap();
        assert_eq!(
            (reaped.closed, reaped.held),
            (vec!["torn".to_owned()], vec!["newer".to_owned()])
        );
        assert!(dir.path().join("notes.txt").exists());
    }

    #[test]
    fn entries_of_a_living_daemon_are_not_touched() {
        let dir = tempfile::tempdir().unwrap();
        let mut other = ProcessLedger::open(dir.path()).unwrap();
        let (daemon, process) = sleeper();
        let (agent, agent_process) = sleeper();
        other.daemon = Some(process);
        other.add_entry("other").unwrap().set_processes(None, Some(agent_process));
        let ledger = ProcessLedger::open(dir.path()).unwrap();
        assert_eq!(ledger.reap().held, ["other"]);
        assert!(agent_process.is_alive());
        end(daemon);
        assert_eq!(ledger.reap().ended, [agent_process.pid]);
        assert!(!agent_process.is_alive());
        end(agent);
    }
}

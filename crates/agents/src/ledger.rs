//! Who is running, on disk, so that the next daemon can end what this one had to leave behind.
//!
//! Guards end their trees by themselves; the ledger is for the day on which guard and daemon are
//! killed together: the `ledger_watcher` reads it then, and the next daemon. One small file per agent, named by its mark, there as long as its tree is.

use crate::ledger_watcher::LedgerWatcher;
use crate::os::cgroup::{self, ControlGroup};
use crate::os::{self, Process, Signal};
use crate::spec::{GuardCommand, is_good_mark};
use crate::sweep::{Sweeper, Target, sweep};
use crate::trees::{PeerLookup, Trees};
use jackfield_private_files as private_files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PAGE: &str = "json";
/// A page that is being written.
const DRAFT: &str = "draft";
const VERSION: u32 = 1;
/// A guard without a daemon is about to finish: it gets this long.
const GUARD_PATIENCE: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

#[derive(Debug, Clone)]
pub struct Ledger {
    dir: PathBuf,
    boot_id: String,
    daemon: Option<Process>,
    /// Where control groups may be created.
    groups: Option<PathBuf>,
    sweeper: Arc<Sweeper>,
    trees: Arc<Trees>,
    /// Started with the first agent.
    watcher: Arc<Mutex<Option<LedgerWatcher>>>,
}

/// One file. A process of another boot proves nothing; a mark in an environment always does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Page {
    version: u32,
    boot_id: String,
    daemon: Option<Process>,
    guard: Option<Process>,
    agent: Option<Process>,
    /// The control group of the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<PathBuf>,
}

/// What [`Ledger::reap`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Entries whose trees are gone now; they were removed.
    pub closed: Vec<String>,
    /// Entries of a daemon that is alive, or of a newer version; they were left alone.
    pub held: Vec<String>,
    /// Processes that were ended.
    pub ended: Vec<u32>,
    /// Processes that would not end; their entries are kept.
    pub survivors: Vec<u32>,
}

impl Ledger {
    /// Makes the directory if it is not there.
    pub fn open(dir: &Path) -> io::Result<Ledger> {
        private_files::create_dir(dir)?;
        let daemon = Process::find(std::process::id());
        let (dir, boot_id) = (dir.to_owned(), os::boot_id());
        let groups = cgroup::delegated_directory();
        let (sweeper, trees, watcher) = Default::default();
        Ok(Ledger { dir, boot_id, daemon, groups, sweeper, trees, watcher })
    }

    /// For a process that itself lives below a guard: whoever keeps that guard's ledger is enough.
    pub fn nowhere() -> Ledger {
        let (dir, boot_id) = (PathBuf::new(), String::new());
        let (sweeper, trees, watcher) = Default::default();
        Ledger { dir, boot_id, daemon: None, groups: None, sweeper, trees, watcher }
    }

    /// Ends what earlier daemons left running, and only what is proved to be theirs: a process with
    /// the recorded number and start time since the same boot, or one that carries the mark, and
    /// what is below those. Blocks, for a few seconds at worst: call it before the first agent.
    pub fn reap(&self) -> Reaped {
        let mut reaped = Reaped::default();
        let mut open = Vec::new();
        for (mark, page) in self.pages() {
            if self.is_held(page.as_ref()) {
                reaped.held.push(mark);
            } else {
                open.push((mark, page));
            }
        }
        if open.is_empty() {
            return reaped;
        }
        let same_boot = |page: &&Page| page.boot_id == self.boot_id && !page.boot_id.is_empty();
        let proved = |page: &Option<Page>| page.as_ref().filter(same_boot).cloned();
        let open = open.into_iter().map(|(mark, page)| (mark, proved(&page)));
        let open: Vec<(String, Option<Page>)> = open.collect();
        let guards = open.iter().filter_map(|(_, page)| page.as_ref()?.guard);
        reaped.ended = finish_guards(&guards.collect::<Vec<_>>());

        let target = |(mark, page): (String, Option<Page>)| {
            let group = page.as_ref().and_then(|it| it.group.as_deref());
            let group = group.and_then(|it| ControlGroup::recorded(it, &mark));
            let known = page.map(|page| [page.guard, page.agent]).into_iter().flatten().flatten();
            Target { mark, known: known.collect(), group }
        };
        let targets: Vec<Target> = open.into_iter().map(target).collect();
        let swept = sweep(&targets);
        reaped.ended.extend(swept.ended);
        for (target, survivors) in targets.into_iter().zip(swept.survivors) {
            if survivors.is_empty() {
                // Already gone is as good as removed.
                let _ = fs::remove_file(self.path(&target.mark, DRAFT));
                let _ = fs::remove_file(self.path(&target.mark, PAGE));
                reaped.closed.push(target.mark);
            }
            reaped.survivors.extend(survivors);
        }
        reaped
    }

    /// Whether a guard is still at work whose daemon is gone.
    pub(crate) fn has_orphaned_guards(&self) -> bool {
        let orphaned = self.pages().into_iter().filter_map(|(_, page)| page);
        let mut orphaned = orphaned.filter(|it| !self.is_held(Some(it)));
        orphaned.any(|it| it.guard.is_some_and(Process::lives))
    }

    /// Looks at the process that connected to a unix socket, and whether it is in a tree that was
    /// started with this ledger. `pid` is what the kernel says of the peer of that socket.
    pub fn look_up_peer(&self, socket: impl AsFd, pid: u32) -> PeerLookup {
        self.trees.look_up(socket.as_fd(), pid)
    }

    pub(crate) fn sweeper(&self) -> Arc<Sweeper> {
        Arc::clone(&self.sweeper)
    }

    /// Starts the process that ends what is left if the daemon and its guards are killed together. Without it the
    /// next daemon does that.
    pub(crate) fn ensure_watcher(&self, guard: &GuardCommand) {
        if self.dir.as_os_str().is_empty() {
            return;
        }
        let mut watcher = self.watcher.lock().expect("no thread panics with it");
        if !watcher.as_mut().is_some_and(LedgerWatcher::is_alive) {
            *watcher = LedgerWatcher::start(guard, &self.dir).ok();
        }
    }

    pub(crate) fn enter(&self, mark: &str) -> io::Result<Entry> {
        let page = Page {
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
        let kept = !self.dir.as_os_str().is_empty();
        let path = kept.then(|| self.path(mark, PAGE));
        let entry = Entry { path, page, mark: mark.to_owned(), trees: Arc::clone(&self.trees) };
        entry.write()?;
        Ok(entry)
    }

    fn path(&self, mark: &str, extension: &str) -> PathBuf {
        self.dir.join(mark).with_extension(extension)
    }

    /// A page that cannot be read still has its name, and the name is the mark.
    fn pages(&self) -> Vec<(String, Option<Page>)> {
        let files = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let marks: BTreeSet<String> = files
            .filter_map(|file| {
                let name = file.file_name();
                let (mark, extension) = name.to_str()?.rsplit_once('.')?;
                let ours = [PAGE, DRAFT].contains(&extension) && is_good_mark(mark);
                ours.then(|| mark.to_owned())
            })
            .collect();
        let read = |mark: &str| serde_json::from_slice(&fs::read(self.path(mark, PAGE)).ok()?).ok();
        marks.into_iter().map(|mark| (mark.clone(), read(&mark))).collect()
    }

    fn is_held(&self, page: Option<&Page>) -> bool {
        page.is_some_and(|page| {
            VERSION < page.version
                || (page.boot_id == self.boot_id && page.daemon.is_some_and(Process::lives))
        })
    }
}

/// A guard that lost its daemon knows its tree better than we do: hurry it, then do without it.
fn finish_guards(guards: &[Process]) -> Vec<u32> {
    let alive: Vec<Process> = guards.iter().copied().filter(|guard| guard.lives()).collect();
    for guard in &alive {
        guard.signal(Signal::TERM);
        guard.signal(Signal::CONT);
    }
    let deadline = Instant::now() + GUARD_PATIENCE;
    while alive.iter().any(|guard| guard.lives()) && Instant::now() < deadline {
        std::thread::sleep(LOOK_AGAIN);
    }
    alive.into_iter().filter(|guard| !guard.lives()).map(|guard| guard.pid).collect()
}

/// The ledger's knowledge of one agent that runs.
#[derive(Debug)]
pub(crate) struct Entry {
    /// None where nothing is kept.
    path: Option<PathBuf>,
    page: Page,
    mark: String,
    trees: Arc<Trees>,
}

impl Entry {
    /// From now on what is below this guard is known to be inside a tree of ours.
    pub(crate) fn add_guard(&self, guard: Process) {
        self.trees.add(&self.mark, guard);
    }

    /// Where the guard shall start the agent, if the system has groups for us.
    pub(crate) fn group(&self) -> Option<ControlGroup> {
        self.page.group.clone().map(ControlGroup::at)
    }

    pub(crate) fn note(&mut self, guard: Option<Process>, agent: Option<Process>) {
        self.page.guard = guard;
        self.page.agent = agent;
        // The mark in the file's name still finds everything.
        let _ = self.write();
    }

    pub(crate) fn close(self) {
        self.trees.remove(&self.mark);
        if let Some(path) = &self.path {
            let _ = fs::remove_file(path);
        }
    }

    /// Whole or not at all: a reader never sees half a page.
    fn write(&self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let draft = path.with_extension(DRAFT);
        private_files::write_file(&draft, &serde_json::to_vec(&self.page)?)?;
        fs::rename(draft, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};

    fn sleeper() -> (Child, Process) {
        let child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let process = Process::find(child.id()).unwrap();
        (child, process)
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_only_has_the_same_number_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(dir.path()).unwrap();
        ledger.daemon = None;
        let (child, process) = sleeper();
        let other = Process { start: process.start + 1, ..process };
        ledger.enter("other-start").unwrap().note(Some(other), Some(other));
        ledger.boot_id = "another boot".into();
        ledger.enter("other-boot").unwrap().note(Some(process), Some(process));
        let mut reaped = Ledger::open(dir.path()).unwrap().reap();
        assert!(process.lives());
        reaped.closed.sort();
        let closed = vec!["other-boot".to_owned(), "other-start".to_owned()];
        assert_eq!(reaped, Reaped { closed, ..Reaped::default() });
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        end(child);
    }

    #[test]
    fn a_torn_page_proves_by_its_name_and_a_newer_one_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("torn.json"), "{\"version\":1,").unwrap();
        fs::write(dir.path().join("notes.txt"), "not ours").unwrap();
        let ledger = Ledger::open(dir.path()).unwrap();
        let mut entry = ledger.enter("newer").unwrap();
        entry.page.version = VERSION + 1;
        entry.write().unwrap();
        let reaped = ledger.reap();
        assert_eq!(
            (reaped.closed, reaped.held),
            (vec!["torn".to_owned()], vec!["newer".to_owned()])
        );
        assert!(dir.path().join("notes.txt").exists());
    }

    #[test]
    fn the_entries_of_a_daemon_that_lives_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut theirs = Ledger::open(dir.path()).unwrap();
        let (daemon, process) = sleeper();
        let (agent, agent_process) = sleeper();
        theirs.daemon = Some(process);
        theirs.enter("theirs").unwrap().note(None, Some(agent_process));
        let ours = Ledger::open(dir.path()).unwrap();
        assert_eq!(ours.reap().held, ["theirs"]);
        assert!(agent_process.lives());
        end(daemon);
        assert_eq!(ours.reap().ended, [agent_process.pid]);
        assert!(!agent_process.lives());
        end(agent);
    }
}

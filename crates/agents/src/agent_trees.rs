//! The process trees of agents, and whether a process is inside one of them.
//!
//! The root of a tree is its guard. Where the guard becomes the parent of orphaned processes
//! (subreaper), everything that an agent starts stays below it, even if it creates sessions, process
//! groups or environments of its own. If the guard is killed, and on systems without subreapers for
//! orphans, only the mark in the environment identifies a process, and a process can remove that.

use crate::os::{PeerPin, ProcessIdentity, ProcessRow, ProcessTable};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// The number of attempts to follow the parents, which may exit in the meantime.
const ATTEMPTS_MAX: u32 = 8;
/// Real trees are never this deep.
const DEPTH_MAX: u32 = 4096;

/// Whether a process is inside a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessPlace {
    /// In none of the trees.
    Outside,
    /// In the tree with this mark.
    Inside { mark: String },
    /// It has exited, or its ancestors exited faster than they could be followed.
    Unknown,
}

/// The process at the other end of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerLookup {
    pub place: ProcessPlace,
    /// The executable, unless it is hidden or the process has exited.
    pub exe: Option<PathBuf>,
}

/// The running trees: their guards by mark.
#[derive(Debug, Default)]
pub(crate) struct AgentTrees {
    guards: Mutex<BTreeMap<String, ProcessIdentity>>,
}

impl AgentTrees {
    pub(crate) fn add(&self, mark: &str, guard: ProcessIdentity) {
        self.with_guards(|guards| guards.insert(mark.to_owned(), guard));
    }

    pub(crate) fn remove(&self, mark: &str) {
        self.with_guards(|guards| guards.remove(mark));
    }

    /// Looks up the process that connected to `socket` and had this pid then.
    pub(crate) fn look_up(&self, socket: BorrowedFd<'_>, pid: u32) -> PeerLookup {
        let pin = PeerPin::from_socket(socket);
        let table = ProcessTable::system();
        let exe = table.executable(pid);
        let place = self.with_guards(|guards| place_of(&table, guards, pid));
        // If the process is still alive, the pid was never reused in the meantime.
        if pin.is_alive() {
            PeerLookup { place, exe }
        } else {
            PeerLookup { place: ProcessPlace::Unknown, exe: None }
        }
    }

    fn with_guards<T>(&self, work: impl FnOnce(&mut BTreeMap<String, ProcessIdentity>) -> T) -> T {
        work(&mut self.guards.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn place_of(
    table: &ProcessTable,
    guards: &BTreeMap<String, ProcessIdentity>,
    pid: u32,
) -> ProcessPlace {
    for _ in 0..ATTEMPTS_MAX {
        match place_by_parents(table, guards, pid) {
            Some(ProcessPlace::Outside) => return place_by_mark(table, guards, pid),
            Some(place) => return place,
            None => {}
        }
    }
    ProcessPlace::Unknown
}

/// Follows the parents; `None` if a process on the way has exited or got another parent.
fn place_by_parents(
    table: &ProcessTable,
    guards: &BTreeMap<String, ProcessIdentity>,
    pid: u32,
) -> Option<ProcessPlace> {
    let mut row = table.row(pid)?;
    for _ in 0..DEPTH_MAX {
        if let Some((mark, _)) = guards.iter().find(|(_, guard)| **guard == row.process) {
            return Some(ProcessPlace::Inside { mark: mark.clone() });
        }
        if row.process.pid == 1 || row.parent == 0 {
            return Some(ProcessPlace::Outside);
        }
        row = parent_of(table, row)?;
    }
    None
}

/// Reads the parent, and then the child again: a pid may be reused, so the result is valid only if
/// the child still has the same parent.
fn parent_of(table: &ProcessTable, child: ProcessRow) -> Option<ProcessRow> {
    let parent = table.row(child.parent)?;
    let again = table.row(child.process.pid)?;
    (again.process == child.process && again.parent == child.parent).then_some(parent)
}

/// For processes whose guard was killed.
fn place_by_mark(
    table: &ProcessTable,
    guards: &BTreeMap<String, ProcessIdentity>,
    pid: u32,
) -> ProcessPlace {
    match guards.keys().find(|mark| table.has_mark(pid, mark)) {
        Some(mark) => ProcessPlace::Inside { mark: mark.clone() },
        None => ProcessPlace::Outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::fd::AsFd as _;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::{Child, Command, Stdio};

    fn trees(mark: &str, guard: u32) -> AgentTrees {
        let trees = AgentTrees::default();
        trees.add(mark, ProcessIdentity::find(guard).unwrap());
        trees
    }

    fn place(trees: &AgentTrees, pid: u32) -> ProcessPlace {
        trees.with_guards(|guards| place_of(&ProcessTable::system(), guards, pid))
    }

    fn inside(mark: &str) -> ProcessPlace {
        ProcessPlace::Inside { mark: mark.to_owned() }
    }

    /// A shell with a child; also returns the pid of the child.
    fn parent_and_child() -> (Child, u32) {
        let script = "sleep 60 & echo $!; wait";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut printed = Vec::new();
        let mut stdout = shell.stdout.take().unwrap();
        while printed.last() != Some(&b'\n') {
            let mut byte = [0];
            stdout.read_exact(&mut byte).unwrap();
            printed.push(byte[0]);
        }
        let child = String::from_utf8(printed).unwrap().trim().parse().unwrap();
        (shell, child)
    }

    fn end(mut shell: Child, child: u32) {
        assert!(ProcessIdentity::find(child).unwrap().signal(crate::os::Signal::KILL));
        shell.kill().unwrap();
        shell.wait().unwrap();
    }

    #[test]
    fn guard_and_its_descendants_are_inside_and_its_parent_is_not() {
        let (shell, child) = parent_and_child();
        let trees = trees("m-1", shell.id());
        assert_eq!(place(&trees, shell.id()), inside("m-1"));
        assert_eq!(place(&trees, child), inside("m-1"));
        assert_eq!(place(&trees, std::process::id()), ProcessPlace::Outside);
        trees.remove("m-1");
        assert_eq!(place(&trees, child), ProcessPlace::Outside);
        end(shell, child);
    }

    #[test]
    fn process_with_the_pid_of_an_earlier_guard_is_not_a_guard() {
        let (shell, child) = parent_and_child();
        let trees = AgentTrees::default();
        let earlier = ProcessIdentity::find(shell.id()).unwrap();
        trees.add("m-1", ProcessIdentity { start: earlier.start - 1, ..earlier });
        assert_eq!(place(&trees, child), ProcessPlace::Outside);
        end(shell, child);
    }

    #[test]
    fn process_with_the_mark_of_a_tree_is_inside_it() {
        let (shell, child) = parent_and_child();
        let mut marked = Command::new("sleep");
        marked.arg("60").env(crate::MARK_VARIABLE, "m-1").stdin(Stdio::null());
        let mut marked = marked.spawn().unwrap();
        // `spawn` returns a moment before the kernel shows the environment of the new program.
        let bound = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let table = ProcessTable::system();
        while !table.has_mark(marked.id(), "m-1") && std::time::Instant::now() < bound {
            std::thread::yield_now();
        }
        let trees = trees("m-1", shell.id());
        assert_eq!(place(&trees, marked.id()), inside("m-1"));
        marked.kill().unwrap();
        marked.wait().unwrap();
        end(shell, child);
    }

    #[test]
    fn place_of_an_exited_process_is_unknown() {
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        assert_eq!(place(&AgentTrees::default(), ended.id()), ProcessPlace::Unknown);
    }

    #[test]
    fn living_peer_is_found_with_its_executable() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        let _client = UnixStream::connect(dir.path().join("s")).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let found = AgentTrees::default().look_up(accepted.as_fd(), std::process::id());
        let exe = std::env::current_exe().unwrap().canonicalize().unwrap();
        assert_eq!(found, PeerLookup { place: ProcessPlace::Outside, exe: Some(exe) });
    }
}

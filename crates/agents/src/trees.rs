//! Which process trees hold agents, and whether a process is inside one of them.
//!
//! A tree begins at its guard. Everything that an agent starts stays below the guard, because a
//! process that loses its parent gets the guard as its new one (subreaper), whatever sessions,
//! process groups and environments it makes for itself. Should the guard be killed, the mark in the
//! environment is what is left to recognize a process by, and a process can remove that.

use crate::os::{PeerPin, Process, Row, Table};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Parents end while we go from one to the next: so often the way is begun anew.
const ATTEMPTS_MAX: u32 = 8;
/// No tree that somebody uses is this deep.
const DEPTH_MAX: u32 = 4096;

/// Where a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessPlace {
    /// In no tree that was started here.
    Outside,
    /// In the tree with this mark.
    Inside { mark: String },
    /// It ended before we could look, or its ancestors ended faster than we could follow them.
    Unknown,
}

/// What is known about the process at the other end of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerLookup {
    pub place: ProcessPlace,
    /// The file that it runs, unless it hides that or has ended.
    pub exe: Option<PathBuf>,
}

/// The trees that run, by their marks.
#[derive(Debug, Default)]
pub(crate) struct Trees {
    guards: Mutex<BTreeMap<String, Process>>,
}

impl Trees {
    pub(crate) fn add(&self, mark: &str, guard: Process) {
        self.with(|guards| guards.insert(mark.to_owned(), guard));
    }

    pub(crate) fn remove(&self, mark: &str) {
        self.with(|guards| guards.remove(mark));
    }

    /// Looks at the process that connected to `socket` and had the number `pid` then.
    pub(crate) fn look_up(&self, socket: BorrowedFd<'_>, pid: u32) -> PeerLookup {
        let pin = PeerPin::of(socket);
        let table = Table::system();
        let exe = table.exe(pid);
        let place = self.with(|guards| place_of(&table, guards, pid));
        // If it lives now, the number was its own all the time.
        if pin.holds() {
            PeerLookup { place, exe }
        } else {
            PeerLookup { place: ProcessPlace::Unknown, exe: None }
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<String, Process>) -> T) -> T {
        work(&mut self.guards.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn place_of(table: &Table, guards: &BTreeMap<String, Process>, pid: u32) -> ProcessPlace {
    for _ in 0..ATTEMPTS_MAX {
        match place_by_parents(table, guards, pid) {
            Some(ProcessPlace::Outside) => return place_by_mark(table, guards, pid),
            Some(place) => return place,
            None => {}
        }
    }
    ProcessPlace::Unknown
}

/// Goes from parent to parent; `None` if a process on the way has ended or got another parent.
fn place_by_parents(
    table: &Table,
    guards: &BTreeMap<String, Process>,
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

/// A parent that ends leaves its number to others: it was the parent if it is so afterwards, too.
fn parent_of(table: &Table, child: Row) -> Option<Row> {
    let parent = table.row(child.parent)?;
    let again = table.row(child.process.pid)?;
    (again.process == child.process && again.parent == child.parent).then_some(parent)
}

/// For what a guard left behind when it was killed.
fn place_by_mark(table: &Table, guards: &BTreeMap<String, Process>, pid: u32) -> ProcessPlace {
    match guards.keys().find(|mark| table.carries(pid, mark)) {
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

    fn trees(mark: &str, guard: u32) -> Trees {
        let trees = Trees::default();
        trees.add(mark, Process::find(guard).unwrap());
        trees
    }

    fn place(trees: &Trees, pid: u32) -> ProcessPlace {
        trees.with(|guards| place_of(&Table::system(), guards, pid))
    }

    fn inside(mark: &str) -> ProcessPlace {
        ProcessPlace::Inside { mark: mark.to_owned() }
    }

    /// A shell with a child; returns the number of the child, too.
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
        assert!(Process::find(child).unwrap().signal(crate::os::Signal::KILL));
        shell.kill().unwrap();
        shell.wait().unwrap();
    }

    #[test]
    fn guard_and_everything_below_it_is_inside_and_its_parent_is_not() {
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
    fn process_with_the_number_of_an_earlier_guard_is_no_guard() {
        let (shell, child) = parent_and_child();
        let trees = Trees::default();
        let earlier = Process::find(shell.id()).unwrap();
        trees.add("m-1", Process { start: earlier.start - 1, ..earlier });
        assert_eq!(place(&trees, child), ProcessPlace::Outside);
        end(shell, child);
    }

    #[test]
    fn process_that_carries_the_mark_of_a_tree_is_inside_it_wherever_it_is() {
        let (shell, child) = parent_and_child();
        let mut marked = Command::new("sleep");
        marked.arg("60").env(crate::MARK_VARIABLE, "m-1").stdin(Stdio::null());
        let mut marked = marked.spawn().unwrap();
        // `spawn` returns a moment before the kernel shows the environment of the new program.
        let environment = format!("/proc/{}/environ", marked.id());
        let bound = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while std::fs::read(&environment).unwrap().is_empty() && std::time::Instant::now() < bound {
            std::thread::yield_now();
        }
        let trees = trees("m-1", shell.id());
        assert_eq!(place(&trees, marked.id()), inside("m-1"));
        marked.kill().unwrap();
        marked.wait().unwrap();
        end(shell, child);
    }

    #[test]
    fn place_of_a_process_that_has_ended_is_unknown() {
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        assert_eq!(place(&Trees::default(), ended.id()), ProcessPlace::Unknown);
    }

    #[test]
    fn peer_that_connected_and_lives_is_found_with_its_program() {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("s")).unwrap();
        let _client = UnixStream::connect(dir.path().join("s")).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let found = Trees::default().look_up(accepted.as_fd(), std::process::id());
        let exe = std::env::current_exe().unwrap().canonicalize().unwrap();
        assert_eq!(found, PeerLookup { place: ProcessPlace::Outside, exe: Some(exe) });
    }
}

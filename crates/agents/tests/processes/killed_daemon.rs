//! The daemon is killed: nothing of it may stay, and nobody else may be hurt.

use crate::harness::{BOUND, example, new_mark};
use crate::proc;
use jackfield_agents::{ProcessLedger, ReapReport};
use rustix::process::Signal;
use std::io::{BufRead as _, BufReader};
use std::mem;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const DETACHED_CHILD_AND_AGENT: &str = r#"
    setsid sh -c 'trap "" TERM HUP INT; while :; do sleep 1; done' &
    trap '' TERM
    while :; do sleep 1; done
"#;

/// A daemon in a process of its own, with one agent that ignores TERM and one stray.
struct Daemon {
    child: Child,
    mark: String,
}

impl Daemon {
    fn start(ledger: &Path) -> Daemon {
        let mark = new_mark();
        let mut child = Command::new(example("daemon"))
            .arg(example("guard"))
            .arg(ledger)
            .arg(&mark)
            .args(["/bin/sh", "-c", DETACHED_CHILD_AND_AGENT])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        assert_eq!(line, "started");
        // Guard, agent, stray, and what those two wait for.
        proc::wait_until("the tree stands", BOUND, || 5 <= proc::pids_with_mark(&mark).len());
        Daemon { child, mark }
    }

    fn guard(&self) -> u32 {
        self.child_of(self.child.id())
    }

    fn child_of(&self, parent: u32) -> u32 {
        let tree = proc::pids_with_mark(&self.mark);
        let is_child = |pid: &u32| proc::state(*pid).is_some_and(|(_, found)| found == parent);
        tree.into_iter().find(is_child).unwrap()
    }

    fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        mem::take(&mut self.mark)
    }
}

/// A test that fails leaves nobody behind either.
impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn trees_of_a_killed_daemon_end_within_five_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let guard = daemon.guard();
    let begin = Instant::now();
    let mark = daemon.kill();
    // A process loses its environment, and so its mark, a moment before it has ended.
    proc::wait_until("the tree is gone", Duration::from_secs(5), || {
        proc::pids_with_mark(&mark).is_empty() && !proc::is_alive(guard)
    });
    // TERM was ignored, so both graces were given in full.
    let took = begin.elapsed();
    assert!(Duration::from_millis(900) <= took, "{took:?}");
    // The guard could not remove the entry of its daemon; the watcher of the ledger does.
    proc::wait_until("the entry is gone", Duration::from_secs(5), || {
        std::fs::read_dir(dir.path()).unwrap().count() == 0
    });
    assert_eq!(ProcessLedger::open(dir.path()).unwrap().reap(), ReapReport::default());
}

#[test]
fn new_daemon_makes_guards_of_the_old_one_finish() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let guard = daemon.guard();
    let mark = daemon.kill();
    let reaped = ProcessLedger::open(dir.path()).unwrap().reap();
    assert_eq!(proc::pids_with_mark(&mark), proc::NO_PIDS);
    assert_eq!(reaped.closed, [mark]);
    assert!(reaped.ended.contains(&guard), "{reaped:?}");
    assert_eq!(reaped.survivors, proc::NO_PIDS);
}

#[test]
fn next_start_ends_processes_left_by_killed_guard_and_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let guard = daemon.guard();
    let agent = daemon.child_of(guard);
    // All before any can do anything about it.
    proc::kill(daemon.child.id(), Signal::STOP);
    proc::kill(proc::child_named(daemon.child.id(), "jf-watcher").unwrap(), Signal::KILL);
    proc::kill(guard, Signal::KILL);
    let mark = daemon.kill();
    proc::wait_until("the agent died with its guard", BOUND, || !proc::is_alive(agent));
    let left = proc::pids_with_mark(&mark);
    assert!(!left.is_empty());
    let reaped = ProcessLedger::open(dir.path()).unwrap().reap();
    assert_eq!(proc::pids_with_mark(&mark), proc::NO_PIDS);
    assert_eq!((reaped.closed, reaped.survivors), (vec![mark], vec![]));
    assert!(left.iter().any(|pid| reaped.ended.contains(pid)));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn unrelated_process_with_a_recorded_pid_is_never_signaled() {
    let dir = tempfile::tempdir().unwrap();
    let mut unrelated = Command::new("sleep").arg("60").spawn().unwrap();
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let recycled = format!(r#"{{"pid":{},"start":1}}"#, unrelated.id());
    let page = format!(
        r#"{{"version":1,"boot_id":"{}","daemon":{recycled},"guard":{recycled},"agent":{recycled}}}"#,
        boot_id.trim()
    );
    std::fs::write(dir.path().join("old-agent.json"), page).unwrap();
    let reaped = ProcessLedger::open(dir.path()).unwrap().reap();
    assert_eq!((reaped.closed, reaped.ended), (vec!["old-agent".to_owned()], vec![]));
    assert!(unrelated.try_wait().unwrap().is_none());
    unrelated.kill().unwrap();
    unrelated.wait().unwrap();
}

//! The daemon is killed: nothing of it may stay, and nobody else may be hurt.

use crate::proc;
use crate::world::{BOUND, example, new_mark};
use jackfield_agents::{Ledger, Reaped};
use rustix::process::Signal;
use std::io::{BufRead as _, BufReader};
use std::mem;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const STRAY_AND_AGENT: &str = r#"
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
            .args(["/bin/sh", "-c", STRAY_AND_AGENT])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        assert_eq!(line, "started");
        // Guard, agent, stray, and what those two wait for.
        proc::wait_until("the tree stands", BOUND, || 5 <= proc::marked(&mark).len());
        Daemon { child, mark }
    }

    fn guard(&self) -> u32 {
        self.child_of(self.child.id())
    }

    fn child_of(&self, parent: u32) -> u32 {
        let tree = proc::marked(&self.mark);
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
fn when_the_daemon_is_killed_its_trees_are_gone_within_five_seconds() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let guard = daemon.guard();
    let begin = Instant::now();
    let mark = daemon.kill();
    // A process loses its environment, and so its mark, a moment before it has ended.
    proc::wait_until("the tree is gone", Duration::from_secs(5), || {
        proc::marked(&mark).is_empty() && !proc::lives(guard)
    });
    // TERM was ignored, so both graces were given in full.
    let took = begin.elapsed();
    assert!(Duration::from_millis(900) <= took, "{took:?}");
    // The guard could not remove the entry of its daemon; the watcher of the ledger does.
    proc::wait_until("the entry is gone", Duration::from_secs(5), || {
        std::fs::read_dir(dir.path()).unwrap().count() == 0
    });
    assert_eq!(Ledger::open(dir.path()).unwrap().reap(), Reaped::default());
}

#[test]
fn a_new_daemon_hurries_the_guards_of_the_old_one() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let guard = daemon.guard();
    let mark = daemon.kill();
    let reaped = Ledger::open(dir.path()).unwrap().reap();
    assert_eq!(proc::marked(&mark), proc::NOBODY);
    assert_eq!(reaped.closed, [mark]);
    assert!(reaped.ended.contains(&guard), "{reaped:?}");
    assert_eq!(reaped.survivors, proc::NOBODY);
}

#[test]
fn when_guard_daemon_and_watcher_were_killed_the_next_start_ends_what_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let daemon = Daemon::start(dir.path());
    let guard = daemon.guard();
    let agent = daemon.child_of(guard);
    // All before any can do anything about it.
    proc::kill(daemon.child.id(), Signal::STOP);
    proc::kill(proc::child_named(daemon.child.id(), "jf-watcher").unwrap(), Signal::KILL);
    proc::kill(guard, Signal::KILL);
    let mark = daemon.kill();
    proc::wait_until("the agent died with its guard", BOUND, || !proc::lives(agent));
    let left = proc::marked(&mark);
    assert!(!left.is_empty());
    let reaped = Ledger::open(dir.path()).unwrap().reap();
    assert_eq!(proc::marked(&mark), proc::NOBODY);
    assert_eq!((reaped.closed, reaped.survivors), (vec![mark], vec![]));
    assert!(left.iter().any(|pid| reaped.ended.contains(pid)));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_stranger_with_a_recorded_number_is_never_signalled() {
    let dir = tempfile::tempdir().unwrap();
    let mut stranger = Command::new("sleep").arg("60").spawn().unwrap();
    let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let recycled = format!(r#"{{"pid":{},"start":1}}"#, stranger.id());
    let page = format!(
        r#"{{"version":1,"boot_id":"{}","daemon":{recycled},"guard":{recycled},"agent":{recycled}}}"#,
        boot_id.trim()
    );
    std::fs::write(dir.path().join("old-agent.json"), page).unwrap();
    let reaped = Ledger::open(dir.path()).unwrap().reap();
    assert_eq!((reaped.closed, reaped.ended), (vec!["old-agent".to_owned()], vec![]));
    assert!(stranger.try_wait().unwrap().is_none());
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

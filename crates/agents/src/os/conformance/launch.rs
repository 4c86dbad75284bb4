//! A guard and its agent: sessions, inherited descriptors, and a guard that is killed.

use super::{TIMEOUT, run_in_single_thread, wait_for};
use crate::os::{
    ORPHAN_PARENT, OrphanParent, ProcessIdentity, ProcessPin, ProcessTable, Signal, launch,
};
use crate::sweep::{SweepTarget, sweep_trees};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::Command;

/// Becomes a guard and starts `sh -c script`. Returns the pid of the shell.
fn start_as_guard(dir: &Path, script: &str) -> u32 {
    launch::become_guard().unwrap();
    let argv = ["sh", "-c", script].map(OsString::from);
    let path = std::env::var_os("PATH").unwrap();
    let environment = [(OsString::from("PATH"), path)];
    let (stdin, _writer) = io::pipe().unwrap();
    launch::start_agent(&argv, dir, &environment, stdin.into()).unwrap()
}

fn read_line(file: &Path) -> String {
    wait_for("a line in the file", || {
        fs::read_to_string(file).ok()?.split_once('\n').map(|(line, _)| line.to_owned())
    })
}

#[test]
fn agent_has_a_session_of_its_own_and_only_its_own_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let leaked = File::create(dir.path().join("leaked")).unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    assert!(run_in_single_thread(|| {
        // A descriptor that the shell could only have inherited.
        let script = "for it in 3 4 5 6 7 8 9; do \
                          if { true >&$it; } 2>/dev/null; then echo open $it; fi; \
                      done > fds; ps -o pgid= -p $$ > group; pwd > cwd";
        let agent = start_as_guard(dir.path(), script);
        let options = rustix::process::WaitOptions::empty();
        rustix::process::wait(options).unwrap();
        let group = read_line(&dir.path().join("group"));
        group.trim() == agent.to_string()
    }));
    assert_eq!(fs::read_to_string(dir.path().join("fds")).unwrap(), "");
    let cwd = read_line(&dir.path().join("cwd"));
    assert_eq!(Path::new(&cwd).canonicalize().unwrap(), dir.path().canonicalize().unwrap());
}

/// A guard that was started by the test, and killed when the test ends.
fn start_guard_process(dir: &Path) -> (Guard, ProcessIdentity) {
    // The process between the test and the guard, so that the guard is no child of the test.
    let is_started = run_in_single_thread(|| {
        let script = format!("echo $$ > {}/agent; exec sleep 60", dir.display());
        run_detached(|| {
            fs::write(dir.join("guard"), format!("{}\n", std::process::id())).unwrap();
            start_as_guard(dir, &script);
            std::thread::sleep(TIMEOUT);
        })
    });
    assert!(is_started);
    let find = |name: &str| ProcessIdentity::find(read_line(&dir.join(name)).parse().unwrap());
    (Guard { process: find("guard").unwrap() }, find("agent").unwrap())
}

/// Runs `work` in a child that is not waited for.
#[expect(unsafe_code, reason = "a process with only one thread")]
fn run_detached(work: impl FnOnce()) -> bool {
    // SAFETY: the child runs only `work` and ends with `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            work();
            // SAFETY: it ends the child at once.
            unsafe { libc::_exit(0) }
        }
        child => 0 < child,
    }
}

struct Guard {
    process: ProcessIdentity,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.process.signal(Signal::KILL);
    }
}

#[test]
fn agent_whose_guard_is_killed_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (guard, agent) = start_guard_process(dir.path());
    let pin = ProcessPin::open(agent.pid).unwrap();
    assert!(guard.process.signal(Signal::KILL));
    match ORPHAN_PARENT {
        OrphanParent::Guard => assert!(pin.wait_for_exit(TIMEOUT), "the parent-death signal"),
        OrphanParent::Init => {
            let mark = "conformance-3".to_owned();
            let swept = sweep_trees(&[SweepTarget { mark, known: vec![agent], group: None }]);
            assert!(swept.survivors.concat().is_empty());
            assert!(pin.wait_for_exit(TIMEOUT));
        }
    }
    assert!(!agent.is_alive());
}

#[test]
fn orphan_gets_the_parent_that_the_system_promises() {
    let dir = tempfile::tempdir().unwrap();
    assert!(run_in_single_thread(|| {
        let script = "sh -c 'echo $$ > shell; sleep 60 & echo $! > orphan'";
        start_as_guard(dir.path(), script);
        let read_pid = |name: &str| read_line(&dir.path().join(name)).parse::<u32>().unwrap();
        let (shell, orphan) = (read_pid("shell"), read_pid("orphan"));
        let table = ProcessTable::system();
        let process = ProcessIdentity::find(orphan).unwrap();
        let parent = wait_for("another parent than the shell", || {
            table.row(table.row(orphan)?.parent).filter(|it| it.process.pid != shell)
        });
        let is_guard = parent.process.pid == std::process::id();
        process.signal(Signal::KILL);
        is_guard == (ORPHAN_PARENT == OrphanParent::Guard)
    }));
}

#[test]
fn limit_of_open_files_is_inherited() {
    assert!(run_in_single_thread(|| {
        launch::limit_files(200);
        let limit = Command::new("sh").args(["-c", "ulimit -n"]).output().unwrap();
        String::from_utf8_lossy(&limit.stdout).trim() == "200"
    }));
}

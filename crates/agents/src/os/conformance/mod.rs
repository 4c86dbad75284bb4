//! The suite that every folder of `os` has to pass: the promises in the table of `os/mod.rs`, tested
//! on the system that the tests run on.

mod clocks;
mod files;
mod identity;
mod launch;
mod signals;
mod trees;

use super::{MARK_VARIABLE, ProcessIdentity, ProcessTable, Signal};
use std::io::{BufRead as _, BufReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TIMEOUT: Duration = Duration::from_secs(20);

/// Waits until `condition` returns a value.
fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(Instant::now() < deadline, "{what} did not happen within {TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A child process that is killed and reaped when the test ends.
struct TestProcess {
    child: Child,
}

impl TestProcess {
    fn spawn(command: &mut Command) -> TestProcess {
        TestProcess { child: command.spawn().unwrap() }
    }

    fn sleeper() -> TestProcess {
        TestProcess::spawn(Command::new("sleep").arg("60").stdin(Stdio::null()))
    }

    /// This program, which waits with this mark in its environment. macOS hides the environments of
    /// the programs in `/bin`.
    fn marked(mark: &str) -> TestProcess {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let test = "os::conformance::marked_process_waits_for_the_end_of_stdin";
        command.args(["--exact", test, "--nocapture"]);
        command.env(MARK_VARIABLE, mark).stdin(Stdio::piped()).stdout(Stdio::null());
        let process = TestProcess::spawn(&mut command);
        // `spawn` may return a moment before the kernel shows the environment of the new program.
        let table = ProcessTable::system();
        wait_for("the mark", || table.has_mark(process.pid(), mark).then_some(()));
        process
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    fn identity(&self) -> ProcessIdentity {
        ProcessIdentity::find(self.pid()).unwrap()
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// The program of [`TestProcess::marked`].
#[test]
fn marked_process_waits_for_the_end_of_stdin() {
    if std::env::var_os(MARK_VARIABLE).is_some() {
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    }
}

/// A process that is not a child of the test; killed when the test ends.
struct Orphan {
    process: ProcessIdentity,
}

impl Drop for Orphan {
    fn drop(&mut self) {
        self.process.signal(Signal::KILL);
    }
}

/// Starts a shell that runs `script`, and returns it with the process whose pid the script prints.
fn shell_with_descendant(script: &str, mark: Option<&str>) -> (TestProcess, Orphan) {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
    command.envs(mark.map(|it| (MARK_VARIABLE, it)));
    let mut shell = TestProcess::spawn(&mut command);
    let mut line = String::new();
    BufReader::new(shell.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let process = ProcessIdentity::find(line.trim().parse().unwrap()).unwrap();
    (shell, Orphan { process })
}

/// Runs `work` in a process with only one thread, as a guard has. Returns its result; a panic is
/// `false`.
#[expect(unsafe_code, reason = "a thread mask has an effect only in a process with one thread")]
fn run_in_single_thread(work: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs only `work` and ends with `_exit`.
    match unsafe { libc::fork() } {
        0 => {
            let is_ok = catch_unwind(AssertUnwindSafe(work)).unwrap_or(false);
            // SAFETY: it ends the child at once.
            unsafe { libc::_exit(i32::from(!is_ok)) }
        }
        child => {
            let child = rustix::process::Pid::from_raw(child).unwrap();
            let options = rustix::process::WaitOptions::empty();
            let (_, status) = rustix::process::waitpid(Some(child), options).unwrap().unwrap();
            status.exit_status() == Some(0)
        }
    }
}

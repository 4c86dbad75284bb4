//! A home directory for one test. Files of the user who runs the tests are not touched.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Output, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tempfile::TempDir;

const COMMAND_MAX: Duration = Duration::from_mins(1);

pub(crate) struct TestHome {
    dir: TempDir,
}

/// The exit code and the output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutcome {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    command_line: String,
}

impl TestHome {
    pub(crate) fn new() -> TestHome {
        let dir = tempfile::Builder::new().prefix("jf").tempdir().expect("a temporary directory");
        for name in ["bin", "config", "state", "run", "project"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let home = TestHome { dir };
        home.write_program("goose", "exit 1");
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path().join("run/jackfield/hub.sock")
    }

    /// Writes a program on PATH.
    pub(crate) fn write_program(&self, name: &str, script: &str) {
        let path = self.path().join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn write_config(&self, text: &str) {
        let dir = self.path().join("config/jackfield");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("config.toml"), text).unwrap();
    }

    /// Writes a file in the folder `agents`.
    pub(crate) fn write_agent_file(&self, file: &str, text: &str) {
        let dir = self.path().join("config/jackfield/agents");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(file), text).unwrap();
    }

    /// The command with these arguments and an environment for this home.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jackfield"));
        command
            .args(args)
            .env_clear()
            .env("PATH", self.path().join("bin"))
            .env("HOME", self.path())
            // Programs that the user of this machine has installed are not found.
            .env("JACKFIELD_PROGRAM_DIRS", "")
            // The built-in agent is always found, and must not use the network.
            .env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
            .env("XDG_CONFIG_HOME", self.path().join("config"))
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env("XDG_RUNTIME_DIR", self.path().join("run"))
            .current_dir(self.path().join("project"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> CommandOutcome {
        self.start(args, None).finish()
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> CommandOutcome {
        self.start(args, Some(input)).finish()
    }

    /// Starts a command and does not wait for it.
    pub(crate) fn start(&self, args: &[&str], input: Option<&str>) -> RunningCommand<'_> {
        let (running, mut stdin) = self.start_with_stdin(args);
        // A command that does not read its input may have exited.
        let _unread = stdin.write_all(input.unwrap_or_default().as_bytes());
        running
    }

    /// Starts a command and returns its stdin, so that the test decides what is written and when.
    pub(crate) fn start_with_stdin(&self, args: &[&str]) -> (RunningCommand<'_>, ChildStdin) {
        let mut child =
            self.command(args).stdin(Stdio::piped()).spawn().expect("the command starts");
        let stdin = child.stdin.take().expect("piped");
        let stdout = collect(child.stdout.take().expect("piped"));
        let stderr = collect(child.stderr.take().expect("piped"));
        let command_line = self.redact(&args.join(" "));
        (RunningCommand { home: self, child, stdout, stderr, command_line }, stdin)
    }

    /// The outcome of a command that was built with [`TestHome::command`].
    pub(crate) fn outcome(&self, command_line: &str, output: &Output) -> CommandOutcome {
        let text = |bytes: &[u8]| self.redact(&String::from_utf8_lossy(bytes));
        CommandOutcome {
            code: output.status.code().unwrap_or(-1),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
            command_line: command_line.to_owned(),
        }
    }

    /// Replaces what differs between runs and machines.
    pub(crate) fn redact(&self, text: &str) -> String {
        text.replace(&self.path().display().to_string(), "[HOME]")
            .replace(env!("CARGO_PKG_VERSION"), "[VERSION]")
    }
}

impl Drop for TestHome {
    /// Stops the daemon that a failed test may leave behind.
    fn drop(&mut self) {
        if self.path().join("state/jackfield/lock").exists() {
            let _stopped = self.command(&["daemon", "stop"]).output();
        }
    }
}

pub(crate) struct RunningCommand<'a> {
    home: &'a TestHome,
    child: Child,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
    command_line: String,
}

impl RunningCommand<'_> {
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("the command runs");
    }

    pub(crate) fn finish(mut self) -> CommandOutcome {
        let limit = Instant::now() + COMMAND_MAX;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if limit < Instant::now() {
                self.child.kill().unwrap();
                panic!("`jackfield {}` did not exit", self.command_line);
            }
            thread::sleep(Duration::from_millis(2));
        };
        let text = |bytes: Vec<u8>| self.home.redact(&String::from_utf8(bytes).unwrap());
        CommandOutcome {
            code: status.code().unwrap_or(-1),
            stdout: text(self.stdout.join().unwrap()),
            stderr: text(self.stderr.join().unwrap()),
            command_line: self.command_line,
        }
    }
}

impl CommandOutcome {
    /// The text for a snapshot.
    pub(crate) fn to_snapshot(&self) -> String {
        let mut printed = format!("$ jackfield {}\n", self.command_line);
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            // Notices about long waits depend on the load of the machine.
            let text: String =
                text.split_inclusive('\n').filter(|it| !it.starts_with("waiting for ")).collect();
            if !text.is_empty() {
                let end = if text.ends_with('\n') { "" } else { "⏎\n" };
                write!(printed, "--- {name}\n{text}{end}").unwrap();
            }
        }
        write!(printed, "--- exit {}", self.code).unwrap();
        printed
    }
}

fn collect(mut stream: impl std::io::Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("the output can be read");
        bytes
    })
}

/// Waits for a condition, with a time limit.
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + COMMAND_MAX;
    while !condition() {
        assert!(Instant::now() < limit, "timed out waiting for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

//! A home for one test: no file of the person who runs the tests is read or written.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use tempfile::TempDir;

const COMMAND_MAX: Duration = Duration::from_mins(1);

pub(crate) struct Home {
    dir: TempDir,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Did {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    shown: String,
}

impl Home {
    pub(crate) fn new() -> Home {
        let dir = tempfile::Builder::new().prefix("jf").tempdir().expect("a temporary directory");
        for name in ["bin", "config", "state", "run", "project"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let home = Home { dir };
        home.program("goose", "exit 1");
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path().join("run/jackfield/hub.sock")
    }

    /// A program on PATH.
    pub(crate) fn program(&self, name: &str, script: &str) {
        let path = self.path().join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn config(&self, text: &str) {
        let dir = self.path().join("config/jackfield");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("config.toml"), text).unwrap();
    }

    /// A file in the folder `agents`.
    pub(crate) fn agent(&self, file: &str, text: &str) {
        let dir = self.path().join("config/jackfield/agents");
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(file), text).unwrap();
    }

    /// The command with these arguments, in this home and in an otherwise empty environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jackfield"));
        command
            .args(args)
            .env_clear()
            .env("PATH", self.path().join("bin"))
            .env("HOME", self.path())
            // Nothing that the person who runs the tests has installed is found.
            .env("JACKFIELD_PROGRAM_DIRS", "")
            // Our own agent is always found, and asks nobody outside.
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

    pub(crate) fn run(&self, args: &[&str]) -> Did {
        self.start(args, None).finish()
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Did {
        self.start(args, Some(input)).finish()
    }

    /// Starts a command and does not wait for it.
    pub(crate) fn start(&self, args: &[&str], input: Option<&str>) -> Running<'_> {
        let (running, mut stdin) = self.start_typing(args);
        // A command that does not read its input may be gone already.
        let _unread = stdin.write_all(input.unwrap_or_default().as_bytes());
        running
    }

    /// Starts a command whose stdin stays open: what is typed, and when, is the test's to say.
    pub(crate) fn start_typing(&self, args: &[&str]) -> (Running<'_>, ChildStdin) {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().expect("it starts");
        let stdin = child.stdin.take().expect("piped");
        let stdout = collect(child.stdout.take().expect("piped"));
        let stderr = collect(child.stderr.take().expect("piped"));
        let shown = self.redact(&args.join(" "));
        (Running { home: self, child, stdout, stderr, shown }, stdin)
    }

    /// Replaces what differs from run to run and from machine to machine.
    pub(crate) fn redact(&self, text: &str) -> String {
        text.replace(&self.path().display().to_string(), "[HOME]")
            .replace(env!("CARGO_PKG_VERSION"), "[VERSION]")
    }
}

impl Drop for Home {
    /// A test that failed in between leaves no daemon behind either.
    fn drop(&mut self) {
        if self.path().join("state/jackfield/lock").exists() {
            let _stopped = self.command(&["daemon", "stop"]).output();
        }
    }
}

pub(crate) struct Running<'a> {
    home: &'a Home,
    child: Child,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
    shown: String,
}

impl Running<'_> {
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("the command runs");
    }

    pub(crate) fn finish(mut self) -> Did {
        let limit = Instant::now() + COMMAND_MAX;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if limit < Instant::now() {
                self.child.kill().unwrap();
                panic!("`jackfield {}` did not end", self.shown);
            }
            thread::sleep(Duration::from_millis(2));
        };
        let text = |bytes: Vec<u8>| self.home.redact(&String::from_utf8(bytes).unwrap());
        Did {
            code: status.code().unwrap_or(-1),
            stdout: text(self.stdout.join().unwrap()),
            stderr: text(self.stderr.join().unwrap()),
            shown: self.shown,
        }
    }
}

impl Did {
    /// As it stands in a snapshot.
    pub(crate) fn told(&self) -> String {
        let mut told = format!("$ jackfield {}\n", self.shown);
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            // That something took long is news for people, not for tests on a busy machine.
            let text: String =
                text.split_inclusive('\n').filter(|it| !it.starts_with("waiting for ")).collect();
            if !text.is_empty() {
                let end = if text.ends_with('\n') { "" } else { "⏎\n" };
                write!(told, "--- {name}\n{text}{end}").unwrap();
            }
        }
        write!(told, "--- exit {}", self.code).unwrap();
        told
    }
}

fn collect(mut stream: impl std::io::Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("the output can be read");
        bytes
    })
}

/// Waits for a condition, with a bound.
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let limit = Instant::now() + COMMAND_MAX;
    while !condition() {
        assert!(Instant::now() < limit, "waited in vain for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

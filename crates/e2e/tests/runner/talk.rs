//! `jackfield run` as a process one talks to: its stdin stays open, its words are seen as they come.

use jackfield_e2e::{Home, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    io::{Read, Write as _},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};

const BOUND: Duration = Duration::from_secs(40);

pub(super) struct Talk {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Stream,
    stderr: Stream,
}

/// How it ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

struct Stream {
    seen: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Stream {
    fn new(mut from: impl Read + Send + 'static) -> Stream {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let told = seen.clone();
        let reader = thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = from.read(&mut chunk) {
                told.lock().unwrap().extend_from_slice(&chunk[..count]);
            }
        });
        Stream { seen, reader }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }
}

impl Talk {
    /// `jackfield run ARGS -- fake-agent FLAGS`.
    pub(super) fn start(home: &Home, args: &[&str], flags: &[&str]) -> Talk {
        let agent = home.fake_agent(flags);
        let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
        Talk::begin(home, &[&["run"], args, &["--"], &agent].concat())
    }

    /// Any command.
    pub(super) fn begin(home: &Home, args: &[&str]) -> Talk {
        Talk::spawn(home.command(args).env("SOME_API_KEY", "not-for-everyone"))
    }

    pub(super) fn spawn(command: &mut Command) -> Talk {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = Stream::new(child.stdout.take().unwrap());
        let stderr = Stream::new(child.stderr.take().unwrap());
        Talk { stdin: child.stdin.take(), child, stdout, stderr }
    }

    pub(super) fn say(&mut self, line: &str) {
        self.stdin.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Waits until stdout has this, so many times.
    pub(super) fn hear(&self, text: &str, times: usize) {
        wait_for(&format!("{times} times {text:?}"), BOUND, || {
            (times <= self.stdout.text().matches(text).count()).then_some(())
        });
    }

    /// Says it and waits until its turn is over, as text shows it: by an empty line.
    pub(super) fn turn(&mut self, line: &str) -> String {
        let before = self.stdout.text().len();
        self.say(line);
        wait_for(&format!("the end of `{line}`"), BOUND, || {
            let said = self.stdout.text()[before..].to_owned();
            (said == "\n" || said.ends_with("\n\n")).then_some(said)
        })
    }

    pub(super) fn hear_aside(&self, text: &str) {
        wait_for(&format!("{text:?} on stderr"), BOUND, || {
            self.stderr.text().contains(text).then_some(())
        });
    }

    pub(super) fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Ends its stdin, and waits.
    pub(super) fn finish(mut self) -> Ended {
        drop(self.stdin.take());
        self.wait()
    }

    /// Waits for its end; its stdin stays open.
    pub(super) fn wait(mut self) -> Ended {
        let status = wait_for("the command's end", BOUND, || self.child.try_wait().unwrap());
        self.stdout.reader.join().unwrap();
        self.stderr.reader.join().unwrap();
        let said =
            |it: &Arc<Mutex<Vec<u8>>>| String::from_utf8_lossy(&it.lock().unwrap()).into_owned();
        let (stdout, stderr) = (said(&self.stdout.seen), said(&self.stderr.seen));
        Ended { code: status.code(), stdout, stderr }
    }
}

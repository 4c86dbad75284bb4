//! The ways to one and the same agent: directly, and through Jackfield on each transport.

use super::talk::Talk;
use anyhow::{Context as _, Result, bail};
use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// How long nothing may come from a daemon before the bench gives up.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    Stdio,
    Unix,
    Tcp,
}

impl Way {
    pub(crate) const ALL: [Way; 4] = [Way::Direct, Way::Stdio, Way::Unix, Way::Tcp];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Direct => "direct pipe",
            Way::Stdio => "jackfield, stdio",
            Way::Unix => "jackfield, unix",
            Way::Tcp => "jackfield, TCP",
        }
    }
}

/// The programs under test and a daemon of our own in a directory of its own.
pub(crate) struct Bench {
    pub(crate) jackfield: PathBuf,
    pub(crate) agent: PathBuf,
    pub(crate) dir: tempfile::TempDir,
    daemon: Option<Child>,
    port: u16,
}

/// An open connection; ending it ends its process.
pub(crate) struct Line {
    pub(crate) talk: Talk,
    child: Option<Child>,
}

impl Line {
    /// Of the process that was started for it.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

impl Bench {
    pub(crate) fn new(jackfield: PathBuf, agent: PathBuf) -> Result<Bench> {
        let dir = tempfile::tempdir()?;
        Ok(Bench { jackfield, agent, dir, daemon: None, port: 0 })
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("run/hub.sock")
    }

    /// The command with nothing of our environment but what it needs.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.jackfield);
        let dir = self.dir.path();
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", dir);
        command.env("JACKFIELD_CONFIG_DIR", dir.join("config"));
        command.env("JACKFIELD_STATE_DIR", dir.join("state"));
        command.env("JACKFIELD_RUNTIME_DIR", dir.join("run"));
        command.stderr(Stdio::null());
        command
    }

    /// Starts the daemon and waits for its socket; returns how long that took.
    pub(crate) fn start(&mut self) -> Result<Duration> {
        self.port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let listen = format!("tcp://127.0.0.1:{}", self.port);
        self.serve(&["--listen", &listen])
    }

    /// The same with these arguments.
    pub(crate) fn serve(&mut self, arguments: &[&str]) -> Result<Duration> {
        let begin = Instant::now();
        let mut command = self.command();
        command.arg("serve").args(arguments);
        self.daemon = Some(command.stdout(Stdio::null()).spawn()?);
        while UnixStream::connect(self.socket()).is_err() {
            if PATIENCE < begin.elapsed() {
                bail!("the daemon did not come up");
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(begin.elapsed())
    }

    pub(crate) fn daemon_pid(&self) -> u32 {
        self.daemon.as_ref().expect("started").id()
    }

    pub(crate) fn connect(&self, way: Way) -> Result<Line> {
        match way {
            Way::Direct => Bench::child(Command::new(&self.agent).stderr(Stdio::null())),
            Way::Stdio => Bench::child(self.command().arg("acp").arg("--").arg(&self.agent)),
            Way::Unix => {
                let stream = UnixStream::connect(self.socket())?;
                stream.set_read_timeout(Some(PATIENCE))?;
                let reader = stream.try_clone()?;
                self.dialed(Box::new(reader), Box::new(stream), None)
            }
            Way::Tcp => {
                let stream = TcpStream::connect(("127.0.0.1", self.port))?;
                stream.set_nodelay(true)?;
                let reader = stream.try_clone()?;
                let token = fs::read_to_string(self.dir.path().join("state/token"))?;
                self.dialed(Box::new(reader), Box::new(stream), Some(token.trim()))
            }
        }
    }

    /// A connection of a client that names no agent: the hub itself answers.
    pub(crate) fn hub_only(&self) -> Result<Talk> {
        let stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Talk::new(Box::new(stream.try_clone()?), Box::new(stream)))
    }

    pub(crate) fn child(command: &mut Command) -> Result<Line> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let writer = child.stdin.take().context("piped")?;
        let reader = child.stdout.take().context("piped")?;
        let talk = Talk::new(Box::new(reader), Box::new(writer));
        Ok(Line { talk, child: Some(child) })
    }

    fn dialed(
        &self,
        reader: Box<dyn Read + Send>,
        writer: Box<dyn Write + Send>,
        token: Option<&str>,
    ) -> Result<Line> {
        let mut talk = Talk::new(reader, writer);
        if let Some(token) = token {
            talk.notify("_jackfield/auth", &serde_json::json!({ "token": token }).to_string())?;
        }
        let agent = serde_json::json!({ "agent": { "name": "fake", "argv": [self.agent] } });
        talk.notify("_jackfield/connect", &agent.to_string())?;
        Ok(Line { talk, child: None })
    }
}

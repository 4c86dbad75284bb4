//! The ways to one and the same worker: directly, and through a bus on each transport.

use anyhow::{Context as _, Result, bail};
use jackfield_test_support::line_client::LineClient;
use std::{
    ffi::OsString,
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// How long nothing may come before a program is said to stall.
pub(crate) const PATIENCE: Duration = Duration::from_secs(4);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Stdio,
    Unix,
    Tcp,
}

impl Transport {
    pub(crate) const ALL: [Transport; 3] = [Transport::Stdio, Transport::Unix, Transport::Tcp];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Unix => "unix",
            Transport::Tcp => "TCP",
        }
    }
}

/// A bus: ours, or another that takes the same flags and the same file.
pub(crate) struct Program {
    pub(crate) name: String,
    argv: Vec<OsString>,
}

impl Program {
    pub(crate) fn ours(jackfield: &Path) -> Program {
        Program { name: "jackfield".into(), argv: vec![jackfield.into(), "bus".into()] }
    }

    pub(crate) fn peer(path: &Path) -> Result<Program> {
        let path = std::path::absolute(path)?;
        let name = path.file_name().context("the peer is a program")?;
        Ok(Program { name: name.to_string_lossy().into_owned(), argv: vec![path.into()] })
    }
}

/// A running bus, or a worker with nothing in between; ended with everything it started.
pub(crate) struct Running {
    child: Child,
    dialing: Option<Dialing>,
}

enum Dialing {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl Drop for Running {
    fn drop(&mut self) {
        // First politely, so that a bus without guards takes its workers with it.
        if let Some(pid) = rustix::process::Pid::from_raw(self.child.id().cast_signed()) {
            let _ended_already = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(2) {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }
}

impl Running {
    /// The worker itself.
    pub(crate) fn direct(worker: &Path) -> Result<(Running, LineClient)> {
        let mut running = Running { child: spawn(&mut Command::new(worker))?, dialing: None };
        let client = running.piped()?;
        Ok((running, client))
    }

    /// Starts a bus with this file and gives a first client, as soon as it takes one.
    pub(crate) fn start(
        program: &Program,
        transport: Transport,
        config: &str,
        dir: &Path,
    ) -> Result<(Running, LineClient)> {
        // Several run at once, each with a file and a socket of its own.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let file = dir.join(format!("{number}.json"));
        fs::write(&file, config)?;
        let mut command = Command::new(&program.argv[0]);
        command.args(&program.argv[1..]).arg("--config").arg(file).current_dir(dir);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", dir);
        let dialing = match transport {
            Transport::Stdio => {
                command.arg("--stdio");
                None
            }
            Transport::Unix => {
                let path = dir.join(format!("{number}.sock"));
                command.arg("--unix").arg(&path);
                Some(Dialing::Unix(path))
            }
            Transport::Tcp => {
                let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
                command.arg("--tcp").arg(address.to_string());
                Some(Dialing::Tcp(address))
            }
        };
        let mut running = Running { child: spawn(&mut command)?, dialing };
        let client = if running.dialing.is_none() { running.piped()? } else { running.wait()? };
        Ok((running, client))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// One more client.
    pub(crate) fn dial(&self) -> Result<LineClient> {
        Ok(match self.dialing.as_ref().context("stdio has one client")? {
            Dialing::Unix(path) => LineClient::unix(path, PATIENCE)?,
            Dialing::Tcp(address) => LineClient::tcp(*address, PATIENCE)?,
        })
    }

    fn wait(&mut self) -> Result<LineClient> {
        let begin = Instant::now();
        loop {
            if let Ok(client) = self.dial() {
                return Ok(client);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended before it listened: {status}");
            }
            if Duration::from_secs(10) < begin.elapsed() {
                bail!("it does not listen");
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn piped(&mut self) -> Result<LineClient> {
        let reader = self.child.stdout.take().context("piped")?;
        let writer = self.child.stdin.take().context("piped")?;
        Ok(LineClient::new(reader.into(), writer.into(), PATIENCE))
    }
}

fn spawn(command: &mut Command) -> Result<Child> {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().with_context(|| format!("{} does not start", command.get_program().display()))
}

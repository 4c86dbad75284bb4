//! Starting a daemon in the background, and waiting until it listens.

use super::conn::peer_pid;
use crate::{env, exit::Exit, out::Out, report::Failure};
use jackfield_daemon::{Paths, limit_log};
use jackfield_private_files as private_files;
use jackfield_transport::{BlockingSocket, DialError, EndpointAddress, dial_until_ready};
use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// A journal of ten thousand sessions is open in one second.
const START_MAX: Duration = Duration::from_secs(5);
/// From when on it is worth a word.
const PATIENCE: Duration = Duration::from_secs(1);
/// What a detached daemon says when another one holds the lock.
pub(crate) const ALREADY_RUNS: Exit = Exit::Unreachable;
/// How long to wait for that other one before trying again.
const TRY_AGAIN: Duration = Duration::from_millis(100);
const SAID_BYTES_MAX: u64 = 16 * 1024;

/// Starts `jackfield serve` detached from this terminal and connects to it.
pub(super) fn start(paths: &Paths, out: &Out) -> Result<BlockingSocket, Failure> {
    let log = paths.log();
    let failed = |why: String, said| Failure::NotStarted { why, said, log: log.clone() };
    let (child, from) = spawn(paths).map_err(|error| failed(error.to_string(), Vec::new()))?;
    let now = Instant::now();
    let mut watch = Watch { child, spawned: now, began: now, told: false, paths, out };
    let address = EndpointAddress::Unix(paths.socket());
    let dialled = dial_until_ready(&address, None, START_MAX, || watch.check());
    let socket = dialled.map_err(|error| {
        let why = match error {
            DialError::NotStarted { why, .. } => why,
            other => other.to_string(),
        };
        failed(why, said(&log, from))
    })?;
    watch.leave(&socket);
    Ok(socket)
}

/// The daemon while it comes up.
struct Watch<'a> {
    child: Child,
    spawned: Instant,
    began: Instant,
    told: bool,
    paths: &'a Paths,
    out: &'a Out,
}

impl Watch<'_> {
    /// Another daemon was faster than ours: ours must not come up when that one has long gone.
    fn leave(mut self, socket: &BlockingSocket) {
        let ours = i32::try_from(self.child.id()).ok();
        if peer_pid(socket).is_some_and(|it| Some(it) != ours) {
            // Both fail only if it has ended already.
            let _ended = self.child.kill();
            let _reaped = self.child.wait();
        }
    }

    /// An error if it makes no sense to wait any longer.
    fn check(&mut self) -> Result<(), String> {
        if !self.told && PATIENCE < self.began.elapsed() {
            self.told = true;
            self.out.note("waiting for the daemon to start…");
        }
        let status = self.child.try_wait().map_err(|error| error.to_string())?;
        match status {
            None => Ok(()),
            // Another one is coming up, and will answer; or going down, and then we try again.
            Some(status) if status.code() == Some(i32::from(ALREADY_RUNS as u8)) => {
                if TRY_AGAIN < self.spawned.elapsed() {
                    self.spawned = Instant::now();
                    (self.child, _) = spawn(self.paths).map_err(|error| error.to_string())?;
                }
                Ok(())
            }
            Some(status) => Err(format!("it ended at once: {status}")),
        }
    }
}

/// Returns the child, and where in the log it begins to write.
fn spawn(paths: &Paths) -> io::Result<(Child, u64)> {
    private_files::create_dir(&paths.state)?;
    let log = paths.log();
    limit_log(&log)?;
    let stderr = private_files::open_file(&log, OpenOptions::new().create(true).append(true))?;
    let from = stderr.metadata()?.len();
    let child = Command::new(std::env::current_exe()?)
        .args(["serve", "--detached"])
        // Its log is where everyone looks for it, whatever the caller's variables say.
        .env_remove(env::LOG)
        // It is not the service that this command may belong to.
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        // It must not keep a directory busy that somebody wants to remove.
        .current_dir("/")
        .spawn()?;
    Ok((child, from))
}

/// What the daemon wrote since it was started.
fn said(log: &Path, from: u64) -> Vec<String> {
    let read = || -> io::Result<String> {
        let mut file = File::open(log)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(from.max(end.saturating_sub(SAID_BYTES_MAX))))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let text = read().unwrap_or_default();
    text.lines().filter(|it| !it.trim().is_empty()).map(str::to_owned).collect()
}

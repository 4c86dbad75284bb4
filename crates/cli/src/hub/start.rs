//! Starts a daemon in the background and waits until it listens.

use super::single_request::peer_pid;
use crate::{env, exit::CliExitCode, out::CommandOutput, report::CommandError};
use jackfield_daemon::{Paths, find_holder, limit_log};
use jackfield_private_files as private_files;
use jackfield_transport::{BlockingSocket, DialError, EndpointAddress, dial_until_ready};
use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _, Seek as _, SeekFrom},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// How long a daemon may take to listen. Opening a journal with ten thousand sessions takes one second.
const START_MAX: Duration = Duration::from_secs(5);
/// After this time the user is told what the command waits for.
const NOTICE_DELAY: Duration = Duration::from_secs(1);
/// The exit code of a detached daemon when another one holds the lock.
pub(crate) const ALREADY_RUNS: CliExitCode = CliExitCode::Unreachable;
/// How long to wait for the other daemon before starting one again.
const RETRY_DELAY: Duration = Duration::from_millis(100);
const LOG_BYTES_MAX: u64 = 16 * 1024;

/// The result of starting a daemon.
pub(super) enum StartedDaemon {
    Connected(BlockingSocket),
    /// Another daemon holds the lock and listens on a socket in another runtime directory.
    RunsElsewhere,
}

/// Starts `jackfield serve` detached from this terminal and connects to it.
pub(super) fn start_daemon(
    paths: &Paths,
    output: &CommandOutput,
) -> Result<StartedDaemon, CommandError> {
    let log = paths.log();
    let failed =
        |why: String, log_lines| CommandError::NotStarted { why, log_lines, log: log.clone() };
    let (child, log_start) =
        spawn_daemon(paths).map_err(|error| failed(error.to_string(), Vec::new()))?;
    let now = Instant::now();
    let mut daemon = StartingDaemon {
        child,
        spawned_at: now,
        started_at: now,
        notice_printed: false,
        runs_elsewhere: false,
        paths,
        output,
    };
    let address = EndpointAddress::Unix(paths.socket());
    let dialed = dial_until_ready(&address, None, START_MAX, || daemon.check_progress());
    let why = match dialed {
        Ok(socket) => {
            daemon.stop_if_redundant(&socket);
            return Ok(StartedDaemon::Connected(socket));
        }
        Err(_) if daemon.runs_elsewhere => return Ok(StartedDaemon::RunsElsewhere),
        Err(DialError::NotStarted { why, .. }) => why,
        Err(other) => other.to_string(),
    };
    Err(failed(why, read_log_lines(&log, log_start)))
}

/// A daemon that does not listen yet.
struct StartingDaemon<'a> {
    child: Child,
    spawned_at: Instant,
    started_at: Instant,
    notice_printed: bool,
    /// Another daemon holds the lock and listens in another runtime directory.
    runs_elsewhere: bool,
    paths: &'a Paths,
    output: &'a CommandOutput,
}

impl StartingDaemon<'_> {
    /// Kills the child if another daemon answered first: it must not start when the other one has exited.
    fn stop_if_redundant(mut self, socket: &BlockingSocket) {
        let child_pid = i32::try_from(self.child.id()).ok();
        if peer_pid(socket).is_some_and(|it| Some(it) != child_pid) {
            // Both fail only if it has exited already.
            let _killed = self.child.kill();
            let _reaped = self.child.wait();
        }
    }

    /// Returns an error if waiting any longer is pointless.
    fn check_progress(&mut self) -> Result<(), String> {
        if !self.notice_printed && NOTICE_DELAY < self.started_at.elapsed() {
            self.notice_printed = true;
            self.output.print_note("waiting for the daemon to start…");
        }
        let status = self.child.try_wait().map_err(|error| error.to_string())?;
        match status {
            None => Ok(()),
            // Another daemon holds the lock: it is starting and will answer, or stopping, and then this retries.
            Some(status) if status.code() == Some(i32::from(ALREADY_RUNS as u8)) => {
                let recorded =
                    find_holder(&self.paths.lock()).ok().flatten().and_then(|it| it.socket);
                if recorded.is_some_and(|it| it != self.paths.socket()) {
                    self.runs_elsewhere = true;
                    return Err("a daemon with another runtime directory is running".to_owned());
                }
                if RETRY_DELAY < self.spawned_at.elapsed() {
                    self.spawned_at = Instant::now();
                    (self.child, _) =
                        spawn_daemon(self.paths).map_err(|error| error.to_string())?;
                }
                Ok(())
            }
            Some(status) => Err(format!("it exited at once: {status}")),
        }
    }
}

/// Returns the child, and the size of the log file before the child writes to it.
fn spawn_daemon(paths: &Paths) -> io::Result<(Child, u64)> {
    private_files::create_dir(&paths.state)?;
    let log = paths.log();
    limit_log(&log)?;
    let stderr = private_files::open_file(&log, OpenOptions::new().create(true).append(true))?;
    let log_start = stderr.metadata()?.len();
    let child = Command::new(std::env::current_exe()?)
        .args(["serve", "--detached"])
        // A started daemon always logs to the default file.
        .env_remove(env::LOG)
        // It does not belong to the systemd unit of this command.
        .env_remove("NOTIFY_SOCKET")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(stderr)
        // It must not keep the caller's directory in use.
        .current_dir("/")
        .spawn()?;
    Ok((child, log_start))
}

/// The lines that the daemon has logged since it was started.
fn read_log_lines(log: &Path, start: u64) -> Vec<String> {
    let read = || -> io::Result<String> {
        let mut file = File::open(log)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(start.max(end.saturating_sub(LOG_BYTES_MAX))))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    };
    let text = read().unwrap_or_default();
    text.lines().filter(|it| !it.trim().is_empty()).map(str::to_owned).collect()
}

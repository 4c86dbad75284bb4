//! Runs a program briefly: it is started in a process group of its own, its output is bounded, and
//! it is killed with everything that it started.

use crate::os::ProcessPin;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    io,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    net::unix::pipe::Receiver,
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};

/// The size of one stream that is kept.
const OUTPUT_BYTES_MAX: usize = 8 << 20;
/// How long output is read after the exit: processes left behind may keep the pipes open.
const DRAIN_MAX: Duration = Duration::from_millis(200);

/// A command to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProbeCommand<'a> {
    pub(crate) program: &'a Path,
    pub(crate) args: &'a [String],
    pub(crate) env: &'a [(String, String)],
    pub(crate) cwd: &'a Path,
}

impl ProbeCommand<'_> {
    /// The command line for messages.
    pub(super) fn command_line(&self) -> String {
        let program = std::iter::once(self.program.display().to_string());
        program.chain(self.args.iter().cloned()).collect::<Vec<_>>().join(" ")
    }

    fn command(&self, stdin: Stdio) -> Command {
        let mut command = Command::new(self.program);
        command
            .args(self.args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(self.cwd)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        command
    }
}

/// The result of running a command.
#[derive(Debug)]
pub(crate) enum CommandResult {
    Ended { status: ExitStatus, stdout: String, stderr: String },
    TimedOut,
    NotStarted(io::Error),
}

/// Runs a command to its end, or kills it after the limit.
pub(crate) async fn run_command(command: ProbeCommand<'_>, limit: Duration) -> CommandResult {
    let mut group = match ProcessGroup::start(&mut command.command(Stdio::null())) {
        Ok(group) => group,
        Err(error) => return CommandResult::NotStarted(error),
    };
    let (Some(stdout), Some(stderr)) = (group.stdout(), group.stderr()) else {
        return CommandResult::NotStarted(io::Error::other("its output pipes cannot be opened"));
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ended = {
        let reading =
            async { tokio::join!(read_bounded(stdout, &mut out), read_bounded(stderr, &mut err)) };
        tokio::pin!(reading);
        let life = async {
            tokio::select! {
                _ = &mut reading => group.exited().await,
                ended = group.exited() => {
                    let _unread = timeout(DRAIN_MAX, &mut reading).await;
                    ended
                }
            }
        };
        timeout(limit, life).await
    };
    match ended {
        Err(_) => CommandResult::TimedOut,
        Ok(Err(error)) => CommandResult::NotStarted(error),
        Ok(Ok(())) => match group.kill_and_reap() {
            Err(error) => CommandResult::NotStarted(error),
            Ok(status) => {
                let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
                CommandResult::Ended { status, stdout: text(out), stderr: text(err) }
            }
        },
    }
}

/// Reads to the end. Bytes beyond the limit are discarded, so that the writer never blocks.
pub(super) async fn read_bounded(mut from: impl AsyncRead + Unpin, into: &mut Vec<u8>) {
    let mut chunk = vec![0; 1 << 14];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        let room = OUTPUT_BYTES_MAX - into.len();
        into.extend_from_slice(&chunk[..count.min(room)]);
    }
}

/// A program that is killed with its whole process group when it is dropped.
///
/// The leader is reaped last. Until then its pid, which is also the id of the group, is not reused.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    child: Child,
    /// Becomes readable when the leader has exited. It is never read.
    exit: Receiver,
    is_reaped: bool,
}

impl ProcessGroup {
    /// Starts a command with a pipe for its stdin.
    pub(super) fn start_with_stdin(command: ProbeCommand<'_>) -> io::Result<ProcessGroup> {
        ProcessGroup::start(&mut command.command(Stdio::piped()))
    }

    fn start(command: &mut Command) -> io::Result<ProcessGroup> {
        let mut child = command.spawn()?;
        let watched = ProcessPin::open(child.id()).and_then(ProcessPin::into_descriptor);
        let watched = watched.ok_or_else(|| io::Error::other("failed to watch the process"));
        match watched.and_then(Receiver::from_owned_fd_unchecked) {
            Ok(exit) => Ok(ProcessGroup { child, exit, is_reaped: false }),
            Err(error) => {
                let _ended = child.kill().and_then(|()| child.wait());
                Err(error)
            }
        }
    }

    pub(super) fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take().and_then(|it| ChildStdin::from_std(it).ok())
    }

    pub(super) fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take().and_then(|it| ChildStdout::from_std(it).ok())
    }

    pub(super) fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take().and_then(|it| ChildStderr::from_std(it).ok())
    }

    /// Completes when the leader has exited. It is not reaped yet.
    pub(super) async fn exited(&self) -> io::Result<()> {
        self.exit.readable().await
    }

    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills the rest of the group and reaps the leader.
    fn kill_and_reap(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.is_reaped = true;
        self.child.wait()
    }

    fn signal(&self, signal: Signal) {
        if !self.is_reaped {
            // Fails only if no process is left.
            let _gone = kill_process_group(Pid::from_child(&self.child), signal);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if !self.is_reaped {
            let _status = self.kill_and_reap();
        }
    }
}

//! One short life of a program: started in a group of its own, read with bounds, and ended with
//! everything it started.

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
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

/// What is kept of one stream.
const OUTPUT_BYTES_MAX: usize = 8 << 20;
/// How long output may follow an end: what the program left running can hold its pipes open.
const DRAIN_MAX: Duration = Duration::from_millis(200);

/// What to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order<'a> {
    pub(super) program: &'a Path,
    pub(super) args: &'a [String],
    pub(super) env: &'a [(String, String)],
    pub(super) cwd: &'a Path,
}

impl Order<'_> {
    /// For people.
    pub(super) fn shown(&self) -> String {
        let words = std::iter::once(self.program.display().to_string());
        words.chain(self.args.iter().cloned()).collect::<Vec<_>>().join(" ")
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

/// How it went.
#[derive(Debug)]
pub(super) enum Ran {
    Ended { status: ExitStatus, stdout: String, stderr: String },
    TimedOut,
    NotStarted(io::Error),
}

/// Runs it to its end, or to the end of our patience.
pub(super) async fn run(order: Order<'_>, limit: Duration) -> Ran {
    let mut leash = match Leash::start(&mut order.command(Stdio::null())) {
        Ok(leash) => leash,
        Err(error) => return Ran::NotStarted(error),
    };
    let (Some(stdout), Some(stderr)) = (leash.stdout(), leash.stderr()) else {
        return Ran::NotStarted(io::Error::other("its output cannot be read"));
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let ended = {
        let reading = async { tokio::join!(keep(stdout, &mut out), keep(stderr, &mut err)) };
        tokio::pin!(reading);
        let life = async {
            tokio::select! {
                _ = &mut reading => leash.ended().await,
                ended = leash.ended() => {
                    let _unread = timeout(DRAIN_MAX, &mut reading).await;
                    ended
                }
            }
        };
        timeout(limit, life).await
    };
    match ended {
        Err(_) => Ran::TimedOut,
        Ok(Err(error)) => Ran::NotStarted(error),
        Ok(Ok(())) => match leash.bury() {
            Err(error) => Ran::NotStarted(error),
            Ok(status) => {
                let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
                Ran::Ended { status, stdout: text(out), stderr: text(err) }
            }
        },
    }
}

/// Reads to the end; what is beyond the bound is read and forgotten, so that the writer never waits.
async fn keep(mut from: impl AsyncRead + Unpin, into: &mut Vec<u8>) {
    let mut chunk = vec![0; 1 << 14];
    while let Ok(count @ 1..) = from.read(&mut chunk).await {
        let room = OUTPUT_BYTES_MAX - into.len();
        into.extend_from_slice(&chunk[..count.min(room)]);
    }
}

/// A program that cannot outlive us: dropped, it is killed with its whole group.
///
/// The leader is reaped last. Until then its number belongs to it, and so does its group's.
#[derive(Debug)]
pub(super) struct Leash {
    child: Child,
    /// Readable when the leader has ended. It is no pipe and never read: only waited for.
    end: Receiver,
    buried: bool,
}

impl Leash {
    pub(super) fn talk(order: Order<'_>) -> io::Result<Leash> {
        Leash::start(&mut order.command(Stdio::piped()))
    }

    fn start(command: &mut Command) -> io::Result<Leash> {
        let mut child = command.spawn()?;
        let watched = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        match watched.map_err(io::Error::from).and_then(Receiver::from_owned_fd_unchecked) {
            Ok(end) => Ok(Leash { child, end, buried: false }),
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

    /// Returns when the leader has ended; it is not reaped yet.
    pub(super) async fn ended(&self) -> io::Result<()> {
        self.end.readable().await
    }

    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills what is left of the group and reaps the leader.
    fn bury(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::KILL);
        self.buried = true;
        self.child.wait()
    }

    fn signal(&self, signal: Signal) {
        if !self.buried {
            // Refused only if nobody is left.
            let _gone = kill_process_group(Pid::from_child(&self.child), signal);
        }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if !self.buried {
            let _status = self.bury();
        }
    }
}

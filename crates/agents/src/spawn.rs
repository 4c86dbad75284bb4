//! Starting an agent: pipes, a guard, and the tasks that follow its life.

use crate::agent_env;
use crate::event::AgentEvent;
use crate::handle::AgentHandle;
use crate::ledger::Ledger;
use crate::os::cgroup::ControlGroup;
use crate::os::{MARK_VARIABLE, Process, handover};
use crate::outbox::Outbox;
use crate::pump::Pump;
use crate::shortage::describe_shortage;
use crate::spec::{GuardCommand, Launch, Limits, Speaks, is_good_mark};
use crate::stderr::Tail;
use crate::stop::Control;
use crate::tend::Tend;
use jackfield_wire::redact::Redactor;
use jackfield_wire::{LineSplitter, Valve};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::mpsc;

/// Why there is not even a guard. An agent that its guard could not start is an event instead.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("the command of the agent is empty")]
    NoCommand,
    #[error("`{mark}` is no good mark: 1 to 64 letters, digits, `-` and `_`")]
    BadMark { mark: String },
    #[error("failed to note agent `{mark}` in the ledger")]
    Ledger {
        mark: String,
        #[source]
        source: io::Error,
    },
    #[error("failed to make the pipes of agent `{mark}`")]
    Pipes {
        mark: String,
        #[source]
        source: io::Error,
    },
    #[error("failed to start `{}` as the guard of agent `{mark}`", program.display())]
    Guard {
        mark: String,
        program: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl SpawnError {
    /// The way out, if there are no more file descriptors, processes or memory: that says nothing about the agent.
    pub fn shortage(&self) -> Option<&'static str> {
        match self {
            SpawnError::NoCommand | SpawnError::BadMark { .. } => None,
            SpawnError::Ledger { source, .. }
            | SpawnError::Pipes { source, .. }
            | SpawnError::Guard { source, .. } => describe_shortage(source),
        }
    }
}

/// Starts an agent under a guard; all that follows arrives as events under `key`.
///
/// `mark` must be unique for every start: it is how processes of this agent are recognized. Blocks
/// only for the start of the guard (well under a millisecond). Must be called inside a tokio runtime.
pub fn spawn<K: Clone + Send + Sync + 'static>(
    guard: &GuardCommand,
    launch: &Launch,
    mark: &str,
    ledger: &Ledger,
    events: mpsc::Sender<(K, AgentEvent)>,
    key: K,
) -> Result<AgentHandle, SpawnError> {
    spawn_with(Limits::default(), guard, launch, mark, ledger, events, key)
}

/// [`spawn`] with limits of your own.
pub fn spawn_with<K: Clone + Send + Sync + 'static>(
    limits: Limits,
    guard: &GuardCommand,
    launch: &Launch,
    mark: &str,
    ledger: &Ledger,
    events: mpsc::Sender<(K, AgentEvent)>,
    key: K,
) -> Result<AgentHandle, SpawnError> {
    if launch.argv.is_empty() {
        return Err(SpawnError::NoCommand);
    }
    if !is_good_mark(mark) {
        return Err(SpawnError::BadMark { mark: mark.to_owned() });
    }
    let bad_pipes = |source| SpawnError::Pipes { mark: mark.to_owned(), source };
    let (ours, theirs) = make_pipes().map_err(bad_pipes)?;
    // Before the guard: if we die in between, the mark is known.
    let entry = ledger
        .enter(mark)
        .map_err(|source| SpawnError::Ledger { mark: mark.to_owned(), source })?;
    ledger.ensure_watcher(guard);
    let guard_child = match start_guard(guard, launch, mark, entry.group(), theirs) {
        Ok(child) => child,
        Err(source) => {
            entry.close();
            let program = guard.program.clone();
            return Err(SpawnError::Guard { mark: mark.to_owned(), program, source });
        }
    };

    let guard_process = Process::find(guard_child.id());
    if let Some(guard) = guard_process {
        entry.add_guard(guard);
    }
    let control = Arc::new(Control { socket: ours.socket });
    let outbox = Outbox::new(ours.stdin, limits.backlog_bytes_max);
    let valve = Arc::new(Valve::default());
    let tail = Tail::new(Redactor::new(&launch.env), limits.stderr_bytes_max);
    let pump = Pump {
        key: key.clone(),
        pipe: ours.stdout,
        splitter: match launch.speaks {
            Speaks::Frames | Speaks::Bytes => LineSplitter::new(limits.frame_bytes_max),
            Speaks::Lines => LineSplitter::new(limits.frame_bytes_max).with_blank_lines(),
        },
        speaks: launch.speaks,
        events: events.clone(),
        tail: tail.clone(),
        valve: Arc::clone(&valve),
    };
    let tend = Tend {
        key,
        events,
        control: Arc::clone(&control),
        outbox: outbox.clone(),
        guard_process,
        guard: guard_child,
        entry,
        mark: mark.to_owned(),
        sweeper: ledger.sweeper(),
        tail,
        needs_stdout: launch.speaks != Speaks::Bytes,
    };
    tokio::spawn(tend.run(pump, ours.stderr));
    Ok(AgentHandle::new(outbox, valve, control))
}

/// The daemon's ends.
struct Ours {
    socket: tokio::net::UnixStream,
    stdin: Sender,
    stdout: Receiver,
    stderr: Receiver,
}

/// The guard's and the agent's ends. Every descriptor closes on exec; the guard gets copies.
struct Theirs {
    socket: UnixStream,
    stdout: PipeWriter,
    stderr: PipeWriter,
}

fn make_pipes() -> io::Result<(Ours, Theirs)> {
    let (our_socket, their_socket) = UnixStream::pair()?;
    let (agent_stdin, stdin) = io::pipe()?;
    let (stdout, agent_stdout) = io::pipe()?;
    let (stderr, agent_stderr) = io::pipe()?;
    handover::send(&our_socket, &agent_stdin)?;
    our_socket.set_nonblocking(true)?;
    let receiver = |pipe: PipeReader| Receiver::from_owned_fd(OwnedFd::from(pipe));
    let ours = Ours {
        socket: tokio::net::UnixStream::from_std(our_socket)?,
        stdin: Sender::from_owned_fd(OwnedFd::from(stdin))?,
        stdout: receiver(stdout)?,
        stderr: receiver(stderr)?,
    };
    Ok((ours, Theirs { socket: their_socket, stdout: agent_stdout, stderr: agent_stderr }))
}

/// Nothing is run between fork and exec, so the system can start it without copying the daemon.
fn start_guard(
    guard: &GuardCommand,
    launch: &Launch,
    mark: &str,
    group: Option<ControlGroup>,
    theirs: Theirs,
) -> io::Result<Child> {
    let cwd = std::path::absolute(&launch.cwd)?;
    let stderr = match launch.speaks {
        // One pipe for both keeps their order.
        Speaks::Bytes => theirs.stdout.try_clone()?,
        Speaks::Frames | Speaks::Lines => theirs.stderr,
    };
    let mut command = Command::new(&guard.program);
    command.args(&guard.args);
    if let Some(group) = group {
        command.arg("--control-group").arg(group.directory());
    }
    command
        .arg("--cwd")
        .arg(cwd)
        .arg("--")
        .args(&launch.argv)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (agent_env::hide(name), value)))
        .env(MARK_VARIABLE, mark)
        .stdin(Stdio::from(OwnedFd::from(theirs.socket)))
        .stdout(theirs.stdout)
        .stderr(stderr)
        .spawn()
}

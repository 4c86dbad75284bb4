//! Starts an agent: creates its pipes, its guard and the tasks that supervise it.

use crate::agent_env;
use crate::event::AgentProcessEvent;
use crate::handle::AgentHandle;
use crate::launch_command::{
    GuardCommand, LaunchCommand, ProcessLimits, StdoutFormat, is_valid_mark,
};
use crate::ledger::ProcessLedger;
use crate::os::cgroup::ControlGroup;
use crate::os::{MARK_VARIABLE, ProcessIdentity, fd_passing, suppress_sigpipe};
use crate::output_tail::ProcessOutputTail;
use crate::shortage::describe_shortage;
use crate::stderr_reader::StderrReader;
use crate::stdin_writer::StdinWriter;
use crate::stdout_reader::StdoutReader;
use crate::stop::GuardConnection;
use crate::supervisor::AgentSupervisor;
use jackfield_protocol::{FlowControl, LineSplitter, redact::SecretRedactor};
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::mpsc;

/// Why a guard could not be started. If a guard fails to start its agent, an event reports it.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    #[error("the agent's command is empty")]
    NoCommand,
    #[error("invalid mark `{mark}`; a mark has 1 to 64 letters, digits, `-` and `_`")]
    BadMark { mark: String },
    #[error("failed to record agent `{mark}` in the ledger")]
    Ledger {
        mark: String,
        #[source]
        source: io::Error,
    },
    #[error("failed to create the pipes of agent `{mark}`")]
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
    /// How to resolve the error if the system lacks file descriptors, processes or memory. Such an
    /// error is not the agent's fault.
    pub fn shortage(&self) -> Option<&'static str> {
        match self {
            SpawnError::NoCommand | SpawnError::BadMark { .. } => None,
            SpawnError::Ledger { source, .. }
            | SpawnError::Pipes { source, .. }
            | SpawnError::Guard { source, .. } => describe_shortage(source),
        }
    }
}

/// Starts an agent under a guard. Everything that follows arrives as events with `key`.
///
/// `mark` must be unique for each start, because it identifies the processes of this agent. Blocks
/// only while the guard starts (well under a millisecond). Must be called inside a tokio runtime.
pub fn spawn_agent<K: Clone + Send + Sync + 'static>(
    guard: &GuardCommand,
    launch: &LaunchCommand,
    mark: &str,
    ledger: &ProcessLedger,
    events: mpsc::Sender<(K, AgentProcessEvent)>,
    key: K,
) -> Result<AgentHandle, SpawnError> {
    spawn_agent_with_limits(ProcessLimits::default(), guard, launch, mark, ledger, events, key)
}

/// [`spawn_agent`] with other limits.
pub fn spawn_agent_with_limits<K: Clone + Send + Sync + 'static>(
    limits: ProcessLimits,
    guard: &GuardCommand,
    launch: &LaunchCommand,
    mark: &str,
    ledger: &ProcessLedger,
    events: mpsc::Sender<(K, AgentProcessEvent)>,
    key: K,
) -> Result<AgentHandle, SpawnError> {
    if launch.argv.is_empty() {
        return Err(SpawnError::NoCommand);
    }
    if !is_valid_mark(mark) {
        return Err(SpawnError::BadMark { mark: mark.to_owned() });
    }
    let pipe_error = |source| SpawnError::Pipes { mark: mark.to_owned(), source };
    let (daemon_pipes, agent_pipes) = create_pipes().map_err(pipe_error)?;
    // Recorded before the guard starts, so that the mark is known if the daemon dies in between.
    let entry = ledger
        .add_entry(mark)
        .map_err(|source| SpawnError::Ledger { mark: mark.to_owned(), source })?;
    ledger.ensure_watcher(guard);
    let guard_child = match start_guard(guard, launch, mark, entry.group(), agent_pipes) {
        Ok(child) => child,
        Err(source) => {
            entry.close();
            let program = guard.program.clone();
            return Err(SpawnError::Guard { mark: mark.to_owned(), program, source });
        }
    };

    let guard_process = ProcessIdentity::find(guard_child.id());
    if let Some(guard) = guard_process {
        entry.add_guard(guard);
    }
    let guard_connection = Arc::new(GuardConnection { socket: daemon_pipes.socket });
    let stdin = StdinWriter::new(daemon_pipes.stdin, limits.backlog_bytes_max);
    let flow_control = Arc::new(FlowControl::default());
    let tail = ProcessOutputTail::new(SecretRedactor::new(&launch.env), limits.stderr_bytes_max);
    let stdout_reader = StdoutReader {
        key: key.clone(),
        pipe: daemon_pipes.stdout,
        splitter: match launch.stdout_format {
            StdoutFormat::Frames | StdoutFormat::Text | StdoutFormat::Bytes => {
                LineSplitter::new(limits.frame_bytes_max)
            }
            StdoutFormat::Lines => LineSplitter::new(limits.frame_bytes_max).with_blank_lines(),
        },
        stdout_format: launch.stdout_format,
        events: events.clone(),
        tail: tail.clone(),
        flow_control: Arc::clone(&flow_control),
    };
    let wants_lines = launch.stdout_format == StdoutFormat::Text;
    let stderr_reader = StderrReader {
        key: key.clone(),
        pipe: daemon_pipes.stderr,
        tail: tail.clone(),
        events: wants_lines.then(|| events.clone()),
    };
    let supervisor = AgentSupervisor {
        key,
        events,
        guard_connection: Arc::clone(&guard_connection),
        stdin: stdin.clone(),
        guard_process,
        guard: guard_child,
        entry,
        mark: mark.to_owned(),
        sweeper: ledger.sweeper(),
        tail,
        needs_stdout: launch.stdout_format != StdoutFormat::Bytes,
    };
    tokio::spawn(supervisor.run(stdout_reader, stderr_reader));
    Ok(AgentHandle::new(stdin, flow_control, guard_connection))
}

/// The daemon's ends of the pipes.
struct DaemonPipes {
    socket: tokio::net::UnixStream,
    stdin: Sender,
    stdout: Receiver,
    stderr: Receiver,
}

/// The guard's and the agent's ends of the pipes. Every descriptor closes on exec; the guard gets
/// copies.
struct AgentPipes {
    socket: UnixStream,
    stdout: PipeWriter,
    stderr: PipeWriter,
}

fn create_pipes() -> io::Result<(DaemonPipes, AgentPipes)> {
    let (daemon_socket, guard_socket) = UnixStream::pair()?;
    suppress_sigpipe(&daemon_socket);
    suppress_sigpipe(&guard_socket);
    let (agent_stdin, stdin) = io::pipe()?;
    let (stdout, agent_stdout) = io::pipe()?;
    let (stderr, agent_stderr) = io::pipe()?;
    fd_passing::send_file(&daemon_socket, &agent_stdin)?;
    daemon_socket.set_nonblocking(true)?;
    let receiver = |pipe: PipeReader| Receiver::from_owned_fd(OwnedFd::from(pipe));
    let daemon_pipes = DaemonPipes {
        socket: tokio::net::UnixStream::from_std(daemon_socket)?,
        stdin: Sender::from_owned_fd(OwnedFd::from(stdin))?,
        stdout: receiver(stdout)?,
        stderr: receiver(stderr)?,
    };
    Ok((
        daemon_pipes,
        AgentPipes { socket: guard_socket, stdout: agent_stdout, stderr: agent_stderr },
    ))
}

/// Runs no code between fork and exec, so the system can start the guard without copying the
/// daemon.
fn start_guard(
    guard: &GuardCommand,
    launch: &LaunchCommand,
    mark: &str,
    group: Option<ControlGroup>,
    agent_pipes: AgentPipes,
) -> io::Result<Child> {
    let cwd = std::path::absolute(&launch.cwd)?;
    let stderr = match launch.stdout_format {
        // One pipe for both preserves their order.
        StdoutFormat::Bytes => agent_pipes.stdout.try_clone()?,
        StdoutFormat::Frames | StdoutFormat::Lines | StdoutFormat::Text => agent_pipes.stderr,
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
        .envs(launch.env.iter().map(|(name, value)| (agent_env::add_prefix(name), value)))
        .env(MARK_VARIABLE, mark)
        .stdin(Stdio::from(OwnedFd::from(agent_pipes.socket)))
        .stdout(agent_pipes.stdout)
        .stderr(stderr)
        .spawn()
}

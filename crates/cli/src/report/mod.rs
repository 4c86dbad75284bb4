//! The errors of a command, each with a message, its causes, a hint and an exit code.

mod error_response;
mod lockout;

pub(crate) use error_response::list_as_causes;

use crate::{
    exit::CliExitCode,
    plain_text::{escape_control_chars, format_count, strip_colors},
};
use jackfield_hub_client::ErrorResponse;
use jackfield_transport::{AddressError, DialError, TokenError};
use std::{error::Error as _, io, path::PathBuf};

/// Everything a command can fail with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("{message}")]
    Usage { message: String, hint: String },

    #[error("no daemon is running")]
    NoDaemon { hint: &'static str },

    #[error(transparent)]
    Unreachable(DialError),

    #[error("cannot authenticate to the daemon")]
    Token(#[source] TokenError),

    #[error("the daemon did not start")]
    NotStarted { why: String, log_lines: Vec<String>, log: PathBuf },

    /// `pid` is set if the daemon has not answered anything.
    #[error("the daemon{} does not answer", format_pid(*.pid))]
    NoReply { waited_for: String, seconds: u64, pid: Option<i32> },

    /// A daemon holds the lock of the state directory, and its socket does not answer.
    #[error("a daemon{} runs, but nothing listens on `{}`", format_pid(*.pid), .socket.display())]
    NoSocket {
        pid: Option<u32>,
        lock: PathBuf,
        socket: PathBuf,
        /// The path in the lock file where the daemon listens, if it is another one.
        elsewhere: Option<PathBuf>,
        log: PathBuf,
        seconds: u64,
    },

    /// The lock is held, but not by the process whose pid is in the file.
    #[error("the process that holds the lock `{}` is unknown", .lock.display())]
    UnknownLockHolder { lock: PathBuf, pid: Option<u32> },

    #[error("the daemon (pid {pid}) could not be killed")]
    NotEnded { pid: i32, seconds: u64 },

    #[error("the daemon closed the connection")]
    ConnectionClosed { waited_for: String },

    #[error("no session matches `{named}`")]
    NoSession { named: String, known: Vec<String> },

    #[error("no session in `{}`", .cwd.display())]
    NoSessionInDirectory { cwd: PathBuf },

    #[error("`{named}` matches {} sessions", .known.len())]
    AmbiguousSession { named: String, known: Vec<String> },

    #[error("no session{} is running", .agent.as_ref().map(|it| format!(" of `{it}`")).unwrap_or_default())]
    NoLiveSession { agent: Option<String> },

    #[error("`{program}` {}", if program.contains('/') { "does not exist" } else { "was not found on PATH" })]
    ProgramNotFound { program: String },

    /// The hub or the agent responded to a request with an error.
    #[error("{}", error_response::describe_message(.0))]
    Response(ErrorResponse),

    #[error("message exceeds the limit of 16 MiB")]
    MessageTooLong,

    #[error("the agent stopped: {}", describe_stop_reason(.reason))]
    TurnStopped { reason: String },

    #[error("the turn was canceled")]
    TurnCanceled,

    #[error("interrupted while waiting for {waited_for}")]
    Interrupted { waited_for: String },

    #[error("timed out after {seconds} s")]
    TimedOut { seconds: u64, waited_for: String },

    #[error("the agent did not start within {seconds} s")]
    AgentStartTimedOut { seconds: u64, waited_for: String },

    /// A description of each denied request, and the session if a policy rule denied some of them.
    #[error("permission denied for {}", format_count(.asks.len(), "ask"))]
    Denied { asks: Vec<String>, session_of_rule: Option<String> },

    /// The agent does not have a setting or rejects its value.
    #[error("{message}")]
    SettingRejected {
        message: String,
        causes: Vec<String>,
        flag: &'static str,
        available: Vec<String>,
    },

    #[error("session `{session}` has no open ask")]
    NoOpenRequest { session: String },

    #[error("{}", .typed.as_ref().map_or("no answer given".to_owned(), |it| format!("unknown option `{it}`")))]
    InvalidOption { typed: Option<String>, options: Vec<String> },

    #[error("nothing was removed")]
    RemovalDeclined,

    #[error("nothing was changed")]
    ChangeDeclined,

    #[error("{} failed", format_count(*.problems, "check"))]
    ChecksFailed { problems: usize },

    /// A failed operation on this machine whose message says everything.
    #[error("{what}")]
    Failed { what: String, exit: CliExitCode, hint: String },

    #[error("{what}")]
    Local {
        what: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
        exit: CliExitCode,
        hint: String,
    },

    /// Every error was printed when it occurred; this is the exit code of the last one.
    #[error("a turn failed")]
    AlreadyReported(CliExitCode),

    /// The reader of stdout has closed it.
    #[error("stdout was closed")]
    StdoutClosed,
}

impl CommandError {
    /// A mistake on the command line, and how to correct it.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> CommandError {
        CommandError::Usage { message: message.into(), hint: hint.into() }
    }

    /// A failed operation on this machine.
    pub(crate) fn local(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> CommandError {
        let (source, exit) = (source.into(), CliExitCode::Failed);
        CommandError::Local { what: what.into(), source, exit, hint: String::new() }
    }

    pub(crate) fn from_stdout(error: io::Error) -> CommandError {
        match error.kind() {
            io::ErrorKind::BrokenPipe => CommandError::StdoutClosed,
            _ => CommandError::local("cannot write to stdout", error),
        }
    }

    pub(crate) fn exit_code(&self) -> CliExitCode {
        match self {
            CommandError::StdoutClosed => CliExitCode::Ok,
            CommandError::TurnStopped { .. } | CommandError::ChecksFailed { .. } => {
                CliExitCode::Failed
            }
            CommandError::Usage { .. }
            | CommandError::InvalidOption { .. }
            | CommandError::SettingRejected { .. }
            | CommandError::MessageTooLong
            | CommandError::Unreachable(
                DialError::Address(_) | DialError::Unsupported { .. } | DialError::PathTooLong(_),
            ) => CliExitCode::Usage,
            CommandError::TimedOut { .. } | CommandError::AgentStartTimedOut { .. } => {
                CliExitCode::TimedOut
            }
            CommandError::NoSession { .. }
            | CommandError::NoSessionInDirectory { .. }
            | CommandError::AmbiguousSession { .. }
            | CommandError::NoLiveSession { .. }
            | CommandError::NoOpenRequest { .. }
            | CommandError::ProgramNotFound { .. } => CliExitCode::NotFound,
            CommandError::Denied { .. } => CliExitCode::Denied,
            CommandError::NoDaemon { .. }
            | CommandError::Unreachable(_)
            | CommandError::Token(_)
            | CommandError::NotStarted { .. }
            | CommandError::NoReply { .. }
            | CommandError::NoSocket { .. }
            | CommandError::UnknownLockHolder { .. }
            | CommandError::NotEnded { .. }
            | CommandError::ConnectionClosed { .. } => CliExitCode::Unreachable,
            CommandError::TurnCanceled
            | CommandError::RemovalDeclined
            | CommandError::ChangeDeclined
            | CommandError::Interrupted { .. } => CliExitCode::Interrupted,
            CommandError::Response(response) => error_response::choose_exit_code(response),
            CommandError::Local { exit, .. }
            | CommandError::Failed { exit, .. }
            | CommandError::AlreadyReported(exit) => *exit,
        }
    }

    /// The causes, the outermost first.
    pub(crate) fn causes(&self) -> Vec<String> {
        let mut causes = match self {
            CommandError::Response(response) => error_response::list_causes(response),
            CommandError::SettingRejected { causes, .. } => causes.clone(),
            CommandError::NotStarted { why, .. } => vec![why.clone()],
            CommandError::Denied { asks, .. } => asks.clone(),
            CommandError::NoReply { waited_for, seconds, .. } => {
                vec![format!("waited {seconds} s for {waited_for}")]
            }
            CommandError::NoSocket { .. }
            | CommandError::UnknownLockHolder { .. }
            | CommandError::NotEnded { .. } => {
                vec![lockout::describe_cause(self)]
            }
            CommandError::ConnectionClosed { waited_for }
            | CommandError::TimedOut { waited_for, .. }
            | CommandError::AgentStartTimedOut { waited_for, .. } => {
                vec![format!("the command was waiting for {waited_for}")]
            }
            _ => Vec::new(),
        };
        let mut source = self.source();
        while let Some(error) = source {
            causes.push(error.to_string());
            source = error.source();
        }
        causes
    }

    /// Lines that are printed unchanged: output of other processes, or what can be chosen.
    pub(crate) fn quoted_lines(&self) -> Vec<String> {
        const LINES_MAX: usize = 10;
        let lines = match self {
            CommandError::NotStarted { log_lines, .. } => log_lines.clone(),
            CommandError::Response(response) => response
                .hub_member("stderr")
                .lines()
                .map(|it| escape_control_chars(&strip_colors(it)).into_owned())
                .collect(),
            CommandError::NoSession { known, .. }
            | CommandError::AmbiguousSession { known, .. } => {
                return known.iter().take(LINES_MAX).cloned().collect();
            }
            CommandError::InvalidOption { options, .. } => return options.clone(),
            CommandError::SettingRejected { available, .. } => {
                return available
                    .iter()
                    .take(LINES_MAX)
                    .map(|it| escape_control_chars(it).into_owned())
                    .collect();
            }
            _ => Vec::new(),
        };
        lines[lines.len().saturating_sub(LINES_MAX)..].to_vec()
    }

    /// Whether a daemon runs and does not answer.
    pub(crate) fn is_lockout(&self) -> bool {
        matches!(self, CommandError::NoReply { pid: Some(_), .. } | CommandError::NoSocket { .. })
    }

    /// The hint if a daemon runs and cannot be used.
    pub(crate) fn lockout_hint(&self) -> Option<String> {
        lockout::describe_solution(self)
    }

    /// Whether the user must read about this error: stdout is open, and nothing reported it earlier.
    pub(crate) fn needs_report(&self) -> bool {
        !matches!(self, CommandError::StdoutClosed | CommandError::AlreadyReported(_))
    }

    /// What the user can do; empty if there is no advice.
    pub(crate) fn hint(&self) -> String {
        self.lockout_hint()
            .or_else(|| self.connection_hint())
            .unwrap_or_else(|| self.general_hint())
    }

    /// The hint if there is no connection to a daemon.
    fn connection_hint(&self) -> Option<String> {
        let hint = match self {
            CommandError::NoDaemon { hint } => (*hint).to_owned(),
            CommandError::Unreachable(DialError::Absent { .. }) => {
                "leave out `--socket` to use the daemon of this user, which is started if needed"
                    .into()
            }
            CommandError::Unreachable(DialError::Address(AddressError::NotLoopback { .. })) => {
                "forward the port with `ssh -L`, and name 127.0.0.1".into()
            }
            CommandError::Unreachable(DialError::Address(_) | DialError::Unsupported { .. } | DialError::PathTooLong(_)) => {
                String::new()
            }
            CommandError::Unreachable(_) | CommandError::Token(_) | CommandError::NoReply { .. } => {
                "run `jackfield doctor` to find the cause".into()
            }
            CommandError::NotStarted { log, .. } => {
                format!(
                    "its log is `{}`; `jackfield serve` runs it in the foreground",
                    log.display()
                )
            }
            CommandError::ConnectionClosed { .. } => {
                "try again: the next command starts a new daemon, and the journal has the events so far"
                    .into()
            }
            _ => return None,
        };
        Some(hint)
    }

    fn general_hint(&self) -> String {
        match self {
            CommandError::Usage { hint, .. }
            | CommandError::Failed { hint, .. }
            | CommandError::Local { hint, .. } => hint.clone(),
            CommandError::NoSession { .. } | CommandError::NoSessionInDirectory { .. } => {
                "`jackfield sessions list` shows all sessions".into()
            }
            CommandError::AmbiguousSession { .. } => "use more characters of the id".into(),
            CommandError::NoLiveSession { .. } => {
                "`jackfield sessions list` shows all sessions; name one to restart its agent, or open one with \
                 `--new`"
                    .into()
            }
            CommandError::NoOpenRequest { .. } => "`jackfield asks` lists open asks".into(),
            CommandError::InvalidOption { options, .. } if options.is_empty() => {
                "it has no options; pass the answer with `--json`".into()
            }
            CommandError::InvalidOption { .. } => {
                "pass the key or the id of an option, or `allow` or `deny`, which apply once".into()
            }
            CommandError::SettingRejected { flag, available, .. } if available.is_empty() => {
                format!("leave out `{flag}`")
            }
            CommandError::SettingRejected { flag, .. } => {
                format!("choose an available value, or leave out `{flag}`")
            }
            CommandError::MessageTooLong => "name files in the prompt instead of pasting their contents".into(),
            CommandError::ProgramNotFound { program } if program.contains('/') => {
                "correct the agent's command after `--`".into()
            }
            CommandError::ProgramNotFound { program } => {
                format!("install `{program}`, or pass the agent's command with its full path")
            }
            CommandError::Response(response) => error_response::describe_solution(response),
            CommandError::TurnStopped { reason } if reason == "max_turn_requests" => {
                "send another prompt to the session to continue".into()
            }
            CommandError::TimedOut { .. } => "allow more time with `--timeout`".into(),
            CommandError::AgentStartTimedOut { .. } => {
                "allow more time with `--start-timeout`, or run the agent's own command in a \
                 terminal: it may print what it waits for"
                    .into()
            }
            CommandError::Denied { session_of_rule: Some(session), .. } => {
                format!("`jackfield policy explain {session}` shows the rule for the last one")
            }
            CommandError::Denied { .. } => {
                "allow more with `--approve reads` or `--approve all`, or answer on a terminal"
                    .into()
            }
            CommandError::ChecksFailed { .. } => "each failed check shows how to fix it".into(),
            _ => String::new(),
        }
    }
}

impl From<ErrorResponse> for CommandError {
    fn from(response: ErrorResponse) -> CommandError {
        CommandError::Response(response)
    }
}

fn format_pid(pid: Option<impl std::fmt::Display>) -> String {
    pid.map(|it| format!(" (pid {it})")).unwrap_or_default()
}

fn describe_stop_reason(reason: &str) -> String {
    match reason {
        "refusal" => "it refused to continue".into(),
        "max_tokens" => "the token limit was reached".into(),
        "max_turn_requests" => "the limit of model requests per turn was reached".into(),
        other => format!("`{}`", escape_control_chars(other)),
    }
}

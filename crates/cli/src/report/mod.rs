//! What went wrong, for people and for scripts: a message, its causes, a way out, and an exit code.

mod answer;
mod lockout;

pub(crate) use answer::Answer;

use crate::{
    exit::Exit,
    out::{ALERT, DIM, NAME, Out, clean, count, paint, plain},
};
use jackfield_transport::{DialError, TokenError};
use std::{error::Error as _, io, path::PathBuf};

/// Everything a command can fail with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("{message}")]
    Usage { message: String, hint: String },

    #[error("no daemon is running")]
    NoDaemon { hint: &'static str },

    #[error(transparent)]
    Unreachable(DialError),

    #[error("cannot prove to the daemon who we are")]
    Token(#[source] TokenError),

    #[error("the daemon did not start")]
    NotStarted { why: String, said: Vec<String>, log: PathBuf },

    /// `pid` is that of a daemon that answers nothing at all.
    #[error("the daemon{} does not answer", in_brackets(*.pid))]
    Silent { waited_for: String, seconds: u64, pid: Option<i32> },

    /// A daemon has the lock of the state directory, and its socket does not answer.
    #[error("a daemon{} runs, but nothing listens on `{}`", in_brackets(*.pid), .socket.display())]
    NoSocket {
        pid: Option<u32>,
        lock: PathBuf,
        socket: PathBuf,
        /// Where the daemon says that it listens, if that is another path.
        elsewhere: Option<PathBuf>,
        log: PathBuf,
        seconds: u64,
    },

    /// The lock is held, and the pid in its file is not that of a process that holds it.
    #[error("the process that has the lock `{}` is not known", .lock.display())]
    UnknownHolder { lock: PathBuf, pid: Option<u32> },

    #[error("the daemon (pid {pid}) could not be ended")]
    NotEnded { pid: i32, seconds: u64 },

    #[error("the daemon closed the connection")]
    HubGone { waited_for: String },

    #[error("no session matches `{named}`")]
    NoSession { named: String, known: Vec<String> },

    #[error("`{named}` matches {} sessions", .known.len())]
    Ambiguous { named: String, known: Vec<String> },

    #[error("no session{} is running", .agent.as_ref().map(|it| format!(" of `{it}`")).unwrap_or_default())]
    NothingLive { agent: Option<String> },

    #[error("`{program}` {}", if program.contains('/') { "does not exist" } else { "was not found on PATH" })]
    NoProgram { program: String },

    /// The hub or the agent answered a request with an error.
    #[error("{}", .0.message())]
    Answer(Answer),

    #[error("what is said at once is longer than a message may be: 16 MiB")]
    TooLong,

    #[error("the agent stopped: {}", why_stopped(.reason))]
    Stopped { reason: String },

    #[error("the turn was cancelled")]
    Cancelled,

    #[error("interrupted while waiting for {waited_for}")]
    Interrupted { waited_for: String },

    #[error("timed out after {seconds} s")]
    TimedOut { seconds: u64, waited_for: String },

    #[error("the agent did not start within {seconds} s")]
    SlowStart { seconds: u64, waited_for: String },

    /// What was asked, in words, and the session in which a rule of the policy denied some of it.
    #[error("permission denied for {}", count(.asks.len(), "ask"))]
    Denied { asks: Vec<String>, ruled_in: Option<String> },

    /// The caller wants a setting that the agent does not have, or does not take.
    #[error("{message}")]
    NotSet { message: String, causes: Vec<String>, flag: &'static str, offered: Vec<String> },

    #[error("session `{session}` asks nothing")]
    NoAsk { session: String },

    #[error("{}", .typed.as_ref().map_or("there is no answer".to_owned(), |it| format!("no option is called `{it}`")))]
    NoOption { typed: Option<String>, offers: Vec<String> },

    #[error("nothing was removed")]
    Declined,

    #[error("{} failed", count(*.problems, "check"))]
    Unhealthy { problems: usize },

    #[error("{what}")]
    Local {
        what: String,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
        exit: Exit,
        hint: String,
    },

    /// Every failure was told when it happened; this is the last one's exit code.
    #[error("not every turn ended well")]
    Told(Exit),

    /// Whoever read our stdout has heard enough.
    #[error("nobody reads stdout")]
    Hangup,
}

impl Failure {
    /// A mistake on the command line, and what would be right.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Failure {
        Failure::Usage { message: message.into(), hint: hint.into() }
    }

    /// Something on this machine went wrong.
    pub(crate) fn local(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Failure {
        let (source, exit) = (source.into(), Exit::Failed);
        Failure::Local { what: what.into(), source, exit, hint: String::new() }
    }

    pub(crate) fn from_stdout(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::Hangup,
            _ => Failure::local("cannot write to stdout", error),
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Failure::Hangup => Exit::Ok,
            Failure::Stopped { .. } | Failure::Unhealthy { .. } => Exit::Failed,
            Failure::Usage { .. }
            | Failure::NoOption { .. }
            | Failure::NotSet { .. }
            | Failure::TooLong
            | Failure::Unreachable(
                DialError::Address(_) | DialError::Unsupported { .. } | DialError::PathTooLong(_),
            ) => Exit::Usage,
            Failure::TimedOut { .. } | Failure::SlowStart { .. } => Exit::TimedOut,
            Failure::NoSession { .. }
            | Failure::Ambiguous { .. }
            | Failure::NothingLive { .. }
            | Failure::NoAsk { .. }
            | Failure::NoProgram { .. } => Exit::NotFound,
            Failure::Denied { .. } => Exit::Denied,
            Failure::NoDaemon { .. }
            | Failure::Unreachable(_)
            | Failure::Token(_)
            | Failure::NotStarted { .. }
            | Failure::Silent { .. }
            | Failure::NoSocket { .. }
            | Failure::UnknownHolder { .. }
            | Failure::NotEnded { .. }
            | Failure::HubGone { .. } => Exit::Unreachable,
            Failure::Cancelled | Failure::Declined | Failure::Interrupted { .. } => {
                Exit::Interrupted
            }
            Failure::Answer(answer) => answer.exit(),
            Failure::Local { exit, .. } | Failure::Told(exit) => *exit,
        }
    }

    /// Prints it on stderr and says how to exit.
    pub(crate) fn report(&self, out: &Out) -> Exit {
        if !matches!(self, Failure::Hangup | Failure::Told(_)) {
            out.alert(&format!("{} {self}", paint(ALERT, "error:")));
            for cause in self.causes() {
                let cause = cause.trim_end().replace('\n', "\n    ");
                out.alert(&format!("  {} {cause}", paint(ALERT, "caused by:")));
            }
            for line in self.quoted() {
                out.alert(&paint(DIM, format!("  | {line}")));
            }
            let hint = self.lockout_hint().unwrap_or_else(|| self.hint());
            for hint in [hint].iter().filter(|it| !it.is_empty()) {
                out.alert(&format!("{} {hint}", paint(NAME, "hint:")));
            }
        }
        self.exit()
    }

    fn causes(&self) -> Vec<String> {
        let mut causes = match self {
            Failure::Answer(answer) => answer.causes(),
            Failure::NotSet { causes, .. } => causes.clone(),
            Failure::NotStarted { why, .. } => vec![why.clone()],
            Failure::Denied { asks, .. } => asks.clone(),
            Failure::Silent { waited_for, seconds, .. } => {
                vec![format!("waited {seconds} s for {waited_for}")]
            }
            Failure::NoSocket { .. } | Failure::UnknownHolder { .. } | Failure::NotEnded { .. } => {
                vec![lockout::cause(self)]
            }
            Failure::HubGone { waited_for }
            | Failure::TimedOut { waited_for, .. }
            | Failure::SlowStart { waited_for, .. } => {
                vec![format!("it was waiting for {waited_for}")]
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

    /// What others said, as they said it.
    fn quoted(&self) -> Vec<String> {
        const LINES_MAX: usize = 10;
        let lines = match self {
            Failure::NotStarted { said, .. } => said.clone(),
            Failure::Answer(answer) => {
                answer.ours("stderr").lines().map(|it| clean(&plain(it)).into_owned()).collect()
            }
            Failure::NoSession { known, .. } | Failure::Ambiguous { known, .. } => {
                return known.iter().take(LINES_MAX).cloned().collect();
            }
            Failure::NoOption { offers, .. } => return offers.clone(),
            Failure::NotSet { offered, .. } => {
                return offered.iter().take(LINES_MAX).map(|it| clean(it).into_owned()).collect();
            }
            _ => Vec::new(),
        };
        lines[lines.len().saturating_sub(LINES_MAX)..].to_vec()
    }

    /// Whether a daemon runs and answers nothing.
    pub(crate) fn is_lockout(&self) -> bool {
        matches!(self, Failure::Silent { pid: Some(_), .. } | Failure::NoSocket { .. })
    }

    /// The way out if a daemon runs and cannot be used.
    pub(crate) fn lockout_hint(&self) -> Option<String> {
        lockout::hint(self)
    }

    fn hint(&self) -> String {
        match self {
            Failure::Usage { hint, .. } | Failure::Local { hint, .. } => hint.clone(),
            Failure::NoDaemon { hint } => (*hint).to_owned(),
            Failure::Unreachable(DialError::Absent { .. }) => {
                "leave out `--socket`: then the daemon of this user is used, and started if need be"
                    .into()
            }
            Failure::Unreachable(DialError::Address(_) | DialError::Unsupported { .. } | DialError::PathTooLong(_)) => {
                String::new()
            }
            Failure::Unreachable(_) | Failure::Token(_) | Failure::Silent { .. } => {
                "`jackfield doctor` says what is wrong".into()
            }
            Failure::NotStarted { log, .. } => {
                format!(
                    "its log is `{}`; `jackfield serve` runs it in the foreground",
                    log.display()
                )
            }
            Failure::HubGone { .. } => {
                "try again: the next command starts a new daemon, and the journal has what was said"
                    .into()
            }
            Failure::NoSession { .. } => "`jackfield sessions list` shows all sessions".into(),
            Failure::Ambiguous { .. } => "give more of the id".into(),
            Failure::NothingLive { .. } => {
                "`jackfield sessions list` shows all sessions; name one to wake it, or open one with \
                 `--new`"
                    .into()
            }
            Failure::NoAsk { .. } => "`jackfield asks` lists what is asked".into(),
            Failure::NoOption { offers, .. } if offers.is_empty() => {
                "it has no options: give the whole answer with `--json`".into()
            }
            Failure::NoOption { .. } => {
                "give the key of an option, its id, or `allow` or `deny` for this once".into()
            }
            Failure::NotSet { flag, offered, .. } if offered.is_empty() => {
                format!("leave out `{flag}`")
            }
            Failure::NotSet { flag, .. } => {
                format!("choose what it offers, or leave out `{flag}`")
            }
            Failure::TooLong => "name files in the prompt instead of what is in them".into(),
            Failure::NoProgram { program } if program.contains('/') => {
                "correct the agent's command after `--`".into()
            }
            Failure::NoProgram { program } => {
                format!("install `{program}`, or give the agent's command with its full path")
            }
            Failure::Answer(answer) => answer.hint(),
            Failure::Stopped { reason } if reason == "max_turn_requests" => {
                "send another prompt to the session to let it go on".into()
            }
            Failure::TimedOut { .. } => "give it more time with `--timeout`".into(),
            Failure::SlowStart { .. } => {
                "give it more time with `--start-timeout`, or run the agent's own command by \
                 itself: it may say what it waits for"
                    .into()
            }
            Failure::Denied { ruled_in: Some(session), .. } => {
                format!("`jackfield policy explain {session}` shows the rule of the last one")
            }
            Failure::Denied { .. } => {
                "allow more with `--approve reads` or `--approve all`, or answer on a terminal"
                    .into()
            }
            Failure::Unhealthy { .. } => "each failed check says how to fix it".into(),
            _ => String::new(),
        }
    }
}

fn in_brackets(pid: Option<impl std::fmt::Display>) -> String {
    pid.map(|it| format!(" (pid {it})")).unwrap_or_default()
}

fn why_stopped(reason: &str) -> String {
    match reason {
        "refusal" => "it refuses to go on".into(),
        "max_tokens" => "the token limit was reached".into(),
        "max_turn_requests" => "the limit of model requests in one turn was reached".into(),
        other => format!("`{}`", clean(other)),
    }
}

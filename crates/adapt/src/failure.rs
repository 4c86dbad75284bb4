//! Why a turn failed: what programs print about it, sorted into causes with a way out.

use jackfield_agents::Exit;
use serde_json::{Value, json};

/// What went wrong, as far as people act differently on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// No login, or the key was refused.
    Auth,
    RateLimited,
    /// The provider is down or overloaded.
    Unavailable,
    /// The connection to the provider broke.
    Connection,
    /// The conversation does not fit into the model any more.
    TooLong,
    /// The provider refused the request for another reason.
    Rejected,
    /// The program does not know the session it was to resume.
    NoSession,
    /// The program could not be started, or refused its arguments.
    NotStarted,
    /// The program ended in the middle of the turn.
    Crashed,
    /// The program ended well and said nothing.
    Empty,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub cause: Cause,
    pub message: String,
    /// The provider's HTTP status.
    pub status: Option<u16>,
}

impl Failure {
    pub fn new(cause: Cause, message: impl Into<String>) -> Failure {
        Failure { cause, message: message.into(), status: None }
    }

    /// Reads what a program or a provider said about it.
    pub fn read(message: &str, status: Option<u16>) -> Failure {
        let status = status.or_else(|| status_in(message));
        let cause = cause_of(message, status).unwrap_or(Cause::Rejected);
        Failure { cause, message: message.trim().to_owned(), status }
    }

    /// From the end of a program that told of no outcome: stderr and noise are all there is.
    pub fn from_exit(exit: &Exit, noise: &[String], spoke: bool) -> Failure {
        if let Some(why) = &exit.failed_to_start {
            return Failure::new(Cause::NotStarted, why.clone());
        }
        let said = format!("{}\n{}", noise.join("\n"), exit.stderr_tail);
        let telling = telling_line(&said);
        if let Some(line) = &telling
            && let Some(cause) = cause_of(line, status_in(line))
        {
            return Failure { cause, message: line.clone(), status: status_in(line) };
        }
        let ended_well = exit.code == Some(0);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        let detail = telling.as_deref().or(last).map(str::trim).unwrap_or_default();
        let (cause, what) = match (ended_well, spoke) {
            (true, false) => (Cause::Empty, "it ended without saying anything".to_owned()),
            (true, true) => (Cause::Crashed, "it ended before the turn was over".to_owned()),
            (false, _) => (Cause::Crashed, format!("it ended with {exit}")),
        };
        let message = if detail.is_empty() { what } else { format!("{what}: {detail}") };
        Failure::new(cause, message)
    }

    /// The JSON-RPC error of the prompt.
    pub(crate) fn to_error(&self, name: &str) -> Value {
        let code = match self.cause {
            Cause::Auth => -32000,
            Cause::NoSession => -32002,
            _ => -32603,
        };
        let mut data = json!({"cause": self.cause.word(), "hint": self.cause.hint(name)});
        if let Some(status) = self.status {
            data["status"] = json!(status);
        }
        json!({"code": code, "message": format!("{name}: {}", self.message), "data": data})
    }
}

impl Cause {
    fn word(self) -> &'static str {
        match self {
            Cause::Auth => "auth",
            Cause::RateLimited => "rate_limited",
            Cause::Unavailable => "unavailable",
            Cause::Connection => "connection",
            Cause::TooLong => "too_long",
            Cause::Rejected => "rejected",
            Cause::NoSession => "no_session",
            Cause::NotStarted => "not_started",
            Cause::Crashed => "crashed",
            Cause::Empty => "empty",
        }
    }

    fn hint(self, name: &str) -> String {
        match self {
            Cause::Auth => format!(
                "log in with {name} itself, or set the key it reads and restart the session"
            ),
            Cause::RateLimited => "wait and prompt again, or choose another model".to_owned(),
            Cause::Unavailable | Cause::Connection => {
                "prompt again in a moment; the session is kept".to_owned()
            }
            Cause::TooLong => "start a new session, or let the program compact this one".to_owned(),
            Cause::Rejected => "the provider's words above say what to change".to_owned(),
            Cause::NoSession => format!("{name} has lost this session; start a new one"),
            Cause::NotStarted => {
                "`jackfield agents show` says what was looked for and how to install it".to_owned()
            }
            Cause::Crashed | Cause::Empty => {
                "prompt again; `jackfield log` has what it said".to_owned()
            }
        }
    }
}

/// What programs and providers say, in the order in which it is looked for: a message often names
/// several causes.
const WORDS: &[(Cause, &[&str])] = &[
    (
        Cause::NoSession,
        &[
            "no conversation found",
            "no rollout found",
            "thread/resume failed",
            "session not found",
            "no session found",
            "unknown session",
            "invalid session identifier",
            "no previous sessions found",
            "error resuming session",
        ],
    ),
    (
        Cause::Auth,
        &[
            "unauthorized",
            "unauthenticated",
            "invalid api key",
            "invalid_api_key",
            "incorrect api key",
            "api key not valid",
            "no api key",
            "not logged in",
            "please log in",
            "login required",
            "run /login",
            "authentication",
            "permission_error",
            "forbidden",
        ],
    ),
    (
        Cause::RateLimited,
        &[
            "rate limit",
            "rate_limit",
            "ratelimit",
            "too many requests",
            "quota",
            "credit balance is too low",
            "usage limit",
            "session limit",
            "resource_exhausted",
            "resource exhausted",
        ],
    ),
    (
        Cause::TooLong,
        &[
            "prompt is too long",
            "context length",
            "context_length_exceeded",
            "maximum context",
            "input is too long",
        ],
    ),
    (
        Cause::Unavailable,
        &[
            "overloaded",
            "bad gateway",
            "service unavailable",
            "internal server error",
            "high demand",
            "gateway timeout",
        ],
    ),
    (
        Cause::Connection,
        &[
            "econnreset",
            "etimedout",
            "econnrefused",
            "socket hang up",
            "closed unexpectedly",
            "premature close",
            "fetch failed",
            "stream disconnected",
            "connection error",
            "network error",
            "connection reset",
        ],
    ),
    (
        Cause::NotStarted,
        &["unknown option", "unexpected argument", "unrecognized arguments", "unknown argument"],
    ),
];

fn cause_of(text: &str, status: Option<u16>) -> Option<Cause> {
    let text = text.to_lowercase();
    let by_status = status.map(|status| match status {
        401 | 403 => Cause::Auth,
        429 => Cause::RateLimited,
        413 => Cause::TooLong,
        500.. => Cause::Unavailable,
        _ => Cause::Rejected,
    });
    let says = |(_, words): &&(Cause, &[&str])| words.iter().any(|word| text.contains(word));
    let by_words = WORDS.iter().find(says).map(|(cause, _)| *cause);
    match (by_words, by_status) {
        // A status is clear where words are not, but it cannot tell what was too long or not found.
        (Some(Cause::NoSession | Cause::TooLong), _) | (_, None | Some(Cause::Rejected)) => {
            by_words.or(by_status)
        }
        _ => by_status,
    }
}

/// A three-digit HTTP status, only where the words around it make it one.
fn status_in(text: &str) -> Option<u16> {
    let lower = text.to_lowercase();
    let before = ["status", "http", "code", "error", "api error"];
    let bytes = lower.as_bytes();
    (0..bytes.len().saturating_sub(2)).find_map(|at| {
        let digits = lower.get(at..at + 3)?;
        let alone = |index: Option<usize>| {
            index
                .and_then(|index| bytes.get(index))
                .is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'.')
        };
        let status: u16 = digits.parse().ok()?;
        let fits = (400..600).contains(&status)
            && alone(at.checked_sub(1))
            && bytes.get(at + 3).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        let context = lower.get(at.saturating_sub(16)..at).unwrap_or_default();
        (fits && before.iter().any(|word| context.contains(word))).then_some(status)
    })
}

/// More of a line than this says nothing new.
const SHOWN_CHARS_MAX: usize = 400;

/// The line of a program's last words that says most: one that names a cause, else one that calls
/// itself an error.
fn telling_line(said: &str) -> Option<String> {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let caused = lines.iter().find(|line| cause_of(line, status_in(line)).is_some());
    let error = || lines.iter().find(|line| line.to_lowercase().contains("error"));
    let line = caused.or_else(error)?;
    Some(line.chars().take(SHOWN_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_status_only_in_its_context() {
        assert_eq!(status_in("API Error: 429 rate limited"), Some(429));
        assert_eq!(status_in("HTTP/1.1 500"), None.or(Some(500)));
        assert_eq!(status_in("compiled 404 files"), None);
        assert_eq!(status_in("error: port 4290 is taken"), None);
    }

    #[test]
    fn causes_are_told_apart() {
        let causes = [
            ("Invalid API key · Please run /login", Cause::Auth),
            ("unexpected status 401 Unauthorized: bad key", Cause::Auth),
            ("429 Too Many Requests", Cause::RateLimited),
            ("API Error: 529 overloaded_error", Cause::Unavailable),
            ("We're currently experiencing high demand", Cause::Unavailable),
            ("stream disconnected before completion", Cause::Connection),
            ("No conversation found with session ID: x", Cause::NoSession),
            ("Prompt is too long", Cause::TooLong),
        ];
        for (text, cause) in causes {
            assert_eq!(Failure::read(text, None).cause, cause, "{text}");
        }
    }

    #[test]
    fn a_silent_end_says_so_and_a_loud_one_is_quoted() {
        let silent = Failure::from_exit(&Exit { code: Some(0), ..Exit::default() }, &[], false);
        assert_eq!(silent.cause, Cause::Empty);
        let stderr_tail = "Loading\nError: unexpected argument '-' found\n".to_owned();
        let loud =
            Failure::from_exit(&Exit { code: Some(2), stderr_tail, ..Exit::default() }, &[], false);
        assert_eq!(
            (loud.cause, loud.message.contains("unexpected argument")),
            (Cause::NotStarted, true)
        );
    }
}

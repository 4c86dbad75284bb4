//! Classifies the failures of turns by what programs print, with a hint for each cause.

use jackfield_agents::AgentExit;
use serde_json::{Value, json};

/// The cause of a failure, as far as a user reacts differently to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCause {
    /// The program is not logged in, or its key was refused.
    Auth,
    RateLimited,
    /// The provider is down or overloaded.
    Unavailable,
    /// The connection to the provider broke.
    Connection,
    /// The conversation exceeds the model's context window.
    TooLong,
    /// The provider refused the request for another reason.
    Rejected,
    /// The program cannot find the session to resume.
    NoSession,
    /// The program could not be started, or refused its arguments.
    NotStarted,
    /// The program exited in the middle of the turn.
    Crashed,
    /// The program exited successfully without output.
    Empty,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnFailure {
    pub cause: FailureCause,
    pub message: String,
    /// The provider's HTTP status.
    pub status: Option<u16>,
}

impl TurnFailure {
    pub fn new(cause: FailureCause, message: impl Into<String>) -> TurnFailure {
        TurnFailure { cause, message: message.into(), status: None }
    }

    /// Classifies an error message of a program or a provider.
    pub fn classify(message: &str, status: Option<u16>) -> TurnFailure {
        let status = status.or_else(|| find_status(message));
        let cause = classify_text(message, status).unwrap_or(FailureCause::Rejected);
        TurnFailure { cause, message: message.trim().to_owned(), status }
    }

    /// The failure of a program that exited without reporting an outcome. Only its stderr and its
    /// unparsable lines can explain it.
    pub fn from_exit(exit: &AgentExit, noise: &[String], has_output: bool) -> TurnFailure {
        if let Some(why) = &exit.failed_to_start {
            return TurnFailure::new(FailureCause::NotStarted, why.clone());
        }
        let output = format!("{}\n{}", noise.join("\n"), exit.stderr_tail);
        let relevant = find_relevant_line(&output);
        if let Some(line) = &relevant
            && let Some(cause) = classify_text(line, find_status(line))
        {
            return TurnFailure { cause, message: line.clone(), status: find_status(line) };
        }
        let is_success = exit.code == Some(0);
        let last = output.lines().rev().find(|line| !line.trim().is_empty());
        let detail = relevant.as_deref().or(last).map(str::trim).unwrap_or_default();
        let (cause, summary) = match (is_success, has_output) {
            (true, false) => (FailureCause::Empty, "it exited without output".to_owned()),
            (true, true) => (FailureCause::Crashed, "it exited before the turn ended".to_owned()),
            (false, _) => (FailureCause::Crashed, format!("it exited with {exit}")),
        };
        let message = if detail.is_empty() { summary } else { format!("{summary}: {detail}") };
        TurnFailure::new(cause, message)
    }

    /// The JSON-RPC error of the prompt request.
    pub(crate) fn to_json_rpc_error(&self, name: &str) -> Value {
        let code = match self.cause {
            FailureCause::Auth => -32000,
            FailureCause::NoSession => -32002,
            _ => -32603,
        };
        let mut data = json!({"cause": self.cause.as_str(), "hint": self.cause.hint(name)});
        if let Some(status) = self.status {
            data["status"] = json!(status);
        }
        json!({"code": code, "message": format!("{name}: {}", self.message), "data": data})
    }
}

impl FailureCause {
    fn as_str(self) -> &'static str {
        match self {
            FailureCause::Auth => "auth",
            FailureCause::RateLimited => "rate_limited",
            FailureCause::Unavailable => "unavailable",
            FailureCause::Connection => "connection",
            FailureCause::TooLong => "too_long",
            FailureCause::Rejected => "rejected",
            FailureCause::NoSession => "no_session",
            FailureCause::NotStarted => "not_started",
            FailureCause::Crashed => "crashed",
            FailureCause::Empty => "empty",
        }
    }

    fn hint(self, name: &str) -> String {
        match self {
            FailureCause::Auth => {
                format!("log in with {name} itself, or set its API key and restart the session")
            }
            FailureCause::RateLimited => {
                "wait and prompt again, or choose another model".to_owned()
            }
            FailureCause::Unavailable | FailureCause::Connection => {
                "prompt again in a moment; the session is kept".to_owned()
            }
            FailureCause::TooLong => {
                "start a new session, or let the program compact this one".to_owned()
            }
            FailureCause::Rejected => {
                "change the request as the provider's message says".to_owned()
            }
            FailureCause::NoSession => format!("{name} has lost this session; start a new one"),
            FailureCause::NotStarted => {
                "run `jackfield agents show` to see the searched programs and how to install them"
                    .to_owned()
            }
            FailureCause::Crashed | FailureCause::Empty => {
                "prompt again; `jackfield log` shows its output".to_owned()
            }
        }
    }
}

/// Texts of programs and providers by cause, in the order of precedence: a message often matches
/// several causes.
const MESSAGE_PATTERNS: &[(FailureCause, &[&str])] = &[
    (
        FailureCause::NoSession,
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
        FailureCause::Auth,
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
        FailureCause::RateLimited,
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
        FailureCause::TooLong,
        &[
            "prompt is too long",
            "context length",
            "context_length_exceeded",
            "maximum context",
            "input is too long",
        ],
    ),
    (
        FailureCause::Unavailable,
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
        FailureCause::Connection,
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
        FailureCause::NotStarted,
        &["unknown option", "unexpected argument", "unrecognized arguments", "unknown argument"],
    ),
];

fn classify_text(text: &str, status: Option<u16>) -> Option<FailureCause> {
    let text = text.to_lowercase();
    let by_status = status.map(|status| match status {
        401 | 403 => FailureCause::Auth,
        429 => FailureCause::RateLimited,
        413 => FailureCause::TooLong,
        500.. => FailureCause::Unavailable,
        _ => FailureCause::Rejected,
    });
    let matches = |(_, patterns): &&(FailureCause, &[&str])| {
        patterns.iter().any(|pattern| text.contains(pattern))
    };
    let by_text = MESSAGE_PATTERNS.iter().find(matches).map(|(cause, _)| *cause);
    match (by_text, by_status) {
        // A status is more reliable than a text, but it does not identify what was too long or not
        // found.
        (Some(FailureCause::NoSession | FailureCause::TooLong), _)
        | (_, None | Some(FailureCause::Rejected)) => by_text.or(by_status),
        _ => by_status,
    }
}

/// Finds a three-digit HTTP status, only if the text before it identifies it as one.
fn find_status(text: &str) -> Option<u16> {
    let lower = text.to_lowercase();
    let keywords = ["status", "http", "code", "error", "api error"];
    let bytes = lower.as_bytes();
    (0..bytes.len().saturating_sub(2)).find_map(|at| {
        let digits = lower.get(at..at + 3)?;
        let is_boundary = |index: Option<usize>| {
            index
                .and_then(|index| bytes.get(index))
                .is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'.')
        };
        let status: u16 = digits.parse().ok()?;
        let is_status = (400..600).contains(&status)
            && is_boundary(at.checked_sub(1))
            && bytes.get(at + 3).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        let context = lower.get(at.saturating_sub(16)..at).unwrap_or_default();
        (is_status && keywords.iter().any(|word| context.contains(word))).then_some(status)
    })
}

/// The longest line that becomes a failure's message.
const LINE_CHARS_MAX: usize = 400;

/// The most relevant line of a program's output: the first with a known cause, else the first that
/// contains `error`.
fn find_relevant_line(output: &str) -> Option<String> {
    let lines: Vec<&str> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let classified = lines.iter().find(|line| classify_text(line, find_status(line)).is_some());
    let error = || lines.iter().find(|line| line.to_lowercase().contains("error"));
    let line = classified.or_else(error)?;
    Some(line.chars().take(LINE_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_is_a_status_only_in_context() {
        assert_eq!(find_status("API Error: 429 rate limited"), Some(429));
        assert_eq!(find_status("HTTP/1.1 500"), None.or(Some(500)));
        assert_eq!(find_status("compiled 404 files"), None);
        assert_eq!(find_status("error: port 4290 is taken"), None);
    }

    #[test]
    fn messages_are_classified_by_cause() {
        let causes = [
            ("Invalid API key · Please run /login", FailureCause::Auth),
            ("unexpected status 401 Unauthorized: bad key", FailureCause::Auth),
            ("429 Too Many Requests", FailureCause::RateLimited),
            ("API Error: 529 overloaded_error", FailureCause::Unavailable),
            ("We're currently experiencing high demand", FailureCause::Unavailable),
            ("stream disconnected before completion", FailureCause::Connection),
            ("No conversation found with session ID: x", FailureCause::NoSession),
            ("Prompt is too long", FailureCause::TooLong),
        ];
        for (text, cause) in causes {
            assert_eq!(TurnFailure::classify(text, None).cause, cause, "{text}");
        }
    }

    #[test]
    fn exit_without_output_is_reported_and_stderr_is_quoted() {
        let silent = TurnFailure::from_exit(
            &AgentExit { code: Some(0), ..AgentExit::default() },
            &[],
            false,
        );
        assert_eq!(silent.cause, FailureCause::Empty);
        let stderr_tail = "Loading\nError: unexpected argument '-' found\n".to_owned();
        let loud = TurnFailure::from_exit(
            &AgentExit { code: Some(2), stderr_tail, ..AgentExit::default() },
            &[],
            false,
        );
        assert_eq!(
            (loud.cause, loud.message.contains("unexpected argument")),
            (FailureCause::NotStarted, true)
        );
    }
}

//! Classifies the errors of Codex.

use crate::{FailureCause, TurnFailure};
use jackfield_agents::AgentExit;
use serde_json::Value;

/// Messages that Codex prints on stderr at every start. They do not explain a failure.
const STARTUP_REMARKS: &[&str] = &[
    "Reading additional input from stdin",
    "Reading prompt from stdin",
    "could not find bubblewrap",
];

/// Removes the startup remarks from the stderr of an exit.
pub(super) fn strip_startup_remarks(exit: &AgentExit) -> AgentExit {
    let is_remark = |line: &&str| STARTUP_REMARKS.iter().any(|remark| line.contains(remark));
    let lines: Vec<&str> = exit.stderr_tail.lines().filter(|line| !is_remark(line)).collect();
    AgentExit { stderr_tail: lines.join("\n"), ..exit.clone() }
}

/// Whether an error event only reports an automatic retry.
pub(super) fn is_retry(message: &str) -> bool {
    message.starts_with("Reconnecting...")
}

/// Classifies a message, which is all that `exec` reports.
pub(super) fn from_message(message: &str) -> TurnFailure {
    parse_message(message, None)
}

/// Classifies a `TurnError` of `app-server`, whose `codexErrorInfo` is more precise than its
/// message.
pub(super) fn from_error(error: &Value) -> TurnFailure {
    let message = error["message"].as_str().unwrap_or("the turn failed for an unknown reason");
    let info = &error["codexErrorInfo"];
    let kind = info
        .as_str()
        .or_else(|| info.as_object().and_then(|it| it.keys().next().map(String::as_str)));
    let status = kind.and_then(|kind| info.get(kind)?["httpStatusCode"].as_u64());
    let mut failure = parse_message(message, status.and_then(|status| u16::try_from(status).ok()));
    if failure.status.is_none()
        && let Some(cause) = kind.and_then(cause_of_kind)
    {
        failure.cause = cause;
    }
    failure
}

fn cause_of_kind(kind: &str) -> Option<FailureCause> {
    match kind {
        "contextWindowExceeded" => Some(FailureCause::TooLong),
        "usageLimitExceeded" | "rateLimitExceeded" | "sessionBudgetExceeded" => {
            Some(FailureCause::RateLimited)
        }
        "serverOverloaded"
        | "internalServerError"
        | "flexUnavailable"
        | "policyCapacityUnavailable" => Some(FailureCause::Unavailable),
        "unauthorized" => Some(FailureCause::Auth),
        "httpConnectionFailed"
        | "responseStreamConnectionFailed"
        | "responseStreamDisconnected"
        | "responseTooManyFailedAttempts" => Some(FailureCause::Connection),
        _ => None,
    }
}

/// A provider's error is reported as its complete body. The body determines the cause, and its
/// message becomes that of the failure.
fn parse_message(message: &str, status: Option<u16>) -> TurnFailure {
    let mut failure = TurnFailure::classify(message, status);
    let body: Option<Value> = serde_json::from_str(message).ok();
    let inner = body.as_ref().and_then(|body| {
        let message = body["error"]["message"].as_str();
        message.or_else(|| body["message"].as_str()).or_else(|| body["detail"].as_str())
    });
    if let Some(inner) = inner {
        inner.clone_into(&mut failure.message);
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn error_info_determines_the_cause_if_the_message_does_not() {
        let cases = [
            (json!("contextWindowExceeded"), FailureCause::TooLong, None),
            (json!("usageLimitExceeded"), FailureCause::RateLimited, None),
            (
                json!({"httpConnectionFailed": {"httpStatusCode": 401}}),
                FailureCause::Auth,
                Some(401),
            ),
            (
                json!({"responseStreamDisconnected": {"httpStatusCode": null}}),
                FailureCause::Connection,
                None,
            ),
            (json!("badRequest"), FailureCause::Rejected, None),
            (json!(null), FailureCause::Rejected, None),
        ];
        for (info, cause, status) in cases {
            let failure = from_error(&json!({"message": "it went wrong", "codexErrorInfo": info}));
            assert_eq!((failure.cause, failure.status), (cause, status), "{info}");
        }
    }

    #[test]
    fn startup_remarks_are_removed_from_stderr() {
        let stderr_tail = "Reading prompt from stdin...\nthread 'main' panicked\n".to_owned();
        let exit = AgentExit { code: Some(101), stderr_tail, ..AgentExit::default() };
        assert_eq!(strip_startup_remarks(&exit).stderr_tail, "thread 'main' panicked");
    }

    #[test]
    fn message_is_extracted_from_the_body_of_an_error() {
        let body = r#"{"error": {"message": "too much", "code": "context_length_exceeded"}}"#;
        let failure = from_message(body);
        assert_eq!((failure.cause, failure.message.as_str()), (FailureCause::TooLong, "too much"));
    }
}

//! What Codex says went wrong: which of it ends the turn, and why.

use crate::{Cause, Failure};
use jackfield_agents::Exit;
use serde_json::Value;

/// Said on stderr at every start; they explain no failure.
const REMARKS: &[&str] = &[
    "Reading additional input from stdin",
    "Reading prompt from stdin",
    "could not find bubblewrap",
];

/// The end of a program without what it says at every start.
pub(super) fn without_remarks(exit: &Exit) -> Exit {
    let is_remark = |line: &&str| REMARKS.iter().any(|remark| line.contains(remark));
    let lines: Vec<&str> = exit.stderr_tail.lines().filter(|line| !is_remark(line)).collect();
    Exit { stderr_tail: lines.join("\n"), ..exit.clone() }
}

/// Codex tries again by itself and says so with the same word as for errors.
pub(super) fn is_retry(message: &str) -> bool {
    message.starts_with("Reconnecting...")
}

/// From words alone, which is all that `exec` tells.
pub(super) fn from_message(message: &str) -> Failure {
    read(message, None)
}

/// From a `TurnError` of `app-server`, whose `codexErrorInfo` says more than its words.
pub(super) fn from_error(error: &Value) -> Failure {
    let message = error["message"].as_str().unwrap_or("the turn failed without a reason");
    let info = &error["codexErrorInfo"];
    let word = info
        .as_str()
        .or_else(|| info.as_object().and_then(|it| it.keys().next().map(String::as_str)));
    let status = word.and_then(|word| info.get(word)?["httpStatusCode"].as_u64());
    let mut failure = read(message, status.and_then(|status| u16::try_from(status).ok()));
    if failure.status.is_none()
        && let Some(cause) = word.and_then(cause)
    {
        failure.cause = cause;
    }
    failure
}

fn cause(word: &str) -> Option<Cause> {
    match word {
        "contextWindowExceeded" => Some(Cause::TooLong),
        "usageLimitExceeded" | "rateLimitExceeded" | "sessionBudgetExceeded" => {
            Some(Cause::RateLimited)
        }
        "serverOverloaded"
        | "internalServerError"
        | "flexUnavailable"
        | "policyCapacityUnavailable" => Some(Cause::Unavailable),
        "unauthorized" => Some(Cause::Auth),
        "httpConnectionFailed"
        | "responseStreamConnectionFailed"
        | "responseStreamDisconnected"
        | "responseTooManyFailedAttempts" => Some(Cause::Connection),
        _ => None,
    }
}

/// A provider's refusal comes as its whole body: all of it tells the cause, its message is for people.
fn read(message: &str, status: Option<u16>) -> Failure {
    let mut failure = Failure::read(message, status);
    let body: Option<Value> = serde_json::from_str(message).ok();
    let told = body.as_ref().and_then(|body| {
        let message = body["error"]["message"].as_str();
        message.or_else(|| body["message"].as_str()).or_else(|| body["detail"].as_str())
    });
    if let Some(told) = told {
        told.clone_into(&mut failure.message);
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_kind_of_error_counts_where_the_words_say_nothing() {
        let cases = [
            (json!("contextWindowExceeded"), Cause::TooLong, None),
            (json!("usageLimitExceeded"), Cause::RateLimited, None),
            (json!({"httpConnectionFailed": {"httpStatusCode": 401}}), Cause::Auth, Some(401)),
            (
                json!({"responseStreamDisconnected": {"httpStatusCode": null}}),
                Cause::Connection,
                None,
            ),
            (json!("badRequest"), Cause::Rejected, None),
            (json!(null), Cause::Rejected, None),
        ];
        for (info, cause, status) in cases {
            let failure = from_error(&json!({"message": "it went wrong", "codexErrorInfo": info}));
            assert_eq!((failure.cause, failure.status), (cause, status), "{info}");
        }
    }

    #[test]
    fn what_is_said_at_every_start_explains_no_end() {
        let stderr_tail = "Reading prompt from stdin...\nthread 'main' panicked\n".to_owned();
        let exit = Exit { code: Some(101), stderr_tail, ..Exit::default() };
        assert_eq!(without_remarks(&exit).stderr_tail, "thread 'main' panicked");
    }

    #[test]
    fn the_body_of_a_refusal_is_told_by_its_message() {
        let body = r#"{"error": {"message": "too much", "code": "context_length_exceeded"}}"#;
        let failure = from_message(body);
        assert_eq!((failure.cause, failure.message.as_str()), (Cause::TooLong, "too much"));
    }
}

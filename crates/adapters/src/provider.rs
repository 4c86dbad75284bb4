//! Extracts a provider's error message from the text that programs wrap around it.

use crate::{AdapterTurn, FailureCause, TurnFailure, colors::strip_colors};
use jackfield_agents::AgentExit;
use serde_json::Value;

/// Parses `[API Error: {"error": {…}}]`, `429: {"message": …}` and similar messages.
pub(crate) fn parse_failure(text: &str, status: Option<u16>) -> TurnFailure {
    // Some programs quote the message as a JSON string.
    let unquoted: Option<String> = serde_json::from_str(text).ok();
    let text = unquoted.as_deref().unwrap_or(text).trim();
    let inner = text.strip_prefix("[API Error: ").and_then(|it| it.strip_suffix(']'));
    let inner = inner.unwrap_or(text);
    let (message, json_status) =
        parse_json_error(inner).unwrap_or_else(|| (inner.to_owned(), None));
    let status = status.or(json_status).or_else(|| leading_status(inner));
    let mut failure = TurnFailure::classify(&message, status);
    if failure.cause == FailureCause::Rejected && is_broken_stream(&failure.message) {
        failure.cause = FailureCause::Connection;
    }
    failure
}

/// Whether an HTTP client reports a stream that ended too early. Node.js reports one word.
fn is_broken_stream(message: &str) -> bool {
    message == "terminated" || message.contains("unexpected EOF")
}

/// The message and the HTTP status of an error in JSON.
fn parse_json_error(text: &str) -> Option<(String, Option<u16>)> {
    let json = text.get(text.find('{')?..=text.rfind('}')?)?;
    let value: Value = serde_json::from_str(json).ok()?;
    let error = value.get("error").filter(|it| it.is_object()).unwrap_or(&value);
    let status =
        ["code", "status", "statusCode"].iter().find_map(|name| parse_status(&error[*name]));
    Some((error["message"].as_str()?.to_owned(), status))
}

/// Reads an HTTP status of an error.
pub(crate) fn parse_status(value: &Value) -> Option<u16> {
    let status = value.as_u64().and_then(|status| u16::try_from(status).ok());
    status.filter(|status| (400..600).contains(status))
}

fn leading_status(text: &str) -> Option<u16> {
    let end = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len());
    let status = text.get(..end)?.parse().ok()?;
    (400..600).contains(&status).then_some(status)
}

/// The failure of a program that exited without reporting an outcome.
pub(crate) fn failure_from_exit(exit: &AgentExit, turn: &AdapterTurn) -> TurnFailure {
    let stderr_tail = strip_colors(&exit.stderr_tail);
    let missing_session = stderr_tail.lines().find(|line| {
        let line = line.to_lowercase();
        line.contains("session") && (line.contains("not found") || line.contains("does not exist"))
    });
    if let Some(line) = missing_session.filter(|_| exit.code != Some(0)) {
        return TurnFailure::new(FailureCause::NoSession, line.trim());
    }
    let exit = AgentExit { stderr_tail, ..exit.clone() };
    let mut failure = TurnFailure::from_exit(&exit, &turn.noise, turn.has_output());
    if let Some((message, _)) = parse_json_error(&failure.message) {
        failure.message = message;
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_message_is_extracted_from_its_wrapping() {
        let wrapped = [
            (
                r#"[API Error: {"error":{"code":401,"message":"bad key"}}]"#,
                FailureCause::Auth,
                "bad key",
            ),
            (r#"429: {"message":"slow down","code":"x"}"#, FailureCause::RateLimited, "slow down"),
            ("[API Error: terminated]", FailureCause::Connection, "terminated"),
            ("503 try later", FailureCause::Unavailable, "503 try later"),
            ("{not json}", FailureCause::Rejected, "{not json}"),
            (r#""body: unexpected EOF""#, FailureCause::Connection, "body: unexpected EOF"),
        ];
        for (text, cause, message) in wrapped {
            let failure = parse_failure(text, None);
            assert_eq!((failure.cause, failure.message.as_str()), (cause, message), "{text}");
        }
    }

    #[test]
    fn colors_are_not_part_of_a_failure() {
        let stderr_tail = "\u{1b}[91mError: \u{1b}[0mSession not found".to_owned();
        let exit = AgentExit { code: Some(1), stderr_tail, ..AgentExit::default() };
        let failure = failure_from_exit(&exit, &AdapterTurn::default());
        assert_eq!(failure.cause, FailureCause::NoSession);
        assert!(!failure.message.contains('\u{1b}'), "{}", failure.message);
    }
}

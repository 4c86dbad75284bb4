//! What a provider said, taken out of what programs wrap around it.

use crate::{Cause, Failure, Turn};
use jackfield_agents::Exit;
use serde_json::Value;

/// Reads `[API Error: {"error": {…}}]`, `429: {"message": …}` and the like.
pub(crate) fn failure(words: &str, status: Option<u16>) -> Failure {
    // Some quote a text as if it were JSON.
    let quoted: Option<String> = serde_json::from_str(words).ok();
    let words = quoted.as_deref().unwrap_or(words).trim();
    let inside = words.strip_prefix("[API Error: ").and_then(|it| it.strip_suffix(']'));
    let inside = inside.unwrap_or(words);
    let (message, told) = spoken(inside).unwrap_or_else(|| (inside.to_owned(), None));
    let status = status.or(told).or_else(|| leading_status(inside));
    let mut failure = Failure::read(&message, status);
    if failure.cause == Cause::Rejected && broke_off(&failure.message) {
        failure.cause = Cause::Connection;
    }
    failure
}

/// How HTTP clients call a stream that ended too early; Node's says one word.
fn broke_off(message: &str) -> bool {
    message == "terminated" || message.contains("unexpected EOF")
}

/// The message and the status of an error in JSON.
fn spoken(words: &str) -> Option<(String, Option<u16>)> {
    let json = words.get(words.find('{')?..=words.rfind('}')?)?;
    let value: Value = serde_json::from_str(json).ok()?;
    let error = value.get("error").filter(|it| it.is_object()).unwrap_or(&value);
    let status = ["code", "status", "statusCode"].iter().find_map(|name| status_of(&error[*name]));
    Some((error["message"].as_str()?.to_owned(), status))
}

/// An HTTP status of an error.
pub(crate) fn status_of(value: &Value) -> Option<u16> {
    let status = value.as_u64().and_then(|status| u16::try_from(status).ok());
    status.filter(|status| (400..600).contains(status))
}

fn leading_status(words: &str) -> Option<u16> {
    let digits = words.find(|it: char| !it.is_ascii_digit()).unwrap_or(words.len());
    let status = words.get(..digits)?.parse().ok()?;
    (400..600).contains(&status).then_some(status)
}

/// From the end of a program that told of no outcome.
pub(crate) fn failure_of_exit(exit: &Exit, turn: &Turn) -> Failure {
    let stderr_tail = without_colours(&exit.stderr_tail);
    let lost = stderr_tail.lines().find(|line| {
        let line = line.to_lowercase();
        line.contains("session") && (line.contains("not found") || line.contains("does not exist"))
    });
    if let Some(line) = lost.filter(|_| exit.code != Some(0)) {
        return Failure::new(Cause::NoSession, line.trim());
    }
    let exit = Exit { stderr_tail, ..exit.clone() };
    let mut failure = Failure::from_exit(&exit, &turn.noise, turn.has_spoken());
    if let Some((message, _)) = spoken(&failure.message) {
        failure.message = message;
    }
    failure
}

/// Programs colour what they print even where nobody can see it.
pub(crate) fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\u{1b}[") {
        plain.push_str(&rest[..at]);
        let code = &rest[at + 2..];
        let end = code.find(|it: char| ('@'..='~').contains(&it));
        rest = end.map_or("", |end| &code[end + 1..]);
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_provider_are_found_in_their_wrapping() {
        let wrapped = [
            (r#"[API Error: {"error":{"code":401,"message":"bad key"}}]"#, Cause::Auth, "bad key"),
            (r#"429: {"message":"slow down","code":"x"}"#, Cause::RateLimited, "slow down"),
            ("[API Error: terminated]", Cause::Connection, "terminated"),
            ("503 try later", Cause::Unavailable, "503 try later"),
            ("{not json}", Cause::Rejected, "{not json}"),
            (r#""body: unexpected EOF""#, Cause::Connection, "body: unexpected EOF"),
        ];
        for (words, cause, message) in wrapped {
            let failure = failure(words, None);
            assert_eq!((failure.cause, failure.message.as_str()), (cause, message), "{words}");
        }
    }

    #[test]
    fn colours_are_taken_away_wherever_they_are() {
        let red = "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found";
        assert_eq!(without_colours(red), "Error: Session not found");
        assert_eq!(without_colours("ü\u{1b}[3"), "ü");
        let exit = Exit { code: Some(1), stderr_tail: red.to_owned(), ..Exit::default() };
        let lost = failure_of_exit(&exit, &Turn::default());
        assert_eq!((lost.cause, lost.message.contains('\u{1b}')), (Cause::NoSession, false));
    }
}

//! Errors of requests to a model server, with the messages that users see.

use jackfield_protocol::redact::SecretRedactor;
use serde_json::Value;
use std::time::Duration;

/// The first line of a message depends only on the kind of error. The server's own message follows
/// on a second line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ModelError {
    #[error("{}{}", describe_status(*status, url), format_server_message(server_message.as_deref()))]
    Status { status: u16, url: String, server_message: Option<String> },

    #[error("No response body from {url}.")]
    NoBody { url: String },

    #[error("Network error connecting to {url}: {cause}")]
    Network { url: String, cause: String },

    /// The server reported an error after the response had started.
    #[error(
        "Server error in the stream from {url}.{}",
        format_server_message(server_message.as_deref())
    )]
    InStream { url: String, server_message: Option<String> },

    #[error(
        "No response from {url} within {} s. For a slow model, raise {variable}.",
        limit.as_secs_f64()
    )]
    TimedOut { url: String, limit: Duration, variable: &'static str },

    #[error(
        "The response from {url} is not a Chat Completions response. Check your OPENAI_BASE_URL.{}",
        format_server_message(server_message.as_deref())
    )]
    UnexpectedFormat { url: String, server_message: Option<String> },

    #[error("The response from {url} exceeds the limit of {limit} bytes.")]
    TooLong { url: String, limit: usize },

    /// The responses are valid, but the model makes no progress with them.
    #[error("{0}")]
    Unusable(String),

    /// The settings are invalid, so no request was sent.
    #[error("{0}")]
    Settings(String),
}

impl ModelError {
    /// The status of the response, if the server refused the request with one.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            ModelError::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// What a user can do about it, unless the message says it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            ModelError::Status { status: 401 | 403, .. } => {
                Some("set OPENAI_API_KEY to a key that the server accepts")
            }
            ModelError::Network { .. } => {
                Some("start the model server, or correct OPENAI_BASE_URL")
            }
            _ => None,
        }
    }

    pub(super) fn first_token_timeout(url: String, limit: Duration) -> ModelError {
        ModelError::TimedOut { url, limit, variable: "OPENAI_FIRST_TOKEN_SECS" }
    }

    pub(super) fn idle_timeout(url: String, limit: Duration) -> ModelError {
        ModelError::TimedOut { url, limit, variable: "OPENAI_IDLE_SECS" }
    }
}

fn describe_status(status: u16, url: &str) -> String {
    match status {
        401 | 403 => format!(
            "Authentication error (HTTP {status}) calling {url}. Check your OPENAI_API_KEY."
        ),
        429 => format!("Rate limit exceeded (HTTP 429) calling {url}. Please retry later."),
        500.. => format!("Server error (HTTP {status}) from {url}."),
        _ => format!("HTTP error ({status}) from {url}."),
    }
}

fn format_server_message(message: Option<&str>) -> String {
    message.map(|it| format!("\n{it}")).unwrap_or_default()
}

/// Longer messages are truncated: the rest rarely helps.
const SERVER_MESSAGE_CHARS_MAX: usize = 500;

/// Extracts the error message from a response body: the message inside JSON, or the plain text.
/// Returns `None` for an HTML page.
pub(super) fn extract_server_message(body: &str, redactor: &SecretRedactor) -> Option<String> {
    let text = match serde_json::from_str(body) {
        Ok(json) => find_error_message(&json)?,
        Err(_) if body.trim_start().starts_with('<') => return None,
        Err(_) => body.trim().to_owned(),
    };
    if text.is_empty() {
        return None;
    }
    let text = redactor.redact(&text);
    let end = text.char_indices().nth(SERVER_MESSAGE_CHARS_MAX).map(|(end, _)| end);
    Some(end.map_or_else(|| text.clone(), |end| format!("{}…", &text[..end])))
}

/// Looks for the message in the members that common servers use.
pub(super) fn find_error_message(json: &Value) -> Option<String> {
    let error = &json["error"];
    let first = &json["detail"][0]["msg"];
    [&error["message"], error, &json["message"], &json["detail"], first, json]
        .iter()
        .find_map(|it| it.as_str())
        .map(|it| it.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{ModelError, SERVER_MESSAGE_CHARS_MAX, extract_server_message};
    use jackfield_protocol::redact::SecretRedactor;
    use proptest::prelude::*;

    fn api_key_redactor(key: &str) -> SecretRedactor {
        SecretRedactor::new(&[("OPENAI_API_KEY".to_owned(), key.to_owned())])
    }

    const URL: &str = "http://127.0.0.1:1/v1/chat/completions";

    fn status_message(status: u16) -> String {
        ModelError::Status { status, url: URL.to_owned(), server_message: None }.to_string()
    }

    #[test]
    fn each_status_has_its_exact_message() {
        let auth = |it| {
            format!("Authentication error (HTTP {it}) calling {URL}. Check your OPENAI_API_KEY.")
        };
        assert_eq!((status_message(401), status_message(403)), (auth(401), auth(403)));
        let rate = format!("Rate limit exceeded (HTTP 429) calling {URL}. Please retry later.");
        assert_eq!(status_message(429), rate);
        assert_eq!(status_message(500), format!("Server error (HTTP 500) from {URL}."));
        assert_eq!(status_message(503), format!("Server error (HTTP 503) from {URL}."));
        assert_eq!(status_message(404), format!("HTTP error (404) from {URL}."));
        let (url, cause) = (URL.to_owned(), "refused".to_owned());
        let network = ModelError::Network { url: url.clone(), cause }.to_string();
        assert_eq!(network, format!("Network error connecting to {URL}: refused"));
        assert_eq!(ModelError::NoBody { url }.to_string(), format!("No response body from {URL}."));
    }

    #[test]
    fn server_message_follows_on_a_second_line() {
        let server_message = Some("no such model".to_owned());
        let error = ModelError::Status { status: 404, url: URL.to_owned(), server_message };
        assert_eq!(error.to_string(), format!("HTTP error (404) from {URL}.\nno such model"));
    }

    #[test]
    fn message_is_found_in_the_formats_of_common_servers() {
        let extract = |body: &str| extract_server_message(body, &SecretRedactor::default());
        for body in [
            r#"{"error":{"message":"no","code":"x"}}"#,
            r#"{"error":"no"}"#,
            r#"{"object":"error","message":"no","code":400}"#,
            r#"{"detail":"no"}"#,
            r#"{"detail":[{"loc":["body"],"msg":"no"}]}"#,
            r#""no""#,
            " no\n",
        ] {
            assert_eq!(extract(body).as_deref(), Some("no"), "{body}");
        }
        for body in ["", "{}", "<html>502</html>", r#"{"error":{}}"#] {
            assert_eq!(extract(body), None, "{body}");
        }
    }

    #[test]
    fn server_message_is_truncated_and_redacted() {
        let redactor = api_key_redactor("quite-a-plain-key");
        let long = "é".repeat(SERVER_MESSAGE_CHARS_MAX + 1);
        assert_eq!(
            extract_server_message(&long, &redactor).unwrap().chars().count(),
            SERVER_MESSAGE_CHARS_MAX + 1
        );
        let body = r#"{"error":{"message":"wrong key quite-a-plain-key given"}}"#;
        assert_eq!(extract_server_message(body, &redactor).unwrap(), "wrong key *** given");
    }

    proptest! {
        #[test]
        fn each_status_starts_with_its_error_class(status in 300_u16..1000) {
            let start = match status {
                401 | 403 => "Authentication error",
                429 => "Rate limit exceeded",
                500.. => "Server error",
                _ => "HTTP error",
            };
            let message = status_message(status);
            prop_assert!(message.starts_with(start) && message.contains(URL), "{}", message);
            prop_assert!(message.contains(&status.to_string()), "{}", message);
        }
    }
}

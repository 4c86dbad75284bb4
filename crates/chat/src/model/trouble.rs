//! What can go wrong between us and a model, in the words people see.

use super::secrets::Secrets;
use serde_json::Value;
use std::time::Duration;

/// The first line is ours, and the same for everybody; what the server itself said follows in a
/// second one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Trouble {
    #[error("{}{}", sentence(*status, url), line(said.as_deref()))]
    Status { status: u16, url: String, said: Option<String> },

    #[error("No response body from {url}.")]
    NoBody { url: String },

    #[error("Network error connecting to {url}: {why}")]
    Network { url: String, why: String },

    /// It had begun to answer.
    #[error("Server error in the stream from {url}.{}", line(said.as_deref()))]
    InStream { url: String, said: Option<String> },

    #[error(
        "No response from {url} within {} s. A slow model needs more: set {variable}.",
        limit.as_secs_f64()
    )]
    Silent { url: String, limit: Duration, variable: &'static str },

    #[error(
        "The response from {url} is no Chat Completions answer. Check your OPENAI_BASE_URL.{}",
        line(said.as_deref())
    )]
    Foreign { url: String, said: Option<String> },

    #[error("The response from {url} is longer than {limit} bytes and was not read on.")]
    TooLong { url: String, limit: usize },

    /// Nothing was sent.
    #[error("{0}")]
    Settings(String),
}

impl Trouble {
    pub(super) fn silent_before(url: String, limit: Duration) -> Trouble {
        Trouble::Silent { url, limit, variable: "OPENAI_FIRST_TOKEN_SECS" }
    }

    pub(super) fn silent_between(url: String, limit: Duration) -> Trouble {
        Trouble::Silent { url, limit, variable: "OPENAI_IDLE_SECS" }
    }
}

fn sentence(status: u16, url: &str) -> String {
    match status {
        401 | 403 => format!(
            "Authentication error (HTTP {status}) calling {url}. Check your OPENAI_API_KEY."
        ),
        429 => format!("Rate limit exceeded (HTTP 429) calling {url}. Please retry later."),
        500.. => format!("Server error (HTTP {status}) from {url}."),
        _ => format!("HTTP error ({status}) from {url}."),
    }
}

fn line(said: Option<&str>) -> String {
    said.map(|it| format!("\n{it}")).unwrap_or_default()
}

/// More of it than this helps nobody.
const SAID_CHARS_MAX: usize = 500;

/// What a server said was wrong: the message inside its JSON, or its words as they are; a page for
/// browsers says nothing.
pub(super) fn said(body: &str, secrets: &Secrets) -> Option<String> {
    let text = match serde_json::from_str(body) {
        Ok(json) => message(&json)?,
        Err(_) if body.trim_start().starts_with('<') => return None,
        Err(_) => body.trim().to_owned(),
    };
    if text.is_empty() {
        return None;
    }
    let text = secrets.hide(&text);
    let end = text.char_indices().nth(SAID_CHARS_MAX).map(|(end, _)| end);
    Some(end.map_or_else(|| text.clone(), |end| format!("{}…", &text[..end])))
}

/// Where the servers that people run put it.
pub(super) fn message(json: &Value) -> Option<String> {
    let error = &json["error"];
    let first = &json["detail"][0]["msg"];
    [&error["message"], error, &json["message"], &json["detail"], first, json]
        .iter()
        .find_map(|it| it.as_str())
        .map(|it| it.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{SAID_CHARS_MAX, Trouble, said};
    use crate::model::secrets::Secrets;
    use proptest::prelude::*;

    const URL: &str = "http://127.0.0.1:1/v1/chat/completions";

    fn told(status: u16) -> String {
        Trouble::Status { status, url: URL.to_owned(), said: None }.to_string()
    }

    #[test]
    fn every_row_of_the_table_is_word_for_word() {
        let auth = |it| {
            format!("Authentication error (HTTP {it}) calling {URL}. Check your OPENAI_API_KEY.")
        };
        assert_eq!((told(401), told(403)), (auth(401), auth(403)));
        let rate = format!("Rate limit exceeded (HTTP 429) calling {URL}. Please retry later.");
        assert_eq!(told(429), rate);
        assert_eq!(told(500), format!("Server error (HTTP 500) from {URL}."));
        assert_eq!(told(503), format!("Server error (HTTP 503) from {URL}."));
        assert_eq!(told(404), format!("HTTP error (404) from {URL}."));
        let (url, why) = (URL.to_owned(), "refused".to_owned());
        let network = Trouble::Network { url: url.clone(), why }.to_string();
        assert_eq!(network, format!("Network error connecting to {URL}: refused"));
        assert_eq!(Trouble::NoBody { url }.to_string(), format!("No response body from {URL}."));
    }

    #[test]
    fn what_the_server_said_is_a_line_of_its_own() {
        let said = Some("no such model".to_owned());
        let trouble = Trouble::Status { status: 404, url: URL.to_owned(), said };
        assert_eq!(trouble.to_string(), format!("HTTP error (404) from {URL}.\nno such model"));
    }

    #[test]
    fn every_server_puts_its_message_elsewhere() {
        let said = |body: &str| said(body, &Secrets::default());
        for body in [
            r#"{"error":{"message":"no","code":"x"}}"#,
            r#"{"error":"no"}"#,
            r#"{"object":"error","message":"no","code":400}"#,
            r#"{"detail":"no"}"#,
            r#"{"detail":[{"loc":["body"],"msg":"no"}]}"#,
            r#""no""#,
            " no\n",
        ] {
            assert_eq!(said(body).as_deref(), Some("no"), "{body}");
        }
        for body in ["", "{}", "<html>502</html>", r#"{"error":{}}"#] {
            assert_eq!(said(body), None, "{body}");
        }
    }

    #[test]
    fn what_the_server_said_is_bounded_and_has_no_secrets() {
        let secrets = Secrets::of("quite-a-plain-key");
        let long = "é".repeat(SAID_CHARS_MAX + 1);
        assert_eq!(said(&long, &secrets).unwrap().chars().count(), SAID_CHARS_MAX + 1);
        let body = r#"{"error":{"message":"wrong key quite-a-plain-key given"}}"#;
        assert_eq!(said(body, &secrets).unwrap(), "wrong key *** given");
    }

    proptest! {
        #[test]
        fn each_status_has_its_class(status in 300_u16..1000) {
            let start = match status {
                401 | 403 => "Authentication error",
                429 => "Rate limit exceeded",
                500.. => "Server error",
                _ => "HTTP error",
            };
            let told = told(status);
            prop_assert!(told.starts_with(start) && told.contains(URL), "{}", told);
            prop_assert!(told.contains(&status.to_string()), "{}", told);
        }
    }
}

//! Pages that may talk to us. A browser names the page a request comes from in `Origin`; whoever is
//! not a browser sends none.

use axum::http::{HeaderMap, HeaderValue, Method, header};
use std::fmt;
use std::str::FromStr;

/// `scheme://host[:port]` as a browser writes it: in lower case, without the usual port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

/// A text that is no origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no origin: write scheme, host and port as the browser shows them, without a path \
     or a slash at the end, as in `https://console.example.org`"
)]
pub struct NoOrigin {
    text: String,
}

impl FromStr for Origin {
    type Err = NoOrigin;

    fn from_str(text: &str) -> Result<Origin, NoOrigin> {
        let lower = text.to_ascii_lowercase();
        let good = |it: u8| it.is_ascii_alphanumeric() || b"-_.:[]".contains(&it);
        let usual = |port: &'static str| lower.strip_suffix(port).unwrap_or(&lower);
        let (origin, rest) = match lower.split_once("://") {
            Some(("http", rest)) => (usual(":80"), rest),
            Some(("https", rest)) => (usual(":443"), rest),
            // Of an application that is made like a browser.
            Some((scheme, rest)) if !scheme.is_empty() && scheme.bytes().all(good) => {
                (lower.as_str(), rest)
            }
            _ => ("", ""),
        };
        if rest.is_empty() || !rest.bytes().all(good) {
            return Err(NoOrigin { text: text.to_owned() });
        }
        Ok(Origin(origin.to_owned()))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The page that a request comes from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Page {
    /// None: a program asks.
    None,
    /// One that may talk to us, as it was written.
    Friend(HeaderValue),
    Foreign,
}

/// Where a request comes from. `own` is what we are called ourselves, as `scheme://host[:port]`.
pub(super) fn page(headers: &HeaderMap, own: &str, friends: &[Origin]) -> Page {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = match (origins.next(), origins.next()) {
        (None, _) => return Page::None,
        (Some(origin), None) => origin,
        (Some(_), Some(_)) => return Page::Foreign,
    };
    // `null` is what a page in a sandbox is called, whoever made it: it is nobody's friend.
    let friend = origin.to_str().is_ok_and(|text| {
        let listed = |it: &Origin| it.0.eq_ignore_ascii_case(text);
        text.eq_ignore_ascii_case(own) || friends.iter().any(listed)
    });
    if friend { Page::Friend(origin.clone()) } else { Page::Foreign }
}

/// Whether a browser asks beforehand if it may send the real request.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
const ASKED: HeaderValue = HeaderValue::from_static(
    "accept, authorization, content-type, last-event-id, idempotency-key, acp-connection-id, \
     acp-session-id",
);
const TOLD: HeaderValue =
    HeaderValue::from_static("acp-connection-id, acp-session-id, idempotency-replayed");
/// Seconds for which a browser need not ask again.
const REMEMBER: HeaderValue = HeaderValue::from_static("600");

/// What a page of a friend may do.
pub(super) fn permit(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ASKED);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, REMEMBER);
}

/// Lets the page of a friend read an answer: this page by its name, never all of them.
pub(super) fn reveal(headers: &mut HeaderMap, friend: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, friend);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, TOLD);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(origins: &[&str]) -> Page {
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        let friends = ["https://console.example.org", "http://a.example:8080"];
        let friends: Vec<Origin> = friends.iter().map(|it| it.parse().unwrap()).collect();
        page(&headers, "http://localhost:7456", &friends)
    }

    #[test]
    fn a_friend_is_known_by_scheme_host_and_port() {
        assert_eq!(of(&[]), Page::None);
        for good in
            ["https://console.example.org", "http://A.example:8080", "http://localhost:7456"]
        {
            assert_eq!(of(&[good]), Page::Friend(HeaderValue::from_static(good)), "{good}");
        }
        for bad in [
            "",
            "null",
            "*",
            "http://console.example.org",
            "https://console.example.org.evil.example",
            "https://console.example.org:8443",
            "https://console.example.org/",
            "https://evil.example",
            "http://localhost",
            "http://localhost:7457",
            "https://localhost:7456",
            "https://console.example.org, https://evil.example",
        ] {
            assert_eq!(of(&[bad]), Page::Foreign, "{bad}");
        }
        let twice = ["https://console.example.org"; 2];
        assert_eq!(of(&twice), Page::Foreign, "who says it twice is no browser");
    }

    #[test]
    fn an_origin_of_the_configuration_is_written_as_a_browser_does() {
        let parse = |text: &str| text.parse::<Origin>().map(|it| it.to_string());
        assert_eq!(
            parse("https://Console.example.org:443"),
            Ok("https://console.example.org".into())
        );
        assert_eq!(parse("http://a:80"), Ok("http://a".into()));
        assert_eq!(parse("http://[::1]:8080"), Ok("http://[::1]:8080".into()));
        assert_eq!(parse("tauri://localhost"), Ok("tauri://localhost".into()));
        for bad in
            ["", "*", "null", "a.example", "https://", "https://a/", "https://a/b", "https://*"]
        {
            assert!(parse(bad).unwrap_err().to_string().contains("is no origin"), "{bad}");
        }
    }
}

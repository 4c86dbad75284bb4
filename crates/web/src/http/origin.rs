//! The web pages that may send requests. A browser names the page of a request in `Origin`; other
//! clients send no `Origin`.

use axum::http::{HeaderMap, HeaderValue, Method, header};
use std::fmt;
use std::str::FromStr;

/// `scheme://host[:port]` as a browser writes it: in lowercase, without the default port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebOrigin(String);

/// A text that is not a valid origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid origin `{text}`: write scheme, host and port as the browser shows them, without a path \
     or a trailing slash, as in `https://console.example.org`"
)]
pub struct InvalidOrigin {
    text: String,
}

impl FromStr for WebOrigin {
    type Err = InvalidOrigin;

    fn from_str(text: &str) -> Result<WebOrigin, InvalidOrigin> {
        let lower = text.to_ascii_lowercase();
        let good = |it: u8| it.is_ascii_alphanumeric() || b"-_.:[]".contains(&it);
        let without = |port: &'static str| lower.strip_suffix(port).unwrap_or(&lower);
        let (origin, rest) = match lower.split_once("://") {
            Some(("http", rest)) => (without(":80"), rest),
            Some(("https", rest)) => (without(":443"), rest),
            // A desktop application with an embedded browser.
            Some((scheme, rest)) if !scheme.is_empty() && scheme.bytes().all(good) => {
                (lower.as_str(), rest)
            }
            _ => ("", ""),
        };
        if rest.is_empty() || !rest.bytes().all(good) {
            return Err(InvalidOrigin { text: text.to_owned() });
        }
        Ok(WebOrigin(origin.to_owned()))
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The origin of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OriginCheck {
    /// None: the client is not a browser.
    None,
    /// An allowed origin, as it was written.
    Allowed(HeaderValue),
    Foreign,
}

/// The origin of a request. `own` is our own origin, as `scheme://host[:port]`.
pub(super) fn request_origin(headers: &HeaderMap, own: &str, allowed: &[WebOrigin]) -> OriginCheck {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let origin = match (origins.next(), origins.next()) {
        (None, _) => return OriginCheck::None,
        (Some(origin), None) => origin,
        (Some(_), Some(_)) => return OriginCheck::Foreign,
    };
    // `null` is the origin of every sandboxed page, so it is never allowed.
    let is_allowed = origin.to_str().is_ok_and(|text| {
        let is_listed = |it: &WebOrigin| it.0.eq_ignore_ascii_case(text);
        text.eq_ignore_ascii_case(own) || allowed.iter().any(is_listed)
    });
    if is_allowed { OriginCheck::Allowed(origin.clone()) } else { OriginCheck::Foreign }
}

/// Whether this is a CORS preflight request of a browser.
pub(super) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS
        && headers.contains_key(header::ORIGIN)
        && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

const ALLOWED_METHODS: HeaderValue = HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE");
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "accept, authorization, content-type, last-event-id, idempotency-key, acp-connection-id, \
     acp-session-id",
);
const EXPOSED_HEADERS: HeaderValue =
    HeaderValue::from_static("acp-connection-id, acp-session-id, idempotency-replayed");
/// How many seconds a browser may cache the preflight response.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// Adds the headers of a preflight response.
pub(super) fn add_preflight_headers(headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, ALLOWED_METHODS);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
}

/// Lets a page of an allowed origin read a response: this origin, never all of them.
pub(super) fn add_cors_headers(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin_of(origins: &[&str]) -> OriginCheck {
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(header::ORIGIN, HeaderValue::from_str(origin).unwrap());
        }
        let allowed = ["https://console.example.org", "http://a.example:8080"];
        let allowed: Vec<WebOrigin> = allowed.iter().map(|it| it.parse().unwrap()).collect();
        request_origin(&headers, "http://localhost:7456", &allowed)
    }

    #[test]
    fn allowed_origin_matches_scheme_host_and_port() {
        assert_eq!(origin_of(&[]), OriginCheck::None);
        for good in
            ["https://console.example.org", "http://A.example:8080", "http://localhost:7456"]
        {
            let expected = OriginCheck::Allowed(HeaderValue::from_static(good));
            assert_eq!(origin_of(&[good]), expected, "{good}");
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
            assert_eq!(origin_of(&[bad]), OriginCheck::Foreign, "{bad}");
        }
        let twice = ["https://console.example.org"; 2];
        assert_eq!(origin_of(&twice), OriginCheck::Foreign, "a browser sends it once");
    }

    #[test]
    fn origin_of_the_configuration_is_normalized_like_a_browser() {
        let parse = |text: &str| text.parse::<WebOrigin>().map(|it| it.to_string());
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
            assert!(parse(bad).unwrap_err().to_string().contains("invalid origin"), "{bad}");
        }
    }
}

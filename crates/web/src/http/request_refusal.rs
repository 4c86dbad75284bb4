//! Why a request is refused, and its response.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

/// Why the request guard refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestRefusal {
    #[error("the request must name one host, in `Host` and, if it has one there, in its target")]
    AmbiguousHost,
    #[error(
        "unknown host: use `localhost` or an IP address of this machine, or add the name to `hosts` \
         under [http] in config.toml"
    )]
    UnknownHost,
    #[error(
        "pages of this origin may not use Jackfield: to allow it, add it to `origins` under [http] \
         in config.toml"
    )]
    ForeignOrigin,
    #[error(
        "a token is required: send `Authorization: Bearer TOKEN`, or from a browser's WebSocket the \
         subprotocol `jackfield.bearer.TOKEN` beside `acp`, never in the URL; `jackfield token` \
         prints it from the file `token` in the state directory"
    )]
    NoToken,
    #[error(
        "the token is wrong: `jackfield token` prints the right one from the file `token` in the \
         state directory of the user who runs the daemon"
    )]
    WrongToken,
    #[error(
        "the login of this browser has expired or was revoked: run `jackfield console` for another \
         one"
    )]
    WrongCookie,
    #[error(
        "a cookie is accepted only from pages of this server: a program sends a token, and a browser \
         `Sec-Fetch-Site`, `Origin` or `X-Jackfield-Console`"
    )]
    NotOwnPage,
    #[error("the body of the request exceeds the limit of 16 MiB")]
    TooLong,
    #[error("the limit of connections is reached: close some, or try again later")]
    Full,
}

impl RequestRefusal {
    /// Whether the request presented nothing that authenticates it.
    pub(super) fn is_unauthenticated(self) -> bool {
        self.status() == StatusCode::UNAUTHORIZED
    }

    fn status(self) -> StatusCode {
        match self {
            RequestRefusal::AmbiguousHost => StatusCode::BAD_REQUEST,
            RequestRefusal::UnknownHost => StatusCode::MISDIRECTED_REQUEST,
            RequestRefusal::ForeignOrigin | RequestRefusal::NotOwnPage => StatusCode::FORBIDDEN,
            RequestRefusal::NoToken | RequestRefusal::WrongToken | RequestRefusal::WrongCookie => {
                StatusCode::UNAUTHORIZED
            }
            RequestRefusal::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            RequestRefusal::Full => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn code(self) -> &'static str {
        match self {
            RequestRefusal::AmbiguousHost => "BAD_REQUEST",
            RequestRefusal::UnknownHost => "MISDIRECTED",
            RequestRefusal::ForeignOrigin | RequestRefusal::NotOwnPage => "FORBIDDEN",
            RequestRefusal::NoToken | RequestRefusal::WrongToken | RequestRefusal::WrongCookie => {
                "UNAUTHORIZED"
            }
            RequestRefusal::TooLong => "PAYLOAD_TOO_LARGE",
            RequestRefusal::Full => "OVERLOADED",
        }
    }

    /// The response. It closes an HTTP/1 connection, because it would be risky to decide whether
    /// the following bytes are a body or a second request.
    pub(super) fn into_response(self, version: Version) -> Response {
        let body = json!({ "error": { "code": self.code(), "message": self.to_string() } });
        let mut response = (self.status(), Json(body)).into_response();
        let headers = response.headers_mut();
        let challenge = match self {
            RequestRefusal::NoToken | RequestRefusal::WrongCookie => {
                Some(r#"Bearer realm="jackfield""#)
            }
            RequestRefusal::WrongToken => {
                Some(r#"Bearer realm="jackfield", error="invalid_token""#)
            }
            _ => None,
        };
        if let Some(challenge) = challenge {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        if version < Version::HTTP_2 {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

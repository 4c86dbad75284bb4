//! Why a request gets no further, and how that is said.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

/// Why the porter does not let a request in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error("the request must name one host, in `Host` and, if it has one there, in its target")]
    UnclearHost,
    #[error(
        "nobody here has the name that this request is for: use `localhost` or an IP address of \
         this machine, or add the name to `hosts` under [http] in config.toml"
    )]
    StrangeHost,
    #[error(
        "pages of this origin may not talk to Jackfield: if yours is to, add it to `origins` under \
         [http] in config.toml"
    )]
    ForeignPage,
    #[error(
        "a token is needed: send `Authorization: Bearer TOKEN`, or from a browser's WebSocket the \
         subprotocol `jackfield.bearer.TOKEN` beside `acp`, never in the URL; `jackfield token` \
         prints it, from the file `token` in the state directory"
    )]
    NoToken,
    #[error(
        "the token is wrong: `jackfield token` prints the one that is right, from the file `token` \
         in the state directory of the user who runs the daemon"
    )]
    WrongToken,
    #[error("the body of a request may have 16 MiB at most")]
    TooLong,
    #[error("there are too many connections already: close some, or try again later")]
    Full,
}

impl Refused {
    fn status(self) -> StatusCode {
        match self {
            Refused::UnclearHost => StatusCode::BAD_REQUEST,
            Refused::StrangeHost => StatusCode::MISDIRECTED_REQUEST,
            Refused::ForeignPage => StatusCode::FORBIDDEN,
            Refused::NoToken | Refused::WrongToken => StatusCode::UNAUTHORIZED,
            Refused::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Refused::Full => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    fn code(self) -> &'static str {
        match self {
            Refused::UnclearHost => "BAD_REQUEST",
            Refused::StrangeHost => "MISDIRECTED",
            Refused::ForeignPage => "FORBIDDEN",
            Refused::NoToken | Refused::WrongToken => "UNAUTHORIZED",
            Refused::TooLong => "PAYLOAD_TOO_LARGE",
            Refused::Full => "OVERLOADED",
        }
    }

    /// The answer. What else is on its way over the connection is not looked at: whether it is a
    /// body or a second request is not worth the risk.
    pub(super) fn answer(self, version: Version) -> Response {
        let body = json!({ "error": { "code": self.code(), "message": self.to_string() } });
        let mut response = (self.status(), Json(body)).into_response();
        let headers = response.headers_mut();
        let challenge = match self {
            Refused::NoToken => Some(r#"Bearer realm="jackfield""#),
            Refused::WrongToken => Some(r#"Bearer realm="jackfield", error="invalid_token""#),
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

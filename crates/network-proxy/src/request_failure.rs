//! The responses of the proxy itself to requests that it does not forward.

use crate::proxy_report::RefusalReason;
use crate::target_host::{HostError, HostPort};
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};

/// A body from a host, or one of ours.
pub(crate) type ProxyBody = Either<Incoming, Full<Bytes>>;

/// Why a request was not forwarded, or has no response.
#[derive(Debug)]
pub(crate) enum RequestFailure {
    /// The request is not one for a proxy, or could be understood in several ways.
    Malformed(&'static str),
    InvalidHost(HostError),
    Refused {
        target: HostPort,
        reason: RefusalReason,
    },
    /// The resolver or the host failed.
    Unreachable {
        target: HostPort,
        error: String,
    },
    TimedOut {
        target: HostPort,
    },
}

impl RequestFailure {
    fn status(&self) -> StatusCode {
        match self {
            RequestFailure::Malformed(_) | RequestFailure::InvalidHost(_) => {
                StatusCode::BAD_REQUEST
            }
            RequestFailure::Refused { .. } => StatusCode::FORBIDDEN,
            RequestFailure::Unreachable { .. } => StatusCode::BAD_GATEWAY,
            RequestFailure::TimedOut { .. } => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// Text for the process: what happened, why, and what it can do.
    fn to_text(&self) -> String {
        match self {
            RequestFailure::Malformed(problem) => {
                format!("The proxy of the sandbox refused the request: {problem}.\n")
            }
            RequestFailure::InvalidHost(error) => {
                let way_out = RefusalReason::InvalidHost(*error).way_out();
                format!(
                    "The proxy of the sandbox refused the request.\nReason: {error}.\nWhat to do: {way_out}.\n"
                )
            }
            RequestFailure::Refused { target, reason } => format!(
                "The sandbox refused the connection to `{target}`.\nReason: {reason}.\nWhat to do: {}.\n",
                reason.way_out()
            ),
            RequestFailure::Unreachable { target, error } => format!(
                "The sandbox allows `{target}`, but it cannot be reached.\nReason: {error}.\n"
            ),
            RequestFailure::TimedOut { target } => {
                format!("The sandbox allows `{target}`, but the connection to it took too long.\n")
            }
        }
    }

    /// Programs that print only the status line of a proxy show this.
    fn reason_phrase(&self) -> Option<ReasonPhrase> {
        matches!(self, RequestFailure::Refused { .. })
            .then(|| ReasonPhrase::from_static(b"Host refused by the sandbox"))
    }

    /// The connection closes afterwards: what follows on it may be the rest of a body or of a tunnel.
    pub(crate) fn into_response(self) -> Response<ProxyBody> {
        let mut response = Response::new(Either::Right(Full::from(self.to_text())));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        if let Some(phrase) = self.reason_phrase() {
            response.extensions_mut().insert(phrase);
        }
        response
    }
}

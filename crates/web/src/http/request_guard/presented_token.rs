//! Reads the tokens that a request presents.

use axum::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use axum::http::{HeaderMap, HeaderValue};
use jackfield_transport::{ClientAuthenticator, PeerIdentity};

/// The tokens that a request presents.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PresentedToken {
    Missing,
    /// An unknown token, or tokens of two identities.
    Wrong,
    Valid(PeerIdentity),
}

/// The prefix of the token in `Sec-WebSocket-Protocol`, the only header that scripts of a web page
/// can set for a WebSocket.
pub(super) const TOKEN_PROTOCOL_PREFIX: &str = "jackfield.bearer.";

/// Removes the tokens from the headers and identifies them. Several tokens must have the same
/// identity.
pub(super) fn take_token(
    authenticator: &ClientAuthenticator,
    headers: &mut HeaderMap,
) -> PresentedToken {
    let mut presented = PresentedToken::Missing;
    let mut add_token = |token: &str| {
        let next =
            authenticator.identify(token).map_or(PresentedToken::Wrong, PresentedToken::Valid);
        let is_consistent = presented == PresentedToken::Missing || presented == next;
        presented = if is_consistent { next } else { PresentedToken::Wrong };
    };
    for value in headers.get_all(AUTHORIZATION) {
        add_token(bearer_token(value).unwrap_or_default());
    }
    let mut others: Vec<&str> = Vec::new();
    for value in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
        for protocol in value.to_str().unwrap_or_default().split(',').map(str::trim) {
            match protocol.strip_prefix(TOKEN_PROTOCOL_PREFIX) {
                Some(token) => add_token(token),
                None => others.push(protocol),
            }
        }
    }
    let others = HeaderValue::try_from(others.join(", ")).ok().filter(|it| !it.is_empty());
    headers.remove(AUTHORIZATION);
    headers.remove(SEC_WEBSOCKET_PROTOCOL);
    if let Some(others) = others {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, others);
    }
    presented
}

fn bearer_token(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim_start())
}

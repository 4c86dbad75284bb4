//! Decides which requests are accepted. Every request is checked first for its host, then for its
//! origin, then for its token; nothing else happens before.

mod presented_token;
#[cfg(test)]
mod tests;

use self::presented_token::{PresentedToken, take_token};
use super::host::{self, HttpHost, RequestHost};
use super::limits::ACP_BODY_BYTES_MAX;
use super::origin::{self, OriginCheck, WebOrigin};
use super::request_refusal::RequestRefusal;
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};
use jackfield_transport::{ClientAuthenticator, PeerIdentity, TenantIdentity};
use std::net::IpAddr;

/// The conditions that every request must satisfy.
#[derive(Debug, Clone)]
pub struct RequestGuard {
    pub authenticator: ClientAuthenticator,
    /// Accepted hosts in addition to this machine's own names.
    pub hosts: Vec<HttpHost>,
    /// Accepted origins in addition to our own pages.
    pub origins: Vec<WebOrigin>,
}

/// The connection over which a request arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestArrival {
    pub(super) scheme: &'static str,
    /// Our own address, to which the client connected.
    pub(super) local: IpAddr,
}

/// The decision about a request.
#[derive(Debug)]
pub(super) struct GuardDecision {
    /// The origin that may read the response.
    pub(super) origin: Option<HeaderValue>,
    pub(super) access: Result<RequestAccess, RequestRefusal>,
}

/// How an accepted request is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestAccess {
    /// It presented the operator's token.
    Operator,
    /// It presented the token of a tenant.
    Tenant(TenantIdentity),
    /// It is for a public route.
    Public,
    /// It is a CORS preflight of a browser.
    Preflight,
}

/// Routes without a token: for monitoring, and the way to the console.
const PUBLIC_PATHS: [&str; 4] = ["/healthz", "/readyz", "/", "/console"];

/// Everything below is a public file of the console. The cookie of a login is sent to all paths, but
/// the service worker of the console handles only these.
pub(crate) const CONSOLE_PATH: &str = "/console/";

impl RequestGuard {
    /// Checks a request and removes the token from it, because no route needs it.
    pub(super) fn check_request(&self, arrival: RequestArrival, head: &mut Parts) -> GuardDecision {
        let refused = |why| GuardDecision { origin: None, access: Err(why) };
        let (host, written) = match host::request_host(head.version, &head.uri, &head.headers) {
            RequestHost::One(host, written) => (host, written),
            RequestHost::Ambiguous => return refused(RequestRefusal::AmbiguousHost),
        };
        if !self.answers_to(&host, arrival) {
            return refused(RequestRefusal::UnknownHost);
        }
        let own = format!("{}://{written}", arrival.scheme);
        let origin = match origin::request_origin(&head.headers, &own, &self.origins) {
            OriginCheck::None => None,
            OriginCheck::Allowed(origin) => Some(origin),
            OriginCheck::Foreign => return refused(RequestRefusal::ForeignOrigin),
        };
        GuardDecision { origin, access: self.authorize(head) }
    }

    fn answers_to(&self, host: &HttpHost, arrival: RequestArrival) -> bool {
        // A page cannot use an IP address for DNS rebinding, so our own address is accepted.
        let is_ours = *host == HttpHost::Ip(arrival.local.to_canonical());
        is_ours || host.is_local() || self.hosts.contains(host)
    }

    fn authorize(&self, head: &mut Parts) -> Result<RequestAccess, RequestRefusal> {
        if origin::is_preflight(&head.method, &head.headers) {
            return Ok(RequestAccess::Preflight);
        }
        let presented = take_token(&self.authenticator, &mut head.headers);
        match presented {
            PresentedToken::Missing if is_public(head) => Ok(RequestAccess::Public),
            PresentedToken::Missing => Err(RequestRefusal::NoToken),
            PresentedToken::Wrong => Err(RequestRefusal::WrongToken),
            PresentedToken::Valid(_) if is_too_long(&head.headers) => Err(RequestRefusal::TooLong),
            PresentedToken::Valid(PeerIdentity::Operator) => Ok(RequestAccess::Operator),
            PresentedToken::Valid(PeerIdentity::Tenant(tenant)) => {
                Ok(RequestAccess::Tenant(tenant))
            }
        }
    }
}

fn is_public(head: &Parts) -> bool {
    let (path, reads) = (head.uri.path(), matches!(head.method, Method::GET | Method::HEAD));
    reads && (PUBLIC_PATHS.contains(&path) || path.starts_with(CONSOLE_PATH))
}

fn is_too_long(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    length.is_some_and(|it| it.parse::<usize>().map_or(true, |it| ACP_BODY_BYTES_MAX < it))
}

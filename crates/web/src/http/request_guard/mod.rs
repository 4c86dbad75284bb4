//! Decides which requests are accepted. Every request is checked first for its host, then for its
//! origin, then for its token or the cookie of its device; nothing else happens before.

mod own_page;
mod presented_token;
#[cfg(test)]
mod tests;

use self::own_page::is_from_own_page;
use self::presented_token::{PresentedToken, take_token};
use super::host::{self, HttpHost, RequestHost};
use super::limits::ACP_BODY_BYTES_MAX;
use super::origin::{self, OriginCheck, WebOrigin};
use super::request_refusal::RequestRefusal;
use crate::login::{DeviceCookie, DeviceLogins, DeviceSession};
use axum::http::header::{CONTENT_LENGTH, COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};
use jackfield_transport::{ClientAuthenticator, PeerIdentity, TenantIdentity};
use std::net::IpAddr;
use std::sync::Arc;

/// The conditions that every request must satisfy.
#[derive(Debug, Clone)]
pub struct RequestGuard {
    pub authenticator: ClientAuthenticator,
    /// The browsers that have logged in.
    pub logins: Arc<DeviceLogins>,
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
    /// The device whose cookie the request presents.
    pub(super) device: Option<DeviceSession>,
}

/// How an accepted request is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestAccess {
    /// It presented the operator's token or a cookie of the operator's device.
    Operator,
    /// It presented the token of a tenant or a cookie of its device.
    Tenant(TenantIdentity),
    /// It is for a public route.
    Public,
    /// It is a CORS preflight of a browser.
    Preflight,
}

/// The cookie of a device that a request presents.
#[derive(Debug)]
enum PresentedCookie {
    Missing,
    /// It is unknown, expired or revoked, or there are two.
    Wrong,
    Valid(PeerIdentity, DeviceSession),
}

/// Routes without a token: for monitoring, and the way to the console.
const PUBLIC_PATHS: [&str; 4] = ["/healthz", "/readyz", "/", "/console"];

/// The login, which a page sends before it has a cookie.
const LOGIN_PATH: &str = "/api/login";
/// Everything below is a public file of the console. The cookie of a login is sent to all paths, but
/// the service worker of the console handles only these.
pub(crate) const CONSOLE_PATH: &str = "/console/";

impl RequestGuard {
    /// Checks a request and removes token and cookies from it, because no route needs them.
    pub(super) fn check_request(&self, arrival: RequestArrival, head: &mut Parts) -> GuardDecision {
        let refused = |why| GuardDecision { origin: None, access: Err(why), device: None };
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
        if origin::is_preflight(&head.method, &head.headers) {
            return GuardDecision { origin, access: Ok(RequestAccess::Preflight), device: None };
        }
        let is_own_page = is_from_own_page(&head.headers, &own);
        let token = take_token(&self.authenticator, &mut head.headers);
        let cookie = self.take_cookie(arrival, &mut head.headers);
        let (access, device) = match token {
            PresentedToken::Missing => authorize_page(head, cookie, is_own_page),
            PresentedToken::Wrong => (Err(RequestRefusal::WrongToken), None),
            PresentedToken::Valid(identity) => (Ok(identity.into()), None),
        };
        let is_limited = matches!(access, Ok(RequestAccess::Operator | RequestAccess::Tenant(_)));
        let access = match access {
            Ok(_) if is_limited && is_too_long(&head.headers) => Err(RequestRefusal::TooLong),
            access => access,
        };
        GuardDecision { origin, access, device }
    }

    fn answers_to(&self, host: &HttpHost, arrival: RequestArrival) -> bool {
        // A page cannot use an IP address for DNS rebinding, so our own address is accepted.
        let is_ours = *host == HttpHost::Ip(arrival.local.to_canonical());
        is_ours || host.is_local() || self.hosts.contains(host)
    }

    fn take_cookie(&self, arrival: RequestArrival, headers: &mut HeaderMap) -> PresentedCookie {
        if !headers.contains_key(COOKIE) {
            return PresentedCookie::Missing;
        }
        let is_tls = arrival.scheme == "https";
        match DeviceCookie::take(headers, &self.logins.cookie_id(), is_tls) {
            DeviceCookie::Missing => PresentedCookie::Missing,
            DeviceCookie::Ambiguous => PresentedCookie::Wrong,
            DeviceCookie::One(id, secret) => self
                .logins
                .authenticate(&id, &secret)
                .map_or(PresentedCookie::Wrong, |(identity, device)| {
                    PresentedCookie::Valid(identity, device)
                }),
        }
    }
}

impl From<PeerIdentity> for RequestAccess {
    fn from(identity: PeerIdentity) -> RequestAccess {
        match identity {
            PeerIdentity::Operator => RequestAccess::Operator,
            PeerIdentity::Tenant(tenant) => RequestAccess::Tenant(tenant),
        }
    }
}

/// Decides about a request without a token.
fn authorize_page(
    head: &Parts,
    cookie: PresentedCookie,
    is_own_page: bool,
) -> (Result<RequestAccess, RequestRefusal>, Option<DeviceSession>) {
    let is_login = head.method == Method::POST && head.uri.path() == LOGIN_PATH;
    match cookie {
        // A browser that is a device may log in again.
        PresentedCookie::Valid(_, device) if is_login && is_own_page => {
            (Ok(RequestAccess::Public), Some(device))
        }
        PresentedCookie::Valid(identity, device) if is_own_page => {
            (Ok(identity.into()), Some(device))
        }
        _ if is_login && is_own_page || is_public(head) => (Ok(RequestAccess::Public), None),
        PresentedCookie::Missing if !is_login => (Err(RequestRefusal::NoToken), None),
        PresentedCookie::Wrong if !is_login => (Err(RequestRefusal::WrongCookie), None),
        _ => (Err(RequestRefusal::NotOwnPage), None),
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

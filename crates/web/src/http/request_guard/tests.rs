//! Tests of the request guard.

use super::presented_token::TOKEN_PROTOCOL_PREFIX;
use super::*;
use crate::login::LoginOwner;
use axum::http::Request;
use bytes::Bytes;
use jackfield_transport::{BearerToken, TokenFile};
use std::net::Ipv4Addr;

const TENANT_TOKEN: &str = "a token of a tenant";

struct GuardBench {
    _dir: tempfile::TempDir,
    guard: RequestGuard,
    logins: Arc<DeviceLogins>,
    token: BearerToken,
}

impl GuardBench {
    fn new() -> GuardBench {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let file = TokenFile::open(&path).unwrap();
        let token = BearerToken::read(&path).unwrap();
        let hosts = vec!["build.example.org".parse().unwrap()];
        let origins = vec!["https://console.example.org".parse().unwrap()];
        let authenticator = ClientAuthenticator::new(
            file,
            Some(Arc::new(|it| (it == TENANT_TOKEN).then(GuardBench::tenant))),
        );
        let logins = Arc::new(DeviceLogins::new(
            &dir.path().join("devices.json"),
            authenticator.clone(),
            Arc::new(|name| (name == "acme").then(GuardBench::tenant)),
        ));
        let guard = RequestGuard { authenticator, logins: logins.clone(), hosts, origins };
        GuardBench { _dir: dir, guard, logins, token }
    }

    fn tenant() -> TenantIdentity {
        TenantIdentity { name: "acme".into(), binding: Bytes::from_static(b"{}") }
    }

    fn token(&self) -> &str {
        self.token.reveal()
    }

    /// Checks a request with these headers. Also returns the rest of its head.
    fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> (GuardDecision, Parts) {
        let request = Request::builder().method(method).uri(target);
        let add = |it: axum::http::request::Builder, (name, value): &(&str, &str)| {
            it.header(*name, *value)
        };
        let request = headers.iter().fold(request, add).body(()).unwrap();
        let (mut head, ()) = request.into_parts();
        let local = Ipv4Addr::new(10, 0, 0, 7).into();
        let decision =
            self.guard.check_request(RequestArrival { scheme: "http", local }, &mut head);
        (decision, head)
    }

    fn access(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<RequestAccess, RequestRefusal> {
        self.ask(method, target, headers).0.access
    }
}

#[test]
fn token_is_accepted_and_removed() {
    let bench = GuardBench::new();
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let presented = format!("{scheme} {}", bench.token());
        let headers = [("host", "localhost"), ("authorization", &presented)];
        let (decision, head) = bench.ask("POST", "/acp", &headers);
        assert_eq!(decision.access, Ok(RequestAccess::Operator));
        assert!(!head.headers.contains_key("authorization"));
    }
}

#[test]
fn tenant_is_accepted_and_two_identities_are_refused() {
    let bench = GuardBench::new();
    let own = format!("Bearer {}", bench.token());
    let tenant = format!("Bearer {TENANT_TOKEN}");
    let access = |presented: &[&str]| {
        let headers: Vec<_> = presented.iter().map(|it| ("authorization", *it)).collect();
        bench.access("GET", "/api/x", &[&[("host", "localhost")], &headers[..]].concat())
    };
    assert_eq!(access(&[&tenant]), Ok(RequestAccess::Tenant(GuardBench::tenant())));
    assert_eq!(access(&[&tenant, &tenant]), Ok(RequestAccess::Tenant(GuardBench::tenant())));
    assert_eq!(access(&[&tenant, &own]), Err(RequestRefusal::WrongToken));
    assert_eq!(access(&[&own, &tenant, &own]), Err(RequestRefusal::WrongToken));
}

#[test]
fn only_the_complete_bearer_token_is_accepted() {
    let bench = GuardBench::new();
    let token = bench.token().to_owned();
    let good = format!("Bearer {token}");
    for wrong in [
        String::new(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        token.clone(),
        format!("Basic {token}"),
        format!("Bearer {}", &token[..63]),
        format!("Bearer {token}0"),
        format!("Bearer {}", token.repeat(400)),
        format!("Bearer {}", "0".repeat(64)),
        format!("Bearer {token}, Bearer {token}"),
    ] {
        let headers = [("host", "localhost"), ("authorization", &wrong)];
        assert_eq!(
            bench.access("GET", "/api/x", &headers),
            Err(RequestRefusal::WrongToken),
            "{wrong}"
        );
        let twice = [("host", "localhost"), ("authorization", &good), ("authorization", &wrong)];
        assert_eq!(
            bench.access("GET", "/api/x", &twice),
            Err(RequestRefusal::WrongToken),
            "{wrong}"
        );
    }
    let query = format!("/api/x?token={token}&access_token={token}");
    assert_eq!(bench.access("GET", &query, &[("host", "localhost")]), Err(RequestRefusal::NoToken));
}

#[test]
fn websocket_presents_the_token_among_its_protocols() {
    let bench = GuardBench::new();
    let secret = format!("{TOKEN_PROTOCOL_PREFIX}{}", bench.token());
    let left = |offered: &str| {
        let headers = [("host", "localhost"), ("sec-websocket-protocol", offered)];
        let (decision, head) = bench.ask("GET", "/acp", &headers);
        let left = head.headers.get("sec-websocket-protocol").cloned();
        (decision.access, left.map(|it| it.to_str().unwrap().to_owned()))
    };
    let operator = || Ok(RequestAccess::Operator);
    assert_eq!(left(&format!("acp, {secret}")), (operator(), Some("acp".into())));
    assert_eq!(left(&format!("{secret},acp,more")), (operator(), Some("acp, more".into())));
    assert_eq!(left(&secret), (operator(), None));
    assert_eq!(
        left(&format!("acp, {secret}0")),
        (Err(RequestRefusal::WrongToken), Some("acp".into()))
    );
    assert_eq!(left("acp"), (Err(RequestRefusal::NoToken), Some("acp".into())));
}

#[test]
fn health_routes_and_the_console_are_public_for_accepted_hosts() {
    let bench = GuardBench::new();
    let host = [("host", "localhost")];
    for target in
        ["/healthz", "/readyz", "/healthz?verbose", "/", "/console", "/console/", "/console/x.js"]
    {
        assert_eq!(bench.access("GET", target, &host), Ok(RequestAccess::Public), "{target}");
        assert_eq!(bench.access("HEAD", target, &host), Ok(RequestAccess::Public), "{target}");
        assert_eq!(bench.access("POST", target, &host), Err(RequestRefusal::NoToken), "{target}");
        let foreign = [("host", "evil.example")];
        assert_eq!(bench.access("GET", target, &foreign), Err(RequestRefusal::UnknownHost));
    }
    for target in
        ["/metrics", "/healthz/", "/healthz/../api/x", "//healthz", "/HEALTHZ", "/consoles", "//"]
    {
        assert_eq!(bench.access("GET", target, &host), Err(RequestRefusal::NoToken), "{target}");
    }
    let wrong = [("host", "localhost"), ("authorization", "Bearer x")];
    assert_eq!(bench.access("GET", "/healthz", &wrong), Err(RequestRefusal::WrongToken));
}

#[test]
fn unknown_host_is_refused_even_with_a_valid_token() {
    let bench = GuardBench::new();
    let presented = format!("Bearer {}", bench.token());
    let with = |host: &str| {
        bench.access("GET", "/api/x", &[("host", host), ("authorization", &presented)])
    };
    for good in ["localhost:1", "127.0.0.1", "[::1]:9", "Build.example.org:8443", "10.0.0.7:7456"] {
        assert_eq!(with(good), Ok(RequestAccess::Operator), "{good}");
    }
    for bad in ["evil.example", "localhost.evil.example", "10.0.0.8", "x.build.example.org"] {
        assert_eq!(with(bad), Err(RequestRefusal::UnknownHost), "{bad}");
    }
    assert_eq!(with("localhost#evil"), Err(RequestRefusal::AmbiguousHost));
}

#[test]
fn foreign_origin_is_refused_for_every_method() {
    let bench = GuardBench::new();
    let presented = format!("Bearer {}", bench.token());
    for origin in ["https://evil.example", "null", "http://127.0.0.1:7456"] {
        for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"] {
            let headers = [
                ("host", "localhost:7456"),
                ("authorization", presented.as_str()),
                ("origin", origin),
                ("access-control-request-method", "POST"),
            ];
            let (decision, _) = bench.ask(method, "/acp", &headers);
            assert_eq!(decision.access, Err(RequestRefusal::ForeignOrigin), "{method} {origin}");
            assert_eq!(decision.origin, None);
        }
    }
}

#[test]
fn allowed_origins_may_send_preflights_and_read_responses() {
    let bench = GuardBench::new();
    for origin in ["https://console.example.org", "http://localhost:7456"] {
        let page = Some(HeaderValue::from_static(origin));
        let mut headers = vec![("host", "localhost:7456"), ("origin", origin)];
        let (refused, _) = bench.ask("POST", "/acp", &headers);
        assert_eq!((refused.access, refused.origin), (Err(RequestRefusal::NoToken), page.clone()));
        headers.push(("access-control-request-method", "POST"));
        let (asked, _) = bench.ask("OPTIONS", "/acp", &headers);
        assert_eq!((asked.access, asked.origin), (Ok(RequestAccess::Preflight), page));
    }
    let program = [("host", "localhost"), ("access-control-request-method", "POST")];
    assert_eq!(bench.access("OPTIONS", "/acp", &program), Err(RequestRefusal::NoToken));
}

#[test]
fn oversized_body_is_refused_before_it_is_read() {
    let bench = GuardBench::new();
    let presented = format!("Bearer {}", bench.token());
    let with = |length: &str| {
        let headers =
            [("host", "localhost"), ("authorization", &presented), ("content-length", length)];
        bench.access("POST", "/acp", &headers)
    };
    assert_eq!(with("16777216"), Ok(RequestAccess::Operator));
    for long in ["16777217", "99999999999999999999999"] {
        assert_eq!(with(long), Err(RequestRefusal::TooLong));
    }
}

/// A cookie header of a new device.
fn log_in(bench: &GuardBench, owner: LoginOwner) -> String {
    let code = bench.logins.create_link(owner).unwrap().code;
    let login = bench.logins.log_in(&code, "x", None, Ipv4Addr::LOCALHOST.into()).unwrap();
    format!("jackfield-{}={}.{}", login.cookie_id, login.device.id, login.secret)
}

#[test]
fn cookie_is_accepted_only_from_our_own_page() {
    let bench = GuardBench::new();
    let cookie = log_in(&bench, LoginOwner::Operator);
    let ask = |method: &str, target: &str, more: &[(&str, &str)]| {
        let headers = [("host", "localhost:7456"), ("cookie", cookie.as_str())];
        bench.ask(method, target, &[&headers[..], more].concat())
    };
    let own = ("origin", "http://localhost:7456");
    let upgrade = ("upgrade", "websocket");
    for proof in [own, ("sec-fetch-site", "same-origin"), ("x-jackfield-console", "1")] {
        let (decision, head) = ask("GET", "/api/x", &[proof]);
        assert_eq!(decision.access, Ok(RequestAccess::Operator), "{proof:?}");
        assert!(decision.device.is_some() && !head.headers.contains_key("cookie"));
        assert_eq!(ask("GET", "/acp", &[proof, upgrade]).0.access, Ok(RequestAccess::Operator));
    }
    let refused = Err(RequestRefusal::NotOwnPage);
    for target in ["/api/x", "/acp"] {
        for method in ["GET", "POST", "DELETE"] {
            assert_eq!(ask(method, target, &[]).0.access, refused, "{method} {target}");
            assert_eq!(ask(method, target, &[upgrade]).0.access, refused, "{method} {target}");
            for site in ["same-site", "cross-site", "none"] {
                let (decision, _) = ask(method, target, &[own, ("sec-fetch-site", site)]);
                assert_eq!(decision.access, refused, "{method} {target} {site}");
                assert!(decision.device.is_none());
            }
            let listed = ("origin", "https://console.example.org");
            assert_eq!(ask(method, target, &[listed]).0.access, refused, "a listed page");
            let other_port = ("origin", "http://localhost:9999");
            let foreign = Err(RequestRefusal::ForeignOrigin);
            assert_eq!(ask(method, target, &[other_port]).0.access, foreign);
        }
    }
}

#[test]
fn wrong_cookie_is_refused_and_does_not_hide_public_files() {
    let bench = GuardBench::new();
    let cookie = log_in(&bench, LoginOwner::Operator);
    let own = ("sec-fetch-site", "same-origin");
    let ask = |target: &str, cookie: &str| {
        bench.access("GET", target, &[("host", "localhost"), ("cookie", cookie), own])
    };
    let other = log_in(&bench, LoginOwner::Tenant("acme".into()));
    for wrong in [format!("{cookie}x"), format!("{cookie}; {other}")] {
        assert_eq!(ask("/api/x", &wrong), Err(RequestRefusal::WrongCookie), "{wrong}");
        assert_eq!(ask("/console/", &wrong), Ok(RequestAccess::Public), "{wrong}");
    }
    assert_eq!(ask("/api/x", "other=1"), Err(RequestRefusal::NoToken));
    assert_eq!(ask("/api/x", &other), Ok(RequestAccess::Tenant(GuardBench::tenant())));
    let wrong_token = [("host", "localhost"), ("cookie", &*cookie), own];
    let wrong_token = [&wrong_token[..], &[("authorization", "Bearer x")]].concat();
    let refused = Err(RequestRefusal::WrongToken);
    assert_eq!(bench.access("GET", "/api/x", &wrong_token), refused, "a token takes precedence");
}

#[test]
fn login_is_public_for_our_own_page_only() {
    let bench = GuardBench::new();
    let cookie = log_in(&bench, LoginOwner::Operator);
    let own = ("origin", "http://localhost");
    let ask = |method: &str, more: &[(&str, &str)]| {
        bench.ask(method, "/api/login", &[&[("host", "localhost")], more].concat()).0
    };
    assert_eq!(ask("POST", &[own]).access, Ok(RequestAccess::Public));
    assert_eq!(
        ask("POST", &[own, ("cookie", "jackfield-0=a.b")]).access,
        Ok(RequestAccess::Public)
    );
    let again = ask("POST", &[own, ("cookie", &cookie)]);
    assert_eq!(again.access, Ok(RequestAccess::Public));
    assert!(again.device.is_some(), "the device that it replaces");
    let refused = Err(RequestRefusal::NotOwnPage);
    assert_eq!(ask("POST", &[]).access, refused);
    assert_eq!(ask("POST", &[("origin", "https://console.example.org")]).access, refused);
    assert_eq!(ask("GET", &[own]).access, Err(RequestRefusal::NoToken));
}

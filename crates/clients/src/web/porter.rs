//! Who is let in. Every request is held against the names we answer to, then against the pages that
//! may talk to us, then against the token; nothing else happens before.

use super::host::{self, Host, Named};
use super::limits::ACP_BODY_BYTES_MAX;
use super::origin::{self, Origin, Page};
use super::refused::Refused;
use crate::keys::{Guest, Keys, Who};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, SEC_WEBSOCKET_PROTOCOL};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method};
use std::net::IpAddr;

/// What every request is held against.
#[derive(Debug, Clone)]
pub struct Porter {
    pub keys: Keys,
    /// Beside this machine's own names.
    pub hosts: Vec<Host>,
    /// Beside our own pages.
    pub origins: Vec<Origin>,
}

/// Where a request came in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) scheme: &'static str,
    /// Ours, on the way that the client came.
    pub(super) local: IpAddr,
}

/// What the porter says.
#[derive(Debug)]
pub(super) struct Verdict {
    /// The page that may read the answer.
    pub(super) page: Option<HeaderValue>,
    pub(super) entry: Result<Entry, Refused>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// It has shown the token.
    Known,
    /// It has shown a token of somebody else.
    Guest(Guest),
    /// It asks for nothing that is kept from anybody.
    Open,
    /// A browser asks what a page may do.
    Preflight,
}

/// What a request shows to be let in.
#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Nothing,
    /// A token that is nobody's, or two that are not of the same.
    Wrong,
    Of(Who),
}

/// Whoever watches over a daemon need not be able to use it.
const OPEN: [&str; 2] = ["/healthz", "/readyz"];
/// The scripts of a page can give their WebSocket no header but this one.
const IN_PROTOCOL: &str = "jackfield.bearer.";

impl Porter {
    /// Looks at a request, and takes the token out of it: nobody further in needs to see it.
    pub(super) fn check(&self, arrival: Arrival, head: &mut Parts) -> Verdict {
        let refused = |why| Verdict { page: None, entry: Err(why) };
        let (host, written) = match host::named(head.version, &head.uri, &head.headers) {
            Named::One(host, written) => (host, written),
            Named::Unclear => return refused(Refused::UnclearHost),
        };
        if !self.answers_to(&host, arrival) {
            return refused(Refused::StrangeHost);
        }
        let own = format!("{}://{written}", arrival.scheme);
        let page = match origin::page(&head.headers, &own, &self.origins) {
            Page::None => None,
            Page::Friend(page) => Some(page),
            Page::Foreign => return refused(Refused::ForeignPage),
        };
        Verdict { page, entry: self.admit(head) }
    }

    fn answers_to(&self, host: &Host, arrival: Arrival) -> bool {
        // An address is nobody's name: whoever uses it has it from the network, not from a page.
        let is_ours = *host == Host::Ip(arrival.local.to_canonical());
        is_ours || host.is_local() || self.hosts.contains(host)
    }

    fn admit(&self, head: &mut Parts) -> Result<Entry, Refused> {
        if origin::is_preflight(&head.method, &head.headers) {
            return Ok(Entry::Preflight);
        }
        let shown = self.take_token(&mut head.headers);
        let reads = matches!(head.method, Method::GET | Method::HEAD);
        match shown {
            Shown::Nothing if reads && OPEN.contains(&head.uri.path()) => Ok(Entry::Open),
            Shown::Nothing => Err(Refused::NoToken),
            Shown::Wrong => Err(Refused::WrongToken),
            Shown::Of(_) if is_too_long(&head.headers) => Err(Refused::TooLong),
            Shown::Of(Who::Operator) => Ok(Entry::Known),
            Shown::Of(Who::Guest(guest)) => Ok(Entry::Guest(guest)),
        }
    }

    /// Whose token was shown. If several were, all must be of the same.
    fn take_token(&self, headers: &mut HeaderMap) -> Shown {
        let mut shown = Shown::Nothing;
        let mut show = |token: &str| {
            let now = self.keys.who(token).map_or(Shown::Wrong, Shown::Of);
            shown =
                if matches!(shown, Shown::Nothing) || shown == now { now } else { Shown::Wrong };
        };
        for value in headers.get_all(AUTHORIZATION) {
            show(bearer(value).unwrap_or_default());
        }
        let mut others: Vec<&str> = Vec::new();
        for value in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
            for protocol in value.to_str().unwrap_or_default().split(',').map(str::trim) {
                match protocol.strip_prefix(IN_PROTOCOL) {
                    Some(token) => show(token),
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
        shown
    }
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim_start())
}

fn is_too_long(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok());
    length.is_some_and(|it| it.parse::<usize>().map_or(true, |it| ACP_BODY_BYTES_MAX < it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Token;
    use crate::token_file::TokenFile;
    use axum::http::Request;
    use bytes::Bytes;
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    const LODGER: &str = "a token of somebody else";

    struct Bench {
        _dir: tempfile::TempDir,
        porter: Porter,
        token: Token,
    }

    impl Bench {
        fn new() -> Bench {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("token");
            let file = TokenFile::open(&path).unwrap();
            let token = Token::read(&path).unwrap();
            let hosts = vec!["build.example.org".parse().unwrap()];
            let origins = vec!["https://console.example.org".parse().unwrap()];
            let keys =
                Keys::new(file, Some(Arc::new(|shown| (shown == LODGER).then(Bench::lodger))));
            Bench { _dir: dir, porter: Porter { keys, hosts, origins }, token }
        }

        fn lodger() -> Guest {
            Guest { name: "lodger".into(), binding: Bytes::from_static(b"{}") }
        }

        fn token(&self) -> &str {
            self.token.reveal()
        }

        /// A request with these headers, and what is left of it.
        fn ask(&self, method: &str, target: &str, headers: &[(&str, &str)]) -> (Verdict, Parts) {
            let request = Request::builder().method(method).uri(target);
            let add = |it: axum::http::request::Builder, (name, value): &(&str, &str)| {
                it.header(*name, *value)
            };
            let request = headers.iter().fold(request, add).body(()).unwrap();
            let (mut head, ()) = request.into_parts();
            let local = Ipv4Addr::new(10, 0, 0, 7).into();
            let verdict = self.porter.check(Arrival { scheme: "http", local }, &mut head);
            (verdict, head)
        }

        fn entry(
            &self,
            method: &str,
            target: &str,
            headers: &[(&str, &str)],
        ) -> Result<Entry, Refused> {
            self.ask(method, target, headers).0.entry
        }
    }

    #[test]
    fn the_token_lets_in_and_goes_no_further() {
        let bench = Bench::new();
        for scheme in ["Bearer", "bearer", "BEARER"] {
            let shown = format!("{scheme} {}", bench.token());
            let headers = [("host", "localhost"), ("authorization", &shown)];
            let (verdict, head) = bench.ask("POST", "/acp", &headers);
            assert_eq!(verdict.entry, Ok(Entry::Known));
            assert!(!head.headers.contains_key("authorization"));
        }
    }

    #[test]
    fn a_guest_is_let_in_as_itself_and_never_as_two() {
        let bench = Bench::new();
        let own = format!("Bearer {}", bench.token());
        let theirs = format!("Bearer {LODGER}");
        let entry = |shown: &[&str]| {
            let headers: Vec<_> = shown.iter().map(|it| ("authorization", *it)).collect();
            bench.entry("GET", "/api/x", &[&[("host", "localhost")], &headers[..]].concat())
        };
        assert_eq!(entry(&[&theirs]), Ok(Entry::Guest(Bench::lodger())));
        assert_eq!(entry(&[&theirs, &theirs]), Ok(Entry::Guest(Bench::lodger())));
        assert_eq!(entry(&[&theirs, &own]), Err(Refused::WrongToken));
        assert_eq!(entry(&[&own, &theirs, &own]), Err(Refused::WrongToken));
    }

    #[test]
    fn only_the_whole_token_in_its_place_lets_in() {
        let bench = Bench::new();
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
            assert_eq!(bench.entry("GET", "/api/x", &headers), Err(Refused::WrongToken), "{wrong}");
            let twice =
                [("host", "localhost"), ("authorization", &good), ("authorization", &wrong)];
            assert_eq!(bench.entry("GET", "/api/x", &twice), Err(Refused::WrongToken), "{wrong}");
        }
        let query = format!("/api/x?token={token}&access_token={token}");
        assert_eq!(bench.entry("GET", &query, &[("host", "localhost")]), Err(Refused::NoToken));
    }

    #[test]
    fn a_websocket_shows_the_token_among_its_protocols_and_keeps_the_others() {
        let bench = Bench::new();
        let secret = format!("{IN_PROTOCOL}{}", bench.token());
        let left = |offered: &str| {
            let headers = [("host", "localhost"), ("sec-websocket-protocol", offered)];
            let (verdict, head) = bench.ask("GET", "/acp", &headers);
            let left = head.headers.get("sec-websocket-protocol").cloned();
            (verdict.entry, left.map(|it| it.to_str().unwrap().to_owned()))
        };
        let known = || Ok(Entry::Known);
        assert_eq!(left(&format!("acp, {secret}")), (known(), Some("acp".into())));
        assert_eq!(left(&format!("{secret},acp,more")), (known(), Some("acp, more".into())));
        assert_eq!(left(&secret), (known(), None));
        assert_eq!(
            left(&format!("acp, {secret}0")),
            (Err(Refused::WrongToken), Some("acp".into()))
        );
        assert_eq!(left("acp"), (Err(Refused::NoToken), Some("acp".into())));
    }

    #[test]
    fn health_is_open_to_all_who_know_our_name() {
        let bench = Bench::new();
        let host = [("host", "localhost")];
        for target in ["/healthz", "/readyz", "/healthz?verbose"] {
            assert_eq!(bench.entry("GET", target, &host), Ok(Entry::Open), "{target}");
            assert_eq!(bench.entry("HEAD", target, &host), Ok(Entry::Open), "{target}");
            assert_eq!(bench.entry("POST", target, &host), Err(Refused::NoToken), "{target}");
            let foreign = [("host", "evil.example")];
            assert_eq!(bench.entry("GET", target, &foreign), Err(Refused::StrangeHost));
        }
        for target in ["/", "/metrics", "/healthz/", "/healthz/../api/x", "//healthz", "/HEALTHZ"] {
            assert_eq!(bench.entry("GET", target, &host), Err(Refused::NoToken), "{target}");
        }
        let wrong = [("host", "localhost"), ("authorization", "Bearer x")];
        assert_eq!(bench.entry("GET", "/healthz", &wrong), Err(Refused::WrongToken));
    }

    #[test]
    fn a_foreign_name_is_refused_whatever_else_is_right() {
        let bench = Bench::new();
        let shown = format!("Bearer {}", bench.token());
        let with =
            |host: &str| bench.entry("GET", "/api/x", &[("host", host), ("authorization", &shown)]);
        for good in
            ["localhost:1", "127.0.0.1", "[::1]:9", "Build.example.org:8443", "10.0.0.7:7456"]
        {
            assert_eq!(with(good), Ok(Entry::Known), "{good}");
        }
        for bad in ["evil.example", "localhost.evil.example", "10.0.0.8", "x.build.example.org"] {
            assert_eq!(with(bad), Err(Refused::StrangeHost), "{bad}");
        }
        assert_eq!(with("localhost#evil"), Err(Refused::UnclearHost));
    }

    #[test]
    fn a_foreign_page_is_refused_whatever_it_sends() {
        let bench = Bench::new();
        let shown = format!("Bearer {}", bench.token());
        for origin in ["https://evil.example", "null", "http://127.0.0.1:7456"] {
            for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"] {
                let headers = [
                    ("host", "localhost:7456"),
                    ("authorization", shown.as_str()),
                    ("origin", origin),
                    ("access-control-request-method", "POST"),
                ];
                let (verdict, _) = bench.ask(method, "/acp", &headers);
                assert_eq!(verdict.entry, Err(Refused::ForeignPage), "{method} {origin}");
                assert_eq!(verdict.page, None);
            }
        }
    }

    #[test]
    fn a_listed_page_and_our_own_may_ask_and_read() {
        let bench = Bench::new();
        for origin in ["https://console.example.org", "http://localhost:7456"] {
            let page = Some(HeaderValue::from_static(origin));
            let mut headers = vec![("host", "localhost:7456"), ("origin", origin)];
            let (refused, _) = bench.ask("POST", "/acp", &headers);
            assert_eq!((refused.entry, refused.page), (Err(Refused::NoToken), page.clone()));
            headers.push(("access-control-request-method", "POST"));
            let (asked, _) = bench.ask("OPTIONS", "/acp", &headers);
            assert_eq!((asked.entry, asked.page), (Ok(Entry::Preflight), page));
        }
        let program = [("host", "localhost"), ("access-control-request-method", "POST")];
        assert_eq!(bench.entry("OPTIONS", "/acp", &program), Err(Refused::NoToken));
    }

    #[test]
    fn a_body_that_nobody_takes_is_refused_before_it_comes() {
        let bench = Bench::new();
        let shown = format!("Bearer {}", bench.token());
        let with = |length: &str| {
            let headers =
                [("host", "localhost"), ("authorization", &shown), ("content-length", length)];
            bench.entry("POST", "/acp", &headers)
        };
        assert_eq!(with("16777216"), Ok(Entry::Known));
        for long in ["16777217", "99999999999999999999999"] {
            assert_eq!(with(long), Err(Refused::TooLong));
        }
    }
}

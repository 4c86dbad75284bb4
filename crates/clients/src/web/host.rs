//! The names we answer to. A page that makes its own name lead to our address (DNS rebinding) still
//! names itself in `Host`, and that is how it is told from a client of ours.

use axum::http::{HeaderMap, Uri, Version, header};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A name or an address without a port: a tunnel may change the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// In lower case.
    Name(String),
    Ip(IpAddr),
}

/// A text that is no host, or more than one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no host: write a name or an address alone, as in `build.example.org`")]
pub struct NoHost {
    text: String,
}

/// What a request says about where it goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// The host, and as it was written: with its port.
    One(Host, String),
    /// There is none, or two that differ, or it is none.
    Unclear,
}

impl Host {
    /// Whoever is on this machine may use these.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Host::Name(name) => name == "localhost",
            Host::Ip(ip) => *ip == Ipv4Addr::LOCALHOST || *ip == Ipv6Addr::LOCALHOST,
        }
    }

    /// `host`, `host:port`, `[::1]`, `[::1]:port`, and nothing else: no user, no path.
    fn of_authority(text: &str) -> Option<Host> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port_is_good = match port.strip_prefix(':') {
            Some(digits) => digits.parse::<u16>().is_ok() && !digits.starts_with('+'),
            None => port.is_empty(),
        };
        let host = if text.starts_with('[') {
            Host::Ip(host.parse::<Ipv6Addr>().ok()?.to_canonical())
        } else {
            host.parse::<Ipv4Addr>().map(|it| Host::Ip(it.into())).ok().or_else(|| name(host))?
        };
        port_is_good.then_some(host)
    }
}

/// What a name server could be asked for.
fn name(text: &str) -> Option<Host> {
    let good = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
    let is_name = (1..=253).contains(&text.len()) && text.bytes().all(good);
    is_name.then(|| Host::Name(text.to_ascii_lowercase()))
}

impl FromStr for Host {
    type Err = NoHost;

    fn from_str(text: &str) -> Result<Host, NoHost> {
        // An address of version 6 needs its brackets only where a port may follow.
        let bare = text.parse::<IpAddr>().ok().map(|it| Host::Ip(it.to_canonical()));
        let alone = || Host::of_authority(text).filter(|_| !text.contains("]:"));
        let name = || alone().filter(|_| text.starts_with('[') || !text.contains(':'));
        bare.or_else(name).ok_or_else(|| NoHost { text: text.to_owned() })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Name(name) => f.write_str(name),
            Host::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            Host::Ip(ip) => write!(f, "{ip}"),
        }
    }
}

/// The one host that a request names, in its target (`:authority` in HTTP/2) and in `Host`.
pub(super) fn named(version: Version, uri: &Uri, headers: &HeaderMap) -> Named {
    let mut in_headers = headers.get_all(header::HOST).iter();
    let header = match (in_headers.next(), in_headers.next()) {
        (None, _) if version < Version::HTTP_2 => return Named::Unclear,
        (None, _) => None,
        (Some(it), None) => match it.to_str() {
            Ok(text) => Some(text),
            Err(_) => return Named::Unclear,
        },
        (Some(_), Some(_)) => return Named::Unclear,
    };
    let target = uri.authority().map(axum::http::uri::Authority::as_str);
    let text = match (target, header) {
        (Some(target), Some(header)) if !target.eq_ignore_ascii_case(header) => {
            return Named::Unclear;
        }
        (Some(text), _) | (None, Some(text)) => text,
        (None, None) => return Named::Unclear,
    };
    match Host::of_authority(text) {
        Some(host) => Named::One(host, text.to_ascii_lowercase()),
        None => Named::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn ask(version: Version, target: &str, hosts: &[&str]) -> Named {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
        }
        named(version, &target.parse().unwrap(), &headers)
    }

    fn one(text: &str) -> Named {
        Named::One(Host::of_authority(text).unwrap(), text.to_ascii_lowercase())
    }

    #[test]
    fn a_request_names_one_host() {
        let old = |target, hosts: &[&str]| ask(Version::HTTP_11, target, hosts);
        assert_eq!(old("/", &["LocalHost:7456"]), one("localhost:7456"));
        assert_eq!(old("/", &["[::1]:1"]), one("[::1]:1"));
        assert_eq!(old("http://localhost/", &["localhost"]), one("localhost"));
        for (target, hosts) in [
            ("/", &[][..]),
            ("/", &["localhost", "localhost"]),
            ("/", &["localhost, evil.example"]),
            ("/", &[""]),
            ("/", &["evil.example#127.0.0.1"]),
            ("/", &["evil.example@127.0.0.1"]),
            ("/", &["127.0.0.1:80:80"]),
            ("/", &["localhost:+80"]),
            ("/", &["[::1"]),
            ("/", &["[::1]evil"]),
            ("/", &["\u{e9}.example"]),
            ("http://localhost/", &[]),
            ("http://evil.example/", &["localhost"]),
        ] {
            assert_eq!(old(target, hosts), Named::Unclear, "{target} {hosts:?}");
        }
    }

    #[test]
    fn the_authority_of_http_2_counts_as_host() {
        let new = |target, hosts: &[&str]| ask(Version::HTTP_2, target, hosts);
        assert_eq!(new("http://localhost:1/", &[]), one("localhost:1"));
        assert_eq!(new("/", &["localhost:1"]), one("localhost:1"));
        assert_eq!(new("http://evil.example/", &["localhost"]), Named::Unclear);
        assert_eq!(new("/", &[]), Named::Unclear);
    }

    #[test]
    fn only_this_machine_is_local() {
        let local = |it: &str| Host::of_authority(it).is_some_and(|it| it.is_local());
        for good in ["localhost", "LOCALHOST:1", "127.0.0.1:1", "[::1]", "[0:0:0:0:0:0:0:1]:1"] {
            assert!(local(good), "{good}");
        }
        assert!(local("[::ffff:127.0.0.1]"), "it is what it is inside");
        for bad in [
            "localhost.",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.1",
            "0x7f.0.0.1",
            "2130706433",
            "0.0.0.0",
            "127.0.0.2",
            "[::]",
        ] {
            assert!(!local(bad), "{bad}");
        }
    }

    #[test]
    fn a_host_of_the_configuration_has_no_port() {
        let parse = |text: &str| text.parse::<Host>().map(|it| it.to_string());
        assert_eq!(parse("Build.Example.org"), Ok("build.example.org".into()));
        assert_eq!(parse("10.0.0.1"), Ok("10.0.0.1".into()));
        assert_eq!(parse("::1"), Ok("[::1]".into()));
        assert_eq!(parse("[2001:db8::1]"), Ok("[2001:db8::1]".into()));
        for bad in ["", "*", "a:1", "[::1]:1", "http://a", "a/b", "a b", "*.example.org"] {
            assert!(parse(bad).unwrap_err().to_string().contains("is no host"), "{bad}");
        }
    }
}

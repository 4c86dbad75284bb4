//! The host names that we answer to. A web page whose name resolves to our address (DNS rebinding)
//! still sends its own name in `Host`, so it can be distinguished from our own clients.

use axum::http::{HeaderMap, Uri, Version, header};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A name or an IP address without a port, because a tunnel may change the port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpHost {
    /// In lowercase.
    Name(String),
    Ip(IpAddr),
}

/// A text that is not a single host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid host `{text}`: write only a name or an address, as in `build.example.org`")]
pub struct InvalidHost {
    text: String,
}

/// The host that a request names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RequestHost {
    /// The host, and its text with the port.
    One(HttpHost, String),
    /// The host is missing, ambiguous or invalid.
    Ambiguous,
}

impl HttpHost {
    /// Whether it is a name of this machine, which is always accepted.
    pub(super) fn is_local(&self) -> bool {
        match self {
            HttpHost::Name(name) => name == "localhost",
            HttpHost::Ip(ip) => *ip == Ipv4Addr::LOCALHOST || *ip == Ipv6Addr::LOCALHOST,
        }
    }

    /// Parses `host`, `host:port`, `[::1]` or `[::1]:port`; a user or a path is refused.
    fn from_authority(text: &str) -> Option<HttpHost> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => text.split_at(text.find(':').unwrap_or(text.len())),
        };
        let port_is_good = match port.strip_prefix(':') {
            Some(digits) => digits.parse::<u16>().is_ok() && !digits.starts_with('+'),
            None => port.is_empty(),
        };
        let host = if text.starts_with('[') {
            HttpHost::Ip(host.parse::<Ipv6Addr>().ok()?.to_canonical())
        } else {
            host.parse::<Ipv4Addr>()
                .map(|it| HttpHost::Ip(it.into()))
                .ok()
                .or_else(|| parse_name(host))?
        };
        port_is_good.then_some(host)
    }
}

/// Parses a DNS name.
fn parse_name(text: &str) -> Option<HttpHost> {
    let good = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
    let is_name = (1..=253).contains(&text.len()) && text.bytes().all(good);
    is_name.then(|| HttpHost::Name(text.to_ascii_lowercase()))
}

impl FromStr for HttpHost {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<HttpHost, InvalidHost> {
        // An IPv6 address needs brackets only where a port may follow.
        let bare = text.parse::<IpAddr>().ok().map(|it| HttpHost::Ip(it.to_canonical()));
        let alone = || HttpHost::from_authority(text).filter(|_| !text.contains("]:"));
        let name = || alone().filter(|_| text.starts_with('[') || !text.contains(':'));
        bare.or_else(name).ok_or_else(|| InvalidHost { text: text.to_owned() })
    }
}

impl fmt::Display for HttpHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HttpHost::Name(name) => f.write_str(name),
            HttpHost::Ip(IpAddr::V6(ip)) => write!(f, "[{ip}]"),
            HttpHost::Ip(ip) => write!(f, "{ip}"),
        }
    }
}

/// The host that a request names in its target (`:authority` in HTTP/2) and in `Host`.
pub(super) fn request_host(version: Version, uri: &Uri, headers: &HeaderMap) -> RequestHost {
    let mut in_headers = headers.get_all(header::HOST).iter();
    let header = match (in_headers.next(), in_headers.next()) {
        (None, _) if version < Version::HTTP_2 => return RequestHost::Ambiguous,
        (None, _) => None,
        (Some(it), None) => match it.to_str() {
            Ok(text) => Some(text),
            Err(_) => return RequestHost::Ambiguous,
        },
        (Some(_), Some(_)) => return RequestHost::Ambiguous,
    };
    let target = uri.authority().map(axum::http::uri::Authority::as_str);
    let text = match (target, header) {
        (Some(target), Some(header)) if !target.eq_ignore_ascii_case(header) => {
            return RequestHost::Ambiguous;
        }
        (Some(text), _) | (None, Some(text)) => text,
        (None, None) => return RequestHost::Ambiguous,
    };
    match HttpHost::from_authority(text) {
        Some(host) => RequestHost::One(host, text.to_ascii_lowercase()),
        None => RequestHost::Ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn ask(version: Version, target: &str, hosts: &[&str]) -> RequestHost {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
        }
        request_host(version, &target.parse().unwrap(), &headers)
    }

    fn one(text: &str) -> RequestHost {
        RequestHost::One(HttpHost::from_authority(text).unwrap(), text.to_ascii_lowercase())
    }

    #[test]
    fn request_must_name_exactly_one_host() {
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
            assert_eq!(old(target, hosts), RequestHost::Ambiguous, "{target} {hosts:?}");
        }
    }

    #[test]
    fn authority_of_http_2_counts_as_host() {
        let new = |target, hosts: &[&str]| ask(Version::HTTP_2, target, hosts);
        assert_eq!(new("http://localhost:1/", &[]), one("localhost:1"));
        assert_eq!(new("/", &["localhost:1"]), one("localhost:1"));
        assert_eq!(new("http://evil.example/", &["localhost"]), RequestHost::Ambiguous);
        assert_eq!(new("/", &[]), RequestHost::Ambiguous);
    }

    #[test]
    fn only_names_of_this_machine_are_local() {
        let local = |it: &str| HttpHost::from_authority(it).is_some_and(|it| it.is_local());
        for good in ["localhost", "LOCALHOST:1", "127.0.0.1:1", "[::1]", "[0:0:0:0:0:0:0:1]:1"] {
            assert!(local(good), "{good}");
        }
        assert!(local("[::ffff:127.0.0.1]"), "an IPv4-mapped address counts as IPv4");
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
    fn host_of_the_configuration_has_no_port() {
        let parse = |text: &str| text.parse::<HttpHost>().map(|it| it.to_string());
        assert_eq!(parse("Build.Example.org"), Ok("build.example.org".into()));
        assert_eq!(parse("10.0.0.1"), Ok("10.0.0.1".into()));
        assert_eq!(parse("::1"), Ok("[::1]".into()));
        assert_eq!(parse("[2001:db8::1]"), Ok("[2001:db8::1]".into()));
        for bad in ["", "*", "a:1", "[::1]:1", "http://a", "a/b", "a b", "*.example.org"] {
            assert!(parse(bad).unwrap_err().to_string().contains("invalid host"), "{bad}");
        }
    }
}

//! The address of a daemon, as text and as a value.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The value of `--listen` and `--socket`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum EndpointAddress {
    /// `unix:///run/user/1000/jackfield/socket`, or the bare path.
    Unix(PathBuf),
    /// `tcp://127.0.0.1:7777`.
    Tcp(SocketAddr),
    /// `http://127.0.0.1:7456`: ACP over WebSocket and HTTP, and the API.
    Http(SocketAddr),
    /// `https://0.0.0.0:7456`: the same with TLS.
    Https(SocketAddr),
    /// `stdio://`: one connection, over stdin and stdout of this process.
    Stdio,
}

/// What the operator reads about an address that was opened with `--insecure`.
pub const UNENCRYPTED_WARNING: &str =
    "address is reachable from other machines and not encrypted, because of `--insecure`";

/// A text that is not an address, or an address that is not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error(
        "invalid address `{text}`: use `unix:///path`, `tcp://127.0.0.1:7777`, \
         `http://127.0.0.1:7456` or `stdio://`"
    )]
    Unknown { text: String },
    #[error(
        "scheme `{scheme}://` is not supported: use `unix://`, `tcp://`, `http://`, `https://` or \
         `stdio://`"
    )]
    Scheme { scheme: String },
    #[error("`{text}` has no absolute path: write `unix:///path`, with three slashes")]
    NotAbsolute { text: String },
    #[error("`{text}` has no address with a port: write `{scheme}://127.0.0.1:7777`")]
    NoPort { scheme: String, text: String },
    #[error("invalid address `{text}`: write `stdio://`")]
    NotStdio { text: String },
    #[error("cannot resolve the host of `{text}`: {reason}")]
    UnknownHost { text: String, reason: String },
    #[error(
        "`{address}` can be reached from other machines, and without TLS the token and all messages \
         would cross the network unencrypted"
    )]
    NotLoopback { address: EndpointAddress },
}

impl EndpointAddress {
    /// Parses an address to listen on. A host name is resolved, and its first address is used.
    pub fn resolve(text: &str) -> Result<EndpointAddress, AddressError> {
        let parsed = text.parse();
        let Err(AddressError::NoPort { scheme, .. }) = &parsed else { return parsed };
        let authority = text[scheme.len() + "://".len()..].trim_end_matches('/');
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
        if !has_port {
            return parsed;
        }
        let unknown = |reason: String| AddressError::UnknownHost { text: text.to_owned(), reason };
        let mut found = authority.to_socket_addrs().map_err(|error| unknown(error.to_string()))?;
        let at = found.next().ok_or_else(|| unknown("the host has no address".to_owned()))?;
        format!("{scheme}://{at}").parse()
    }

    /// Refuses an address that would send the token over a network unencrypted. The only check of
    /// this rule: a listener that skips it was started with `--insecure`.
    pub fn require_private(&self) -> Result<(), AddressError> {
        match self {
            EndpointAddress::Tcp(at) | EndpointAddress::Http(at)
                if !at.ip().to_canonical().is_loopback() =>
            {
                Err(AddressError::NotLoopback { address: self.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Whether clients use HTTP at this address.
    pub fn is_web(&self) -> bool {
        matches!(self, EndpointAddress::Http(_) | EndpointAddress::Https(_))
    }
}

impl FromStr for EndpointAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<EndpointAddress, AddressError> {
        let Some((scheme, rest)) = text.split_once("://") else { return parse_path(text) };
        match scheme {
            "unix" if Path::new(rest).is_absolute() => Ok(EndpointAddress::Unix(rest.into())),
            "unix" => Err(AddressError::NotAbsolute { text: text.to_owned() }),
            "tcp" => parse_socket_address(scheme, text, rest).map(EndpointAddress::Tcp),
            "http" => parse_socket_address(scheme, text, rest).map(EndpointAddress::Http),
            "https" => parse_socket_address(scheme, text, rest).map(EndpointAddress::Https),
            "stdio" if rest.is_empty() => Ok(EndpointAddress::Stdio),
            "stdio" => Err(AddressError::NotStdio { text: text.to_owned() }),
            _ => Err(AddressError::Scheme { scheme: scheme.to_owned() }),
        }
    }
}

/// Parses a path without scheme. It must contain a slash, because `127.0.0.1:7777` more likely
/// lacks a `tcp://`.
fn parse_path(text: &str) -> Result<EndpointAddress, AddressError> {
    if text.contains('/') && !text.ends_with('/') {
        Ok(EndpointAddress::Unix(text.into()))
    } else {
        Err(AddressError::Unknown { text: text.to_owned() })
    }
}

/// Parses an IP address and a port. `localhost` is 127.0.0.1, because no name is resolved here.
fn parse_socket_address(scheme: &str, text: &str, rest: &str) -> Result<SocketAddr, AddressError> {
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let parsed = match rest.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|it: u16| (Ipv4Addr::LOCALHOST, it).into()),
        None => rest.parse().ok(),
    };
    parsed.ok_or_else(|| AddressError::NoPort { scheme: scheme.to_owned(), text: text.to_owned() })
}

impl fmt::Display for EndpointAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndpointAddress::Unix(path) if path.is_absolute() => {
                write!(f, "unix://{}", path.display())
            }
            EndpointAddress::Unix(path) => write!(f, "{}", path.display()),
            EndpointAddress::Tcp(address) => write!(f, "tcp://{address}"),
            EndpointAddress::Http(address) => write!(f, "http://{address}"),
            EndpointAddress::Https(address) => write!(f, "https://{address}"),
            EndpointAddress::Stdio => f.write_str("stdio://"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<EndpointAddress, AddressError> {
        text.parse()
    }

    #[test]
    fn every_form_is_parsed_and_formatted_so_that_it_parses_again() {
        let spellings = [
            ("unix:///run/jackfield/socket", "unix:///run/jackfield/socket"),
            ("/run/jackfield/socket", "unix:///run/jackfield/socket"),
            ("./socket", "./socket"),
            ("unix:///with space/and:colon", "unix:///with space/and:colon"),
            ("tcp://127.0.0.1:7777", "tcp://127.0.0.1:7777"),
            ("tcp://localhost:7777", "tcp://127.0.0.1:7777"),
            ("tcp://[::1]:0", "tcp://[::1]:0"),
            ("http://localhost:7456/", "http://127.0.0.1:7456"),
            ("https://0.0.0.0:7456", "https://0.0.0.0:7456"),
            ("stdio://", "stdio://"),
        ];
        for (text, shown) in spellings {
            let address = parse(text).unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(parse(shown), Ok(address));
        }
    }

    #[test]
    fn invalid_address_is_refused_with_a_hint() {
        let refused = [
            ("", "use `unix:///path`"),
            ("socket", "use `unix:///path`"),
            ("127.0.0.1:7777", "`tcp://127.0.0.1:7777`"),
            ("/run/jackfield/", "use `unix:///path`"),
            ("unix://socket", "three slashes"),
            ("unix://", "three slashes"),
            ("tcp://127.0.0.1", "with a port"),
            ("tcp://localhost:99999", "with a port"),
            ("tcp://example.org:7777", "with a port"),
            ("stdio://x", "write `stdio://`"),
            ("https://127.0.0.1", "`https://127.0.0.1:7777`"),
            ("ftp://127.0.0.1:1", "scheme `ftp://` is not supported"),
        ];
        for (text, hint) in refused {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(hint), "`{text}`: {error}");
        }
    }

    #[test]
    fn host_name_is_resolved_for_a_listener_only() {
        // `LOCALHOST` is not the spelling that is replaced without a lookup.
        let address = EndpointAddress::resolve("tcp://LOCALHOST:9000/").unwrap();
        assert!(address.require_private().is_ok(), "{address}");
        assert!(address.to_string().ends_with(":9000"), "{address}");
        assert!(matches!(parse("tcp://LOCALHOST:9000"), Err(AddressError::NoPort { .. })));
        for (text, shown) in [
            ("http://localhost:7456", "http://127.0.0.1:7456"),
            ("tcp://0.0.0.0:9000", "tcp://0.0.0.0:9000"),
            ("stdio://", "stdio://"),
        ] {
            assert_eq!(EndpointAddress::resolve(text).unwrap().to_string(), shown);
        }
        let refused = [
            ("tcp://host.invalid:9000", "cannot resolve the host of `tcp://host.invalid:9000`"),
            ("tcp://myhost", "with a port"),
            ("tcp://:9000", "with a port"),
            ("ftp://myhost:1", "scheme `ftp://` is not supported"),
        ];
        for (text, expected) in refused {
            let error = EndpointAddress::resolve(text).unwrap_err().to_string();
            assert!(error.contains(expected), "`{text}`: {error}");
        }
    }

    #[test]
    fn only_loopback_is_private() {
        let private =
            ["tcp://127.0.0.1:1", "tcp://[::1]:1", "http://127.9.9.9:1", "/a", "stdio://"];
        for text in private.into_iter().chain(["https://0.0.0.0:1"]) {
            assert_eq!(parse(text).unwrap().require_private(), Ok(()), "{text}");
        }
        // An IPv4-mapped IPv6 address counts as the IPv4 address.
        assert!(parse("tcp://[::ffff:127.0.0.1]:1").unwrap().require_private().is_ok());
        for text in ["tcp://0.0.0.0:1", "http://192.168.0.1:1", "tcp://[::]:1", "tcp://[2001::1]:1"]
        {
            let error = parse(text).unwrap().require_private().unwrap_err().to_string();
            assert!(error.contains("without TLS"), "{text}: {error}");
        }
    }
}

//! Where a daemon can be reached, as text and as a value.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What `--listen` and `--socket` name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
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

/// A text that is no address, or an address that we do not use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error(
        "`{text}` is no address: use `unix:///path`, `tcp://127.0.0.1:7777`, `http://127.0.0.1:7456` or `stdio://`"
    )]
    Unknown { text: String },
    #[error(
        "scheme `{scheme}://` is not served: use `unix://`, `tcp://`, `http://`, `https://` or `stdio://`"
    )]
    Scheme { scheme: String },
    #[error("`{text}` has no absolute path: write `unix:///path`, with three slashes")]
    NotAbsolute { text: String },
    #[error("`{text}` has no IP address with a port: write `{scheme}://127.0.0.1:7777`")]
    NoPort { scheme: String, text: String },
    #[error("`{text}` says too much: write `stdio://`")]
    NotStdio { text: String },
    #[error(
        "`{address}` is not a loopback address: without TLS the token and all that is said would \
         cross the network in the clear; use `https://`, or 127.0.0.1 or [::1] and `ssh -L` from \
         elsewhere"
    )]
    NotLoopback { address: Address },
}

impl Address {
    /// Refuses what would put the token on a network in the clear.
    pub(crate) fn require_private(&self) -> Result<(), AddressError> {
        match self {
            Address::Tcp(at) | Address::Http(at) if !at.ip().to_canonical().is_loopback() => {
                Err(AddressError::NotLoopback { address: self.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Whether clients speak HTTP there.
    pub fn is_web(&self) -> bool {
        matches!(self, Address::Http(_) | Address::Https(_))
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        let Some((scheme, rest)) = text.split_once("://") else { return bare(text) };
        match scheme {
            "unix" if Path::new(rest).is_absolute() => Ok(Address::Unix(rest.into())),
            "unix" => Err(AddressError::NotAbsolute { text: text.to_owned() }),
            "tcp" => at(scheme, text, rest).map(Address::Tcp),
            "http" => at(scheme, text, rest).map(Address::Http),
            "https" => at(scheme, text, rest).map(Address::Https),
            "stdio" if rest.is_empty() => Ok(Address::Stdio),
            "stdio" => Err(AddressError::NotStdio { text: text.to_owned() }),
            _ => Err(AddressError::Scheme { scheme: scheme.to_owned() }),
        }
    }
}

/// A path must show that it is one: `127.0.0.1:7777` is more likely a forgotten `tcp://`.
fn bare(text: &str) -> Result<Address, AddressError> {
    if text.contains('/') && !text.ends_with('/') {
        Ok(Address::Unix(text.into()))
    } else {
        Err(AddressError::Unknown { text: text.to_owned() })
    }
}

/// `localhost` is taken to be 127.0.0.1: nothing here asks a name server.
fn at(scheme: &str, text: &str, rest: &str) -> Result<SocketAddr, AddressError> {
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let parsed = match rest.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|it: u16| (Ipv4Addr::LOCALHOST, it).into()),
        None => rest.parse().ok(),
    };
    parsed.ok_or_else(|| AddressError::NoPort { scheme: scheme.to_owned(), text: text.to_owned() })
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) if path.is_absolute() => write!(f, "unix://{}", path.display()),
            Address::Unix(path) => write!(f, "{}", path.display()),
            Address::Tcp(address) => write!(f, "tcp://{address}"),
            Address::Http(address) => write!(f, "http://{address}"),
            Address::Https(address) => write!(f, "https://{address}"),
            Address::Stdio => f.write_str("stdio://"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address, AddressError> {
        text.parse()
    }

    #[test]
    fn each_spelling_is_understood_and_shown_as_it_can_be_read_again() {
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
    fn what_is_no_address_is_refused_with_a_way_out() {
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
            ("ftp://127.0.0.1:1", "scheme `ftp://` is not served"),
        ];
        for (text, way_out) in refused {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(way_out), "`{text}`: {error}");
        }
    }

    #[test]
    fn only_loopback_is_private() {
        let private =
            ["tcp://127.0.0.1:1", "tcp://[::1]:1", "http://127.9.9.9:1", "/a", "stdio://"];
        for text in private.into_iter().chain(["https://0.0.0.0:1"]) {
            assert_eq!(parse(text).unwrap().require_private(), Ok(()), "{text}");
        }
        // An IPv4 address in IPv6 clothes is what it is inside.
        assert!(parse("tcp://[::ffff:127.0.0.1]:1").unwrap().require_private().is_ok());
        for text in ["tcp://0.0.0.0:1", "http://192.168.0.1:1", "tcp://[::]:1", "tcp://[2001::1]:1"]
        {
            let error = parse(text).unwrap().require_private().unwrap_err().to_string();
            assert!(error.contains("without TLS"), "{text}: {error}");
        }
    }
}

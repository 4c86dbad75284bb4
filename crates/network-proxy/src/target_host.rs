//! The host and port of a request, in one canonical form.
//!
//! Only one spelling of a host gets through, so the text that the rules compare is the text that is
//! resolved. Every other spelling that some resolver would accept is an error.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest name that DNS can carry, as text.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// A name in lower case without a final dot, or an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TargetHost {
    Name(String),
    /// Never an IPv4 address that is mapped to IPv6.
    Address(IpAddr),
}

/// The destination of a connection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    pub host: TargetHost,
    pub port: u16,
}

/// Why a text is not a host, or not a host and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    #[error("the host is empty")]
    Empty,
    #[error("the host has more than {NAME_BYTES_MAX} bytes")]
    TooLong,
    #[error("the host contains a user name")]
    UserInfo,
    #[error("the host contains `{0}`; a name has letters, digits, `-`, `_` and `.` only")]
    Character(char),
    #[error("the host has an empty or too long label, or one that begins or ends with `-`")]
    Label,
    #[error("the host ends with a number but is no IPv4 address of four decimal parts")]
    NumericForm,
    #[error("the host is no IPv6 address")]
    Ipv6,
    #[error("the port is no number from 1 to 65535")]
    Port,
    #[error("the port is missing")]
    PortMissing,
}

impl TargetHost {
    /// Reads a name, an IPv4 address, or an IPv6 address in brackets.
    pub fn parse(text: &str) -> Result<TargetHost, HostError> {
        match text.strip_prefix('[') {
            Some(rest) => {
                let inside = rest.strip_suffix(']').ok_or(HostError::Ipv6)?;
                // The parser accepts no zone, which would select a network interface.
                let address: Ipv6Addr = inside.parse().map_err(|_| HostError::Ipv6)?;
                Ok(TargetHost::Address(address.to_canonical()))
            }
            None => parse_name(text),
        }
    }
}

fn parse_name(text: &str) -> Result<TargetHost, HostError> {
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.is_empty() {
        return Err(HostError::Empty);
    }
    if NAME_BYTES_MAX < name.len() {
        return Err(HostError::TooLong);
    }
    let is_allowed = |it: &char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
    if let Some(character) = name.chars().find(|it| !is_allowed(it)) {
        return Err(if character == '@' {
            HostError::UserInfo
        } else {
            HostError::Character(character)
        });
    }
    if name.split('.').any(|it| {
        it.is_empty() || LABEL_BYTES_MAX < it.len() || it.starts_with('-') || it.ends_with('-')
    }) {
        return Err(HostError::Label);
    }
    let name = name.to_ascii_lowercase();
    if ends_with_number(&name) {
        // The parser accepts four decimal parts without leading zeros, and nothing else.
        let address: Ipv4Addr = name.parse().map_err(|_| HostError::NumericForm)?;
        return Ok(TargetHost::Address(address.into()));
    }
    Ok(TargetHost::Name(name))
}

/// Whether `inet_aton` and browsers could read the name as an address: `127.1`, `0x7f.1`, `017700000001`.
fn ends_with_number(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    last.bytes().all(|it| it.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|it| it.bytes().all(|it| it.is_ascii_hexdigit()))
}

impl HostPort {
    /// Reads `host:port`. Without a port, `default_port` is used.
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<HostPort, HostError> {
        let (host, port) = split_port(text)?;
        let port = port.or(default_port).ok_or(HostError::PortMissing)?;
        Ok(HostPort { host, port })
    }
}

/// Reads a host and the port behind it, if there is one.
pub(crate) fn split_port(text: &str) -> Result<(TargetHost, Option<u16>), HostError> {
    if text.contains('@') {
        return Err(HostError::UserInfo);
    }
    let host_end = if text.starts_with('[') {
        text.find(']').ok_or(HostError::Ipv6)? + 1
    } else {
        text.find(':').unwrap_or(text.len())
    };
    let (host, port) = text.split_at(host_end);
    let host = TargetHost::parse(host)?;
    match port.strip_prefix(':') {
        Some(port) => Ok((host, Some(parse_port(port)?))),
        None if port.is_empty() => Ok((host, None)),
        None => Err(HostError::Port),
    }
}

/// Digits only: the parser of the standard library accepts `+80` too.
fn parse_port(text: &str) -> Result<u16, HostError> {
    let is_plain = text.bytes().all(|it| it.is_ascii_digit()) && !text.starts_with('0');
    let port = is_plain.then(|| text.parse().ok()).flatten();
    port.ok_or(HostError::Port)
}

impl fmt::Display for TargetHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetHost::Name(name) => f.write_str(name),
            TargetHost::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            TargetHost::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Result<String, HostError> {
        TargetHost::parse(text).map(|it| it.to_string())
    }

    #[test]
    fn host_has_one_canonical_form() {
        for (text, expected) in [
            ("api.example.com", "api.example.com"),
            ("API.Example.COM.", "api.example.com"),
            ("localhost", "localhost"),
            ("_dmarc.example.com", "_dmarc.example.com"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("0x7f.example", "0x7f.example"),
            ("127.0.0.1", "127.0.0.1"),
            ("127.0.0.1.", "127.0.0.1"),
            ("[::1]", "[::1]"),
            ("[0:0::0001]", "[::1]"),
            ("[::ffff:127.0.0.1]", "127.0.0.1"),
            ("[::ffff:7f00:1]", "127.0.0.1"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_spellings_of_a_host_are_errors() {
        for (text, expected) in [
            ("", HostError::Empty),
            (".", HostError::Empty),
            ("example.com..", HostError::Label),
            (".example.com", HostError::Label),
            ("a..b", HostError::Label),
            ("-a.com", HostError::Label),
            ("a-.com", HostError::Label),
            ("127.1", HostError::NumericForm),
            ("0x7f.1", HostError::NumericForm),
            ("1.2.3.0x7f", HostError::NumericForm),
            ("0x7f000001", HostError::NumericForm),
            ("0x", HostError::NumericForm),
            ("2130706433", HostError::NumericForm),
            ("0177.0.0.1", HostError::NumericForm),
            ("127.0.0.01", HostError::NumericForm),
            ("1.2.3.4.5", HostError::NumericForm),
            ("example.123", HostError::NumericForm),
            ("[::1%eth0]", HostError::Ipv6),
            ("[::1%25eth0]", HostError::Ipv6),
            ("[127.0.0.1]", HostError::Ipv6),
            ("[::1", HostError::Ipv6),
            ("::1", HostError::Character(':')),
            ("user@example.com", HostError::UserInfo),
            ("ex%61mple.com", HostError::Character('%')),
            ("bücher.example", HostError::Character('ü')),
            ("example。com", HostError::Character('。')),
            ("１２７.0.0.1", HostError::Character('１')),
            ("a b", HostError::Character(' ')),
            ("a\0b", HostError::Character('\0')),
            ("a/b", HostError::Character('/')),
            ("*.example.com", HostError::Character('*')),
        ] {
            assert_eq!(canonical(text), Err(expected), "{text}");
        }
        assert_eq!(canonical(&"a.".repeat(128)), Err(HostError::TooLong));
        assert_eq!(canonical(&"a".repeat(64)), Err(HostError::Label));
    }

    #[test]
    fn port_is_decimal_without_sign_or_leading_zero() {
        let parse = |it: &str| HostPort::parse(it, Some(80)).map(|it| it.to_string());
        assert_eq!(parse("a.b").as_deref(), Ok("a.b:80"));
        assert_eq!(parse("A.b:443").as_deref(), Ok("a.b:443"));
        assert_eq!(parse("[::1]:8080").as_deref(), Ok("[::1]:8080"));
        for text in
            ["a:", "a:0", "a:+80", "a:080", "a:65536", "a:80:80", "a: 80", "[::1]80", "[::1]:"]
        {
            assert_eq!(parse(text), Err(HostError::Port), "{text}");
        }
        assert_eq!(parse("user:80@a"), Err(HostError::UserInfo));
        assert_eq!(HostPort::parse("a", None), Err(HostError::PortMissing));
    }
}

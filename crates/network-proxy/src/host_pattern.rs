//! One entry of a list of hosts.

use crate::target_host::{HostError, TargetHost, split_port};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// `api.example.com`, `*.example.com`, `192.0.2.1` or `[2001:db8::1]`, each with an optional `:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    host: PatternHost,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternHost {
    Exact(TargetHost),
    /// Every name with one or more labels before this domain.
    Below(String),
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is no host pattern")]
pub struct PatternError {
    pattern: String,
    source: HostError,
}

impl HostPattern {
    pub(crate) fn port(&self) -> Option<u16> {
        self.port
    }

    pub(crate) fn contains_host(&self, host: &TargetHost) -> bool {
        match (&self.host, host) {
            (PatternHost::Exact(exact), host) => exact == host,
            (PatternHost::Below(domain), TargetHost::Name(name)) => name
                .strip_suffix(domain.as_str())
                .is_some_and(|it| it.len() > 1 && it.ends_with('.')),
            (PatternHost::Below(_), TargetHost::Address(_)) => false,
        }
    }

    pub(crate) fn is_address(&self, address: IpAddr) -> bool {
        self.host == PatternHost::Exact(TargetHost::Address(address))
    }
}

impl FromStr for HostPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<HostPattern, PatternError> {
        let error = |source| PatternError { pattern: text.to_owned(), source };
        let Some(domain) = text.strip_prefix("*.") else {
            let (host, port) = split_port(text).map_err(error)?;
            return Ok(HostPattern { host: PatternHost::Exact(host), port });
        };
        match split_port(domain).map_err(error)? {
            (TargetHost::Name(domain), port) => {
                Ok(HostPattern { host: PatternHost::Below(domain), port })
            }
            (TargetHost::Address(_), _) => Err(error(HostError::Character('*'))),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            PatternHost::Exact(host) => write!(f, "{host}")?,
            PatternHost::Below(domain) => write!(f, "*.{domain}")?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_is_printed_in_canonical_form() {
        for (text, expected) in [
            ("API.example.com.", "api.example.com"),
            ("*.Example.com:8443", "*.example.com:8443"),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1:80"),
            ("[fd00:0::1]", "[fd00::1]"),
        ] {
            assert_eq!(text.parse::<HostPattern>().unwrap().to_string(), expected);
        }
    }

    #[test]
    fn asterisk_is_accepted_only_as_the_first_label_of_a_name() {
        for text in
            ["*", "*.", "a.*.com", "a*.com", "*a.com", "**.com", "*.*.com", "*.10.0.0.1", "*.[::1]"]
        {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
    }
}

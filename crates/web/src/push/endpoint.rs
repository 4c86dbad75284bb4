//! The address of a push service. A browser names it, so it must not lead into the own network.

use axum::http::Uri;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which push services a subscription may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointPolicy {
    /// Those on other machines, over TLS.
    PublicOnly,
    /// Also those on this machine, without TLS: for the operator, who can reach them anyway.
    PublicOrLoopback,
}

/// Why a subscription is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSubscription {
    #[error("`endpoint` is not a URL of at most 1024 characters")]
    Url,
    #[error("`endpoint` must be `https` at a public address")]
    NotPublic,
    #[error("`keys` are not those of a push subscription")]
    Keys,
}

/// Push services use about 200 characters.
const ENDPOINT_CHARS_MAX: usize = 1024;

#[derive(Debug)]
pub(super) struct PushEndpoint {
    scheme: String,
    authority: String,
    host: String,
}

impl PushEndpoint {
    pub(super) fn parse(text: &str) -> Result<PushEndpoint, InvalidSubscription> {
        let uri = text.parse::<Uri>().ok().filter(|_| text.len() <= ENDPOINT_CHARS_MAX);
        let uri = uri.ok_or(InvalidSubscription::Url)?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(InvalidSubscription::Url);
        };
        // A user name could make another host look like the push service.
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(InvalidSubscription::Url);
        }
        Ok(PushEndpoint {
            scheme: scheme.to_owned(),
            authority: authority.as_str().to_owned(),
            host: authority.host().to_ascii_lowercase(),
        })
    }

    /// Names are resolved when a message is sent, and checked again then.
    pub(super) fn check(&self, policy: EndpointPolicy) -> Result<(), InvalidSubscription> {
        let ip = self.host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
        let is_loopback = ip.is_some_and(|it| it.is_loopback());
        let is_accepted = match (self.scheme.as_str(), ip) {
            ("http", _) => is_loopback && policy == EndpointPolicy::PublicOrLoopback,
            ("https", Some(ip)) => is_public_ip(ip),
            ("https", None) => !self.host.ends_with("localhost") && self.host.contains('.'),
            _ => false,
        };
        if is_accepted { Ok(()) } else { Err(InvalidSubscription::NotPublic) }
    }

    /// `scheme://host[:port]`
    pub(super) fn origin(&self) -> String {
        format!("{}://{}", self.scheme, self.authority)
    }
}

/// Whether an address is on the public internet, as far as it can be seen.
pub fn is_public_ip(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_ipv4(ip),
        IpAddr::V6(ip) => is_public_ipv6(ip),
    }
}

fn is_public_ipv4(ip: Ipv4Addr) -> bool {
    let [first, second, ..] = ip.octets();
    let is_shared = first == 100 && (64..128).contains(&second);
    let is_special = ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_unspecified()
        || ip.is_broadcast()
        || ip.is_multicast()
        || ip.is_documentation();
    !is_special && !is_shared && first != 0 && first < 240
}

fn is_public_ipv6(ip: Ipv6Addr) -> bool {
    // Global unicast is 2000::/3; addresses that contain IPv4 addresses may lead elsewhere.
    let [first, second, ..] = ip.segments();
    first & 0xe000 == 0x2000 && first != 0x2002 && !(first == 0x2001 && second == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, policy: EndpointPolicy) -> Result<(), InvalidSubscription> {
        PushEndpoint::parse(text)?.check(policy)
    }

    #[test]
    fn only_public_push_services_are_accepted() {
        for good in [
            "https://fcm.googleapis.com/fcm/send/abc",
            "https://updates.push.services.mozilla.com/wpush/v2/x",
            "https://web.push.apple.com:443/x",
            "https://93.184.216.34/x",
        ] {
            assert_eq!(check(good, EndpointPolicy::PublicOnly), Ok(()), "{good}");
        }
        for bad in [
            "http://push.example.net/x",
            "https://localhost/x",
            "https://a.localhost/x",
            "https://intranet/x",
            "https://127.0.0.1/x",
            "https://10.1.2.3/x",
            "https://192.168.0.1/x",
            "https://169.254.169.254/latest",
            "https://100.64.0.1/x",
            "https://0.0.0.0/x",
            "https://[::1]/x",
            "https://[fd00::1]/x",
            "https://[fe80::1]/x",
            "https://[::ffff:10.0.0.1]/x",
            "https://[2002:7f00:1::]/x",
            "ftp://push.example.net/x",
        ] {
            let refused = Err(InvalidSubscription::NotPublic);
            assert_eq!(check(bad, EndpointPolicy::PublicOnly), refused, "{bad}");
        }
        for invalid in [
            "",
            "x",
            "/x",
            "https://a@push.example.net/x",
            &format!("https://a.b/{}", "x".repeat(1100)),
        ] {
            let refused = Err(InvalidSubscription::Url);
            assert_eq!(check(invalid, EndpointPolicy::PublicOnly), refused, "{invalid}");
        }
    }

    #[test]
    fn operator_may_use_a_push_service_on_this_machine() {
        let local = |it| check(it, EndpointPolicy::PublicOrLoopback).is_ok();
        assert!(local("http://127.0.0.1:9/x") && local("http://[::1]:9/x"));
        assert!(!local("http://localhost:9/x"), "a name may lead elsewhere later");
        assert!(!local("http://10.0.0.1/x") && !local("https://127.0.0.1/x"));
    }

    #[test]
    fn origin_has_no_path() {
        let origin = |it: &str| PushEndpoint::parse(it).unwrap().origin();
        assert_eq!(origin("https://push.example.net/p/x?y"), "https://push.example.net");
        assert_eq!(origin("http://127.0.0.1:9/x"), "http://127.0.0.1:9");
    }
}

//! The addresses of MCP servers that a tenant may name: hosts of a network, and not the machine that
//! the agent runs on, nor the metadata service of a cloud.
//!
//! Agents read addresses with parsers of their own, so only one notation is taken: lowercase scheme,
//! no user, no percent signs in the host, IPv4 as four decimal numbers, IPv6 in brackets. Names are not resolved
//! here: a name that leads to the machine itself is not noticed, and neither is a server that redirects there.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Names of the machine itself, and of metadata services.
const LOCAL_NAMES: [&str; 9] = [
    "localhost",
    "localhost.localdomain",
    "ip6-localhost",
    "ip6-loopback",
    "metadata",
    "metadata.goog",
    "metadata.google.internal",
    "instance-data",
    "instance-data.ec2.internal",
];

/// Addresses of metadata services outside of the link-local network.
const METADATA_IPV4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];
const METADATA_IPV6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Why a tenant may not name this address, if it may not.
pub(super) fn check_url(url: &str) -> Result<(), &'static str> {
    if !url.bytes().all(|it| it.is_ascii_graphic() && it != b'\\') {
        return Err("it has characters that a URL must not have");
    }
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let Some(rest) = rest else { return Err("it does not begin with `https://` or `http://`") };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains(['@', '%']) {
        return Err("its host has a user or percent signs before it or in it");
    }
    check_host(without_port(authority)?)
}

fn without_port(authority: &str) -> Result<&str, &'static str> {
    let host_end = authority.rfind(']').map_or(0, |it| it + 1);
    let Some(colon) = authority[host_end..].find(':') else { return Ok(authority) };
    let (host, port) = authority.split_at(host_end + colon);
    let is_number =
        |it: &str| it.bytes().all(|it| it.is_ascii_digit()) && it.parse::<u16>().is_ok();
    if is_number(&port[1..]) { Ok(host) } else { Err("its port is not a number up to 65535") }
}

fn check_host(host: &str) -> Result<(), &'static str> {
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').unwrap_or_default();
        let address = inner.parse().map_err(|_| "its host is no IPv6 address")?;
        return check_ipv6(address);
    }
    if let Ok(address) = host.parse() {
        return check_ipv4(address);
    }
    let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    let is_label = |it: &str| {
        !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
    };
    if !name.split('.').all(is_label) {
        return Err("its host is no name and no address");
    }
    // Parsers take such a name for an IPv4 address: decimal, octal or hexadecimal.
    let last = name.rsplit('.').next().unwrap_or_default();
    if last.starts_with(|it: char| it.is_ascii_digit()) {
        return Err("its host is an IPv4 address that is not written as four decimal numbers");
    }
    if LOCAL_NAMES.contains(&&*name) || name.ends_with(".localhost") {
        return Err("its host is the machine itself or a metadata service");
    }
    Ok(())
}

fn check_ipv4(address: Ipv4Addr) -> Result<(), &'static str> {
    let is_refused = address.is_loopback()
        || address.is_link_local()
        || address.octets()[0] == 0
        || address.is_multicast()
        || address.is_broadcast()
        || METADATA_IPV4.contains(&address);
    if is_refused {
        return Err(
            "its host is loopback, link-local, unspecified, multicast or a metadata service",
        );
    }
    Ok(())
}

fn check_ipv6(address: Ipv6Addr) -> Result<(), &'static str> {
    let is_refused = address.is_loopback()
        || address.is_unspecified()
        || address.is_unicast_link_local()
        || address.is_multicast()
        || address == METADATA_IPV6;
    if is_refused {
        return Err(
            "its host is loopback, link-local, unspecified, multicast or a metadata service",
        );
    }
    // IPv4-compatible and IPv4-mapped, NAT64, Teredo, 6to4.
    let has_ipv4 = matches!(
        address.segments(),
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _]
            | [0, 0, 0, 0, 0xffff, 0, _, _]
            | [0x64, 0xff9b, ..]
            | [0x2001, 0, ..]
            | [0x2002, ..]
    );
    if has_ipv4 {
        return Err("its host is an IPv4 address that is written as IPv6");
    }
    Ok(())
}

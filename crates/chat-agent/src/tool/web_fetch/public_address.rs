//! Decides which addresses belong to the public internet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is public, and not one of this machine or of a private network.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => is_public_v4(it),
        IpAddr::V6(it) => match it.to_ipv4_mapped() {
            Some(it) => is_public_v4(it),
            None => is_public_v6(it),
        },
    }
}

fn is_public_v4(it: Ipv4Addr) -> bool {
    let [a, b, c, _] = it.octets();
    let is_reserved = matches!(
        (a, b, c),
        // "This network" and reserved; carrier-grade NAT; protocol assignments; benchmarks.
        (0 | 240..=255, ..) | (100, 64..=127, _) | (192, 0, 0) | (198, 18 | 19, _)
    );
    !(is_reserved
        || it.is_loopback()
        || it.is_private()
        || it.is_link_local()
        || it.is_multicast()
        || it.is_documentation())
}

/// Only global unicast, without the ranges that embed an IPv4 address.
fn is_public_v6(it: Ipv6Addr) -> bool {
    let [a, b, ..] = it.segments();
    let embeds_v4 = a == 0x2002 || (a == 0x2001 && b == 0);
    let is_documentation = a == 0x2001 && b == 0x0db8;
    a & 0xe000 == 0x2000 && !embeds_v4 && !is_documentation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_global_addresses_are_public() {
        let is_public = |it: &str| is_public(it.parse().unwrap());
        for public in ["93.184.215.14", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert!(is_public(public), "{public}");
        }
        for private in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
        ] {
            assert!(!is_public(private), "{private}");
        }
    }
}

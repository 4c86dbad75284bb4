//! Which network an address belongs to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of network that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// The public internet.
    Public,
    /// This machine.
    Loopback,
    /// A private network: RFC 1918, unique local and site-local addresses.
    Private,
    /// The network between a provider's customers and its NAT, 100.64.0.0/10.
    SharedNetwork,
    /// The local link, where cloud providers serve the credentials of a machine.
    LinkLocal,
    Multicast,
    /// `0.0.0.0` and `::`, which many systems treat as this machine.
    Unspecified,
    /// Documentation, benchmarks, tunnels that embed other addresses, and ranges without a use.
    Reserved,
}

impl AddressClass {
    /// The class of an address. An address that embeds an IPv4 address has the class of that one.
    pub fn of(address: IpAddr) -> AddressClass {
        match address.to_canonical() {
            IpAddr::V4(address) => class_of_v4(address),
            IpAddr::V6(address) => class_of_v6(address),
        }
    }

    /// Whether a rule with `private` covers it. The other classes must be named by address:
    /// no name should lead to the credentials of a cloud machine.
    pub(crate) fn is_private_network(self) -> bool {
        matches!(self, AddressClass::Loopback | AddressClass::Private | AddressClass::SharedNetwork)
    }
}

fn class_of_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        [0, ..] => AddressClass::Unspecified,
        [127, ..] => AddressClass::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [100, 64..=127, ..] => AddressClass::SharedNetwork,
        [169, 254, ..] => AddressClass::LinkLocal,
        [224..=239, ..] => AddressClass::Multicast,
        [240..=255, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn class_of_v6(address: Ipv6Addr) -> AddressClass {
    let segments = address.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // NAT64, and 6to4.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            class_of_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        [0xfc00..=0xfdff | 0xfec0..=0xfeff, ..] => AddressClass::Private,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        // Protocol assignments with Teredo, and documentation.
        [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => AddressClass::Reserved,
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AddressClass::Public => "public",
            AddressClass::Loopback => "loopback",
            AddressClass::Private => "private",
            AddressClass::SharedNetwork => "shared network",
            AddressClass::LinkLocal => "link-local",
            AddressClass::Multicast => "multicast",
            AddressClass::Unspecified => "unspecified",
            AddressClass::Reserved => "reserved",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::AddressClass::{self, *};

    #[rustfmt::skip]
    const TABLE: &[(AddressClass, &[&str])] = &[
        (Public, &["1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1",
            "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2606:4700::1111", "2001:200::1"]),
        (Loopback, &["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1",
            "2002:7f00:1::"]),
        (Private, &["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fdff::1",
            "fec0::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:c0a8:101::"]),
        (SharedNetwork, &["100.64.0.1", "100.127.255.255"]),
        (LinkLocal, &["169.254.169.254", "fe80::1", "febf::1", "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::"]),
        (Multicast, &["224.0.0.1", "239.255.255.255", "ff02::1"]),
        (Unspecified, &["0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0"]),
        (Reserved, &["240.0.0.1", "255.255.255.255", "192.0.0.1", "192.0.2.1", "198.18.0.1",
            "198.51.100.1", "203.0.113.1", "::127.0.0.1", "::2", "64:ff9b:1::7f00:1", "100::1",
            "2001::1", "2001:db8::1", "3fff::1", "5f00::1"]),
    ];

    #[test]
    fn address_has_the_class_of_its_range() {
        for (class, addresses) in TABLE {
            for address in *addresses {
                assert_eq!(AddressClass::of(address.parse().unwrap()), *class, "{address}");
            }
        }
    }
}

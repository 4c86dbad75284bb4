//! The address of a `connect` call.

use rustix::io::Errno;
use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The longest address of any family.
pub(super) const ADDRESS_BYTES_MAX: usize = 128;

/// What a process asks to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestedAddress {
    Internet(SocketAddr),
    UnixPath(PathBuf),
    /// A Unix socket without a path.
    AbstractUnix,
    /// The end of a connection.
    Unspecified,
    OtherFamily,
}

/// Reads an address as the kernel does.
pub(super) fn parse(bytes: &[u8]) -> Result<RequestedAddress, Errno> {
    let (family, rest) = bytes.split_first_chunk::<2>().ok_or(Errno::INVAL)?;
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_UNSPEC => Ok(RequestedAddress::Unspecified),
        libc::AF_INET => parse_ipv4(rest).map(RequestedAddress::Internet),
        libc::AF_INET6 => parse_ipv6(rest).map(RequestedAddress::Internet),
        libc::AF_UNIX => parse_unix(rest),
        _ => Ok(RequestedAddress::OtherFamily),
    }
}

fn parse_ipv4(bytes: &[u8]) -> Result<SocketAddr, Errno> {
    // The address is padded to 16 bytes.
    if bytes.len() < 14 {
        return Err(Errno::INVAL);
    }
    let port = u16::from_be_bytes(chunk(bytes, 0)?);
    Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::from(chunk::<4>(bytes, 2)?)), port))
}

fn parse_ipv6(bytes: &[u8]) -> Result<SocketAddr, Errno> {
    let port = u16::from_be_bytes(chunk(bytes, 0)?);
    let flow = u32::from_be_bytes(chunk(bytes, 2)?);
    let address = Ipv6Addr::from(chunk::<16>(bytes, 6)?);
    // Old programs leave out the interface.
    let scope = chunk(bytes, 22).map_or(0, u32::from_ne_bytes);
    Ok(SocketAddr::V6(SocketAddrV6::new(address, port, flow, scope)))
}

fn parse_unix(bytes: &[u8]) -> Result<RequestedAddress, Errno> {
    match bytes.first() {
        None => Err(Errno::INVAL),
        Some(0) => Ok(RequestedAddress::AbstractUnix),
        Some(_) => {
            let path = bytes.split(|it| *it == 0).next().unwrap_or_default();
            Ok(RequestedAddress::UnixPath(OsStr::from_bytes(path).into()))
        }
    }
}

fn chunk<const N: usize>(bytes: &[u8], start: usize) -> Result<[u8; N], Errno> {
    let chunk = bytes.get(start..).and_then(|it| it.first_chunk::<N>());
    chunk.copied().ok_or(Errno::INVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(family: i32, rest: &[u8]) -> Result<RequestedAddress, Errno> {
        let family = u16::try_from(family).unwrap().to_ne_bytes();
        parse(&[&family, rest].concat())
    }

    #[test]
    fn addresses_are_read_as_the_kernel_reads_them() {
        let mut ipv4 = vec![0x1f, 0x90, 127, 0, 0, 1];
        ipv4.resize(14, 0);
        let expected = RequestedAddress::Internet("127.0.0.1:8080".parse().unwrap());
        assert_eq!(address(libc::AF_INET, &ipv4), Ok(expected));
        let mut ipv6 = vec![0x1f, 0x90, 0, 0, 0, 0];
        ipv6.extend([0; 15]);
        ipv6.push(1);
        let expected = RequestedAddress::Internet("[::1]:8080".parse().unwrap());
        assert_eq!(address(libc::AF_INET6, &ipv6), Ok(expected));
        let expected = RequestedAddress::UnixPath("/a/b".into());
        assert_eq!(address(libc::AF_UNIX, b"/a/b\0c"), Ok(expected));
        assert_eq!(address(libc::AF_UNIX, b"\0name"), Ok(RequestedAddress::AbstractUnix));
        assert_eq!(address(libc::AF_NETLINK, &[0; 10]), Ok(RequestedAddress::OtherFamily));
    }

    #[test]
    fn short_addresses_are_invalid() {
        assert_eq!(parse(&[]), Err(Errno::INVAL));
        assert_eq!(address(libc::AF_INET, &[0; 6]), Err(Errno::INVAL));
        assert_eq!(address(libc::AF_INET6, &[0; 21]), Err(Errno::INVAL));
        assert_eq!(address(libc::AF_UNIX, &[]), Err(Errno::INVAL));
    }
}

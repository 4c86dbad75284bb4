//! A network of this process alone, in which a connection to any address works without leaving the machine.
#![expect(unsafe_code, reason = "calls without a safe form")]

use super::attempt_error::{AttemptResult, check, check_descriptor};
use std::{
    io,
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::fd::AsRawFd as _,
};

/// Moves this process to a network namespace with nothing but a loopback interface, which gets the address, and connects
/// to a server there.
pub(super) fn connect_in_own_network(address: Ipv4Addr) -> AttemptResult {
    // SAFETY: the call takes a number, and this process has one thread.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) })?;
    add_address(address)?;
    let listener = TcpListener::bind((address, 0))?;
    TcpStream::connect(listener.local_addr()?)?;
    Ok(())
}

fn add_address(address: Ipv4Addr) -> io::Result<()> {
    // SAFETY: the call takes numbers.
    let socket = check_descriptor(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM, 0) })?;
    let set = |command, request: libc::ifreq| {
        // SAFETY: both commands read one structure.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), command, &raw const request) })
    };
    let flags = i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(io::Error::other)?;
    set(
        libc::SIOCSIFFLAGS,
        libc::ifreq {
            ifr_name: interface_name(b"lo"),
            ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags },
        },
    )?;
    let [a, b, c, d] = address.octets().map(u8::cast_signed);
    let socket_address = libc::sockaddr {
        sa_family: 2,
        // A port of two bytes, the address, and nothing.
        sa_data: [0, 0, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0].map(|it| it as libc::c_char),
    };
    set(
        libc::SIOCSIFADDR,
        libc::ifreq {
            ifr_name: interface_name(b"lo:1"),
            ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_addr: socket_address },
        },
    )?;
    Ok(())
}

fn interface_name(text: &[u8]) -> [libc::c_char; libc::IFNAMSIZ] {
    let mut name = [0; libc::IFNAMSIZ];
    for (target, byte) in name.iter_mut().zip(text) {
        *target = byte.cast_signed() as libc::c_char;
    }
    name
}

//! Attempts with sockets. They reach servers on the loopback interface, or ask the proxy of the sandbox.
#![expect(unsafe_code, reason = "calls without a safe form")]

use super::attempt_error::{AttemptError, AttemptResult, check, check_descriptor};
use super::control_network::connect_in_own_network;
use crate::probes::{NO_PROXY, ProbeNeed, ProbeRequest, SOCKET_LINK, SandboxProbe};
use std::{
    io::{self, Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket},
    os::{
        fd::AsRawFd as _,
        linux::net::SocketAddrExt as _,
        unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixStream},
    },
    time::Duration,
};

/// How long an answer may take.
const ANSWER_BOUND: Duration = Duration::from_secs(10);
const HTTP_PORT: u16 = 80;

pub(super) fn attempt(probe: &SandboxProbe, request: &ProbeRequest) -> Option<AttemptResult> {
    let outside = &request.targets.outside;
    if let ProbeNeed::Address(address) = probe.need {
        return Some(reach_address(address, request.is_sandboxed));
    }
    let project = &request.targets.project;
    Some(match probe.name {
        "connect-daemon" => UnixStream::connect(&outside.unix_socket).map(drop).map_err(Into::into),
        "connect-through-link" => {
            UnixStream::connect(project.join(SOCKET_LINK)).map(drop).map_err(Into::into)
        }
        "send-datagram" => UnixDatagram::unbound()
            .and_then(|it| it.send_to(b"x", &outside.datagram_socket))
            .map(drop)
            .map_err(Into::into),
        "connect-abstract" => UnixAddress::from_abstract_name(&outside.abstract_socket)
            .and_then(|it| UnixStream::connect_addr(&it))
            .map(drop)
            .map_err(Into::into),
        "connect-tcp" => TcpStream::connect(outside.tcp_server).map(drop).map_err(Into::into),
        "connect-fast-open" => send_fast_open(outside.tcp_server),
        "query-dns" => query_server(outside.udp_server),
        "open-netlink" => {
            open_socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_KOBJECT_UEVENT)
        }
        "raw-socket" => open_socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP),
        "packet-socket" => open_socket(libc::AF_PACKET, libc::SOCK_RAW, 0),
        _ => return None,
    })
}

fn open_socket(family: i32, kind: i32, protocol: i32) -> AttemptResult {
    // SAFETY: the call takes numbers.
    check_descriptor(unsafe { libc::socket(family, kind, protocol) })?;
    Ok(())
}

/// Sends data with the first packet, without `connect`.
fn send_fast_open(server: SocketAddr) -> AttemptResult {
    let SocketAddr::V4(server) = server else {
        return Err(AttemptError::Failed("the server has no IPv4 address".to_owned()));
    };
    let address = libc::sockaddr_in {
        sin_family: 2,
        sin_port: server.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(server.ip().octets()) },
        sin_zero: [0; 8],
    };
    // SAFETY: the address and the data are valid for the lengths that are passed.
    unsafe {
        let socket = check_descriptor(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0))?;
        let sent = libc::sendto(
            socket.as_raw_fd(),
            b"x".as_ptr().cast(),
            1,
            libc::MSG_FASTOPEN,
            (&raw const address).cast(),
            16,
        );
        check(sent as i64)?;
    }
    Ok(())
}

/// A datagram without a receiver is no error, so an answer is needed.
fn query_server(server: SocketAddr) -> AttemptResult {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(ANSWER_BOUND))?;
    socket.send(b"secret.example.com")?;
    socket.recv(&mut [0; 64])?;
    Ok(())
}

/// Asks the proxy of the sandbox for an address. Without a sandbox, the address is one of a network namespace of this
/// process, so that no packet leaves the machine.
fn reach_address(address: &str, is_sandboxed: bool) -> AttemptResult {
    if !is_sandboxed {
        let address = address.parse().map_err(|_| AttemptError::Failed(address.to_owned()))?;
        return connect_in_own_network(address);
    }
    let Ok(proxy) = std::env::var("HTTP_PROXY") else {
        return Err(AttemptError::Refused(NO_PROXY.to_owned()));
    };
    let proxy = proxy.trim_start_matches("http://").trim_end_matches('/');
    let mut stream = TcpStream::connect(proxy)?;
    stream.set_read_timeout(Some(ANSWER_BOUND))?;
    let target = format!("{address}:{HTTP_PORT}");
    write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")?;
    let status = read_status(&mut stream)?;
    if status == "200" { Ok(()) } else { Err(AttemptError::Refused(status)) }
}

/// The status in `HTTP/1.1 403 Host refused by the sandbox`.
fn read_status(stream: &mut TcpStream) -> io::Result<String> {
    let mut start = [0; 12];
    stream.read_exact(&mut start)?;
    let status = start.rsplit(|it| *it == b' ').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(status).into_owned())
}

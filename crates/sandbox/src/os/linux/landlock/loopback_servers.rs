//! TCP servers of the sandboxed process, which only the process itself reaches by their ports.
//!
//! Agents run test suites and tools that serve and use a port of the loopback interface, whose interface is
//! that of the machine here. The supervisor binds the socket to a free port instead of the requested one,
//! and leads connections of the process to the requested port there. So a process neither occupies a port
//! that other programs know, nor reaches a server that is not its own.

use rustix::io::Errno;
use rustix::net::{AddressFamily, bind, connect, getsockname, listen, sockopt};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bound sockets that are remembered; the oldest is forgotten and cannot be reached any more.
const SERVERS_MAX: usize = 1024;
/// The longest queue of a listening socket.
const BACKLOG_MAX: i32 = 4096;
/// `TCP_LISTEN` in `/proc/net/tcp`.
const LISTEN_STATE: &str = "0A";
/// Tables of the kernel with the TCP sockets of the machine.
const SOCKET_TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// The sockets that the supervisor has bound.
#[derive(Debug, Default)]
pub(super) struct LoopbackServers {
    bound: Mutex<VecDeque<BoundSocket>>,
}

/// A socket with its identity in the kernel.
#[derive(Debug, Clone, Copy)]
struct BoundSocket {
    inode: u64,
    requested_port: u16,
    address: SocketAddr,
}

impl LoopbackServers {
    /// Binds a socket to a free port of the loopback interface, if it asks for that or for all interfaces.
    pub(super) fn bind(&self, socket: &OwnedFd, requested: SocketAddr) -> Result<(), Errno> {
        let is_v6_only = sockopt::ipv6_v6only(socket).unwrap_or(false);
        let ip = loopback_for(requested.ip(), is_v6_only).ok_or(Errno::ACCESS)?;
        if requested.port() != 0 && self.find_listening(requested.port()).is_some() {
            return Err(Errno::ADDRINUSE);
        }
        bind(socket, &SocketAddr::new(ip, 0))?;
        let address = SocketAddr::try_from(getsockname(socket)?)?;
        // A program that asks for any port reads from the socket which one it is.
        let requested_port = if requested.port() == 0 { address.port() } else { requested.port() };
        let mut bound = self.lock_bound();
        if bound.len() == SERVERS_MAX {
            bound.pop_front();
        }
        bound.push_back(BoundSocket { inode: inode_of(socket)?, requested_port, address });
        Ok(())
    }

    /// Listens on a socket that was bound here.
    pub(super) fn listen(&self, socket: &OwnedFd, backlog: i32) -> Result<(), Errno> {
        let inode = inode_of(socket)?;
        let is_bound = self.lock_bound().iter().any(|it| it.inode == inode);
        if is_bound { listen(socket, backlog.clamp(0, BACKLOG_MAX)) } else { Err(Errno::ACCESS) }
    }

    /// Connects a socket to the server of the process on a port. A missing server is an ordinary error, for
    /// which programs wait.
    pub(super) fn connect(&self, socket: &OwnedFd, port: u16) -> Result<(), Errno> {
        let server = self.find_listening(port).ok_or(Errno::CONNREFUSED)?;
        let target = match (sockopt::socket_domain(socket)?, server.address.ip()) {
            (AddressFamily::INET6, IpAddr::V4(ip)) => IpAddr::V6(ip.to_ipv6_mapped()),
            (AddressFamily::INET6, ip) => ip,
            (_, ip) => ip.to_canonical(),
        };
        connect(socket, &SocketAddr::new(target, server.address.port()))
    }

    fn find_listening(&self, port: u16) -> Option<BoundSocket> {
        let servers: Vec<BoundSocket> = {
            let bound = self.lock_bound();
            let is_meant =
                |it: &&BoundSocket| it.requested_port == port || it.address.port() == port;
            bound.iter().filter(is_meant).copied().collect()
        };
        let mut servers = servers.into_iter().peekable();
        servers.peek()?;
        let listening = listening_inodes();
        servers.rfind(|it| listening.contains(&it.inode))
    }

    fn lock_bound(&self) -> MutexGuard<'_, VecDeque<BoundSocket>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether connections to this address end on this machine.
pub(super) fn is_loopback(address: SocketAddr) -> bool {
    let ip = address.ip().to_canonical();
    ip.is_loopback() || ip.is_unspecified()
}

/// The loopback address for a requested one; none if it is that of another interface.
fn loopback_for(requested: IpAddr, is_v6_only: bool) -> Option<IpAddr> {
    let mapped = Ipv4Addr::LOCALHOST.to_ipv6_mapped();
    match requested {
        IpAddr::V4(ip) if ip.is_unspecified() => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        // IPv4 and IPv6 clients reach a server on all interfaces.
        IpAddr::V6(ip) if ip.is_unspecified() && !is_v6_only => Some(IpAddr::V6(mapped)),
        IpAddr::V6(ip) if ip.is_unspecified() => Some(IpAddr::V6(Ipv6Addr::LOCALHOST)),
        ip => ip.to_canonical().is_loopback().then_some(ip),
    }
}

fn inode_of(socket: &OwnedFd) -> Result<u64, Errno> {
    Ok(rustix::fs::fstat(socket)?.st_ino)
}

/// The inodes of all TCP sockets of the machine that listen.
fn listening_inodes() -> Vec<u64> {
    let tables = SOCKET_TABLES.map(|it| std::fs::read_to_string(it).unwrap_or_default());
    tables.iter().flat_map(|it| it.lines().filter_map(listening_inode)).collect()
}

/// Columns are separated by spaces: the number, both addresses, the state, five others, the inode.
fn listening_inode(line: &str) -> Option<u64> {
    let mut columns = line.split_whitespace().skip(3);
    columns.next().filter(|it| *it == LISTEN_STATE)?;
    columns.nth(5)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_found_in_the_table_of_the_kernel() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 \
                    1000        0 34567 1 0000000000000000 100 0 0 10 0";
        assert_eq!(listening_inode(line), Some(34567));
        assert_eq!(listening_inode(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listening_inode("  sl  local_address rem_address   st tx_queue"), None);
    }

    #[test]
    fn only_loopback_and_all_interfaces_become_loopback() {
        let mapped = |ip: &str, is_v6_only| {
            loopback_for(ip.parse().unwrap(), is_v6_only).map(|it| it.to_string())
        };
        assert_eq!(mapped("0.0.0.0", false).as_deref(), Some("127.0.0.1"));
        assert_eq!(mapped("::", false).as_deref(), Some("::ffff:127.0.0.1"));
        assert_eq!(mapped("::", true).as_deref(), Some("::1"));
        assert_eq!(mapped("::1", false).as_deref(), Some("::1"));
        assert_eq!(mapped("192.0.2.1", false), None);
    }
}

//! Connects a TCP socket of the sandboxed process with the proxy.
//!
//! The address in the proxy variables is only a name: nothing listens on it. For each connection the
//! supervisor listens on a port of the loopback interface for a moment, connects the socket of the
//! process to it, and accepts the connection whose address is that of the socket. So no other process of
//! the machine can use the proxy.

use crate::os::forward::copy_both_ways;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{connect, getsockname};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The address in the proxy variables.
pub(super) const PROXY_ADDRESS: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 3128);
/// A connection takes two threads of the supervisor.
const CONNECTIONS_MAX: usize = 256;
/// A connection on the loopback interface takes less than a millisecond.
const ACCEPT_LIMIT: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };
const COPY_STACK_BYTES: usize = 128 * 1024;

/// Connections between the process and its proxy.
#[derive(Debug, Default)]
pub(super) struct ProxyConnections {
    open: Arc<AtomicUsize>,
}

/// Whether a process means the proxy with an address.
pub(super) fn is_proxy_address(address: SocketAddr) -> bool {
    let (ip, port) = PROXY_ADDRESS;
    address.ip().to_canonical() == IpAddr::V4(ip) && address.port() == port
}

impl ProxyConnections {
    /// Connects `socket` to the proxy that is served on a Unix socket. The result is that of `connect`.
    pub(super) fn connect(
        &self,
        socket: &OwnedFd,
        requested: SocketAddr,
        proxy: &Path,
    ) -> Result<(), Errno> {
        let Some(slot) = ConnectionSlot::reserve(&self.open) else {
            return Err(Errno::CONNREFUSED);
        };
        let proxy = UnixStream::connect(proxy).map_err(|_| Errno::CONNREFUSED)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|it| to_errno(&it))?;
        let port = listener.local_addr().map_err(|it| to_errno(&it))?.port();
        // An IPv6 socket needs the IPv4 address in its IPv6 form, as requested.
        let target = SocketAddr::new(requested.ip(), port);
        let result = connect(socket, &target);
        if !matches!(result, Ok(()) | Err(Errno::INPROGRESS)) {
            return result;
        }
        let local = SocketAddr::try_from(getsockname(socket)?).map_err(|_| Errno::CONNREFUSED)?;
        let accepted = accept_from(&listener, local).map_err(|_| Errno::CONNREFUSED)?;
        start_forwarding(accepted, proxy, slot).map_err(|it| to_errno(&it))?;
        result
    }
}

/// Accepts the connection from this address, and closes others.
fn accept_from(listener: &TcpListener, local: SocketAddr) -> io::Result<TcpStream> {
    listener.set_nonblocking(true)?;
    loop {
        let mut ready = [PollFd::new(listener, PollFlags::IN)];
        if poll(&mut ready, Some(&ACCEPT_LIMIT))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let (stream, peer) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        };
        if peer.port() == local.port() && peer.ip() == local.ip().to_canonical() {
            stream.set_nonblocking(false)?;
            return Ok(stream);
        }
    }
}

/// Forwards until one side closes the connection.
fn start_forwarding(agent: TcpStream, proxy: UnixStream, slot: ConnectionSlot) -> io::Result<()> {
    let thread = thread::Builder::new().name("proxy-copy".into()).stack_size(COPY_STACK_BYTES);
    thread.spawn(move || {
        let _slot = slot;
        let _ended = copy_both_ways(&agent, &proxy);
    })?;
    Ok(())
}

fn to_errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::CONNREFUSED)
}

/// Counts one connection until it is dropped.
struct ConnectionSlot {
    open: Arc<AtomicUsize>,
}

impl ConnectionSlot {
    fn reserve(open: &Arc<AtomicUsize>) -> Option<ConnectionSlot> {
        let add = |count: usize| (count < CONNECTIONS_MAX).then_some(count + 1);
        open.fetch_update(Ordering::AcqRel, Ordering::Acquire, add).ok()?;
        Some(ConnectionSlot { open: Arc::clone(open) })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::AcqRel);
    }
}

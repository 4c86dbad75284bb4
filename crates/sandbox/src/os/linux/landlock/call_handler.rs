//! Performs the supervised calls of a process as far as its plan permits them.

use super::calling_thread::{CallingThread, LastLink, descriptor_path, path_of, to_int};
use super::file_metadata::MetadataCall;
use super::listener::{CallListener, SupervisedCall};
use super::path_grants::PathTable;
use super::proxy_connection::{ProxyConnections, is_proxy_address};
use super::socket_address::{self, ADDRESS_BYTES_MAX, RequestedAddress};
use super::terminals;
use crate::plan::{NetworkPlan, PathAccess};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, connect, connect_unspec, listen, sockopt};
use std::os::fd::OwnedFd;
use std::path::Path;

/// The longest queue of a listening socket.
const BACKLOG_MAX: i32 = 4096;

/// What decides about calls, and what they need.
#[derive(Debug)]
pub(super) struct CallHandler {
    pub(super) listener: CallListener,
    pub(super) paths: PathTable,
    pub(super) network: NetworkPlan,
    pub(super) proxies: ProxyConnections,
}

impl CallHandler {
    /// Performs and answers one call. It can wait as long as the call itself would.
    pub(super) fn handle(&self, call: &SupervisedCall) {
        let thread = CallingThread::new(&self.listener, call);
        let result = match call.number {
            libc::SYS_connect => self.connect(&thread, call.args),
            libc::SYS_listen => listen_unix(&thread, call.args),
            libc::SYS_ioctl => return self.open_terminal(&thread, call),
            _ => MetadataCall::read(&thread, call).and_then(|it| {
                self.require_writable(&it.target)?;
                it.perform()
            }),
        };
        self.listener.answer(call, result);
    }

    fn connect(&self, thread: &CallingThread<'_>, args: [u64; 6]) -> Result<(), Errno> {
        let length = usize::try_from(to_int(args[2])).map_err(|_| Errno::INVAL)?;
        if length > ADDRESS_BYTES_MAX {
            return Err(Errno::INVAL);
        }
        let socket = thread.duplicate_descriptor(args[0])?;
        let address = socket_address::parse(&thread.read_memory(args[1], length)?)?;
        match (address, &self.network) {
            (RequestedAddress::UnixPath(path), _) => self.connect_unix(thread, &socket, &path),
            (RequestedAddress::Internet(address), NetworkPlan::All) => connect(&socket, &address),
            (RequestedAddress::Unspecified, NetworkPlan::All) => connect_unspec(&socket),
            (RequestedAddress::Internet(address), NetworkPlan::Proxy { socket: proxy })
                if is_proxy_address(address) =>
            {
                self.proxies.connect(&socket, address, proxy)
            }
            _ => Err(Errno::ACCESS),
        }
    }

    /// The path of the socket is examined and used as one open file, which cannot be replaced between.
    fn connect_unix(
        &self,
        thread: &CallingThread<'_>,
        socket: &OwnedFd,
        path: &Path,
    ) -> Result<(), Errno> {
        let current = i64::from(libc::AT_FDCWD).cast_unsigned();
        let target = thread.open_path(current, path, LastLink::Followed)?;
        self.require_writable(&target)?;
        connect(socket, &SocketAddrUnix::new(descriptor_path(&target))?)
    }

    fn open_terminal(&self, thread: &CallingThread<'_>, call: &SupervisedCall) {
        let opened = thread
            .duplicate_descriptor(call.args[0])
            .and_then(|it| terminals::open_peer(&it, to_int(call.args[2])));
        match opened {
            Ok(terminal) => {
                let is_kept = to_int(call.args[2]) & libc::O_CLOEXEC == 0;
                self.listener.answer_descriptor(call, &terminal, is_kept);
            }
            Err(error) => self.listener.answer(call, Err(error)),
        }
    }

    /// What is read-only for the process has sockets of services and metadata that are not its own.
    fn require_writable(&self, target: &OwnedFd) -> Result<(), Errno> {
        let path = path_of(target)?;
        // Pipes and sockets without a path belong to the process.
        let is_unnamed =
            path.to_str().is_some_and(|it| it.starts_with("pipe:") || it.starts_with("socket:"));
        let is_writable = is_unnamed || self.paths.access_of(&path) == PathAccess::Writable;
        if is_writable { Ok(()) } else { Err(Errno::ACCESS) }
    }
}

/// Connections from outside are possible on Unix sockets only, whose paths Landlock limits.
fn listen_unix(thread: &CallingThread<'_>, args: [u64; 6]) -> Result<(), Errno> {
    let socket = thread.duplicate_descriptor(args[0])?;
    match sockopt::socket_domain(&socket)? {
        AddressFamily::UNIX => listen(&socket, to_int(args[1]).clamp(0, BACKLOG_MAX)),
        _ => Err(Errno::ACCESS),
    }
}

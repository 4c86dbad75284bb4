//! Performs the supervised calls of a process as far as its plan permits them.

use super::calling_thread::{CallingThread, LastLink, descriptor_path, path_of, to_int};
use super::file_metadata::MetadataCall;
use super::listener::{CallListener, SupervisedCall};
use super::loopback_servers::{LoopbackServers, is_loopback};
use super::path_grants::PathTable;
use super::proxy_connection::{ProxyConnections, is_proxy_address};
use super::socket_address::{self, ADDRESS_BYTES_MAX, RequestedAddress};
use super::terminals;
use crate::plan::{NetworkPlan, PathAccess};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, connect, connect_unspec, listen, sockopt};
use std::os::fd::OwnedFd;
use std::path::Path;

/// What decides about calls, and what they need.
#[derive(Debug)]
pub(super) struct CallHandler {
    pub(super) listener: CallListener,
    pub(super) paths: PathTable,
    pub(super) network: NetworkPlan,
    pub(super) proxies: ProxyConnections,
    pub(super) servers: LoopbackServers,
}

impl CallHandler {
    /// Performs and answers one call. It can wait as long as the call itself would.
    pub(super) fn handle(&self, call: &SupervisedCall) {
        let thread = CallingThread::new(&self.listener, call);
        let result = match call.number {
            libc::SYS_connect => self.connect(&thread, call.args),
            libc::SYS_bind => return self.bind(&thread, call),
            libc::SYS_listen => self.listen(&thread, call.args),
            libc::SYS_ioctl => return self.open_terminal(&thread, call),
            _ => MetadataCall::read(&thread, call).and_then(|it| {
                self.require_writable(&it.target)?;
                it.perform()
            }),
        };
        self.listener.answer(call, result);
    }

    fn connect(&self, thread: &CallingThread<'_>, args: [u64; 6]) -> Result<(), Errno> {
        let socket = thread.duplicate_descriptor(args[0])?;
        match (read_address(thread, args)?, &self.network) {
            (RequestedAddress::UnixPath(path), _) => self.connect_unix(thread, &socket, &path),
            (RequestedAddress::Internet(address), NetworkPlan::All) => connect(&socket, &address),
            (RequestedAddress::Unspecified, NetworkPlan::All) => connect_unspec(&socket),
            (RequestedAddress::Internet(address), NetworkPlan::Proxy { socket: proxy })
                if is_proxy_address(address) =>
            {
                self.proxies.connect(&socket, address, proxy)
            }
            (RequestedAddress::Internet(address), _) if is_loopback(address) => {
                self.servers.connect(&socket, address.port())
            }
            _ => Err(Errno::ACCESS),
        }
    }

    /// Binds TCP sockets. The process itself binds others and sockets with other addresses: Landlock limits
    /// the paths of Unix sockets, and permits no TCP port.
    fn bind(&self, thread: &CallingThread<'_>, call: &SupervisedCall) {
        let is_internet = |it: &OwnedFd| {
            let family = sockopt::socket_domain(it);
            family.is_ok_and(|it| it == AddressFamily::INET || it == AddressFamily::INET6)
        };
        let Ok(socket) = thread.duplicate_descriptor(call.args[0]) else {
            return self.listener.answer(call, Err(Errno::BADF));
        };
        if !is_internet(&socket) {
            return self.listener.let_process_continue(call);
        }
        let result = read_address(thread, call.args).and_then(|it| match it {
            RequestedAddress::Internet(address) => self.servers.bind(&socket, address),
            _ => Err(Errno::AFNOSUPPORT),
        });
        self.listener.answer(call, result);
    }

    fn listen(&self, thread: &CallingThread<'_>, args: [u64; 6]) -> Result<(), Errno> {
        let socket = thread.duplicate_descriptor(args[0])?;
        match sockopt::socket_domain(&socket)? {
            AddressFamily::UNIX => listen(&socket, to_int(args[1])),
            _ => self.servers.listen(&socket, to_int(args[1])),
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

/// The address at index 1 with its length at index 2.
fn read_address(thread: &CallingThread<'_>, args: [u64; 6]) -> Result<RequestedAddress, Errno> {
    let length = usize::try_from(to_int(args[2])).map_err(|_| Errno::INVAL)?;
    if length > ADDRESS_BYTES_MAX {
        return Err(Errno::INVAL);
    }
    socket_address::parse(&thread.read_memory(args[1], length)?)
}

//! The calls of sockets that differ between operating systems.

use rustix::net::{AddressFamily, SocketType, sockopt};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// The limit of the kernel for the path of a socket (`sun_path` without its terminating zero).
pub(crate) const PATH_BYTES_MAX: usize = system::PATH_BYTES_MAX;

/// Sends one message to a unix datagram socket, whose path may be an abstract name with `@` in front
/// of it. Never waits.
pub fn send_datagram(address: &OsStr, message: &[u8]) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    match address.as_bytes().strip_prefix(b"@") {
        Some(name) => system::send_to_abstract_name(&socket, name, message)?,
        None => socket.send_to(message, Path::new(address))?,
    };
    Ok(())
}

/// The pid of the process at the other end of a unix socket.
pub fn peer_pid(socket: impl AsFd) -> Option<i32> {
    system::peer_pid(socket)
}

/// The uid of the process that connected, or of the process that listens.
pub(crate) fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
    system::peer_uid(socket)
}

/// A unix stream socket that closes on exec.
pub(crate) fn create_stream_socket(is_nonblocking: bool) -> io::Result<OwnedFd> {
    system::create_stream_socket(is_nonblocking)
}

/// Whether this is a unix stream socket that listens, as far as the system tells.
pub(crate) fn is_unix_listener(socket: impl AsFd) -> io::Result<bool> {
    let kind = sockopt::socket_type(&socket)?;
    let family = rustix::net::getsockname(&socket)?.address_family();
    let is_stream = (family, kind) == (AddressFamily::UNIX, SocketType::STREAM);
    Ok(is_stream && system::is_listening(&socket)?)
}

#[cfg(target_os = "linux")]
mod system {
    use rustix::net::sockopt::{socket_acceptconn, socket_peercred};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};

    pub(super) const PATH_BYTES_MAX: usize = 107;

    pub(super) fn create_stream_socket(is_nonblocking: bool) -> io::Result<OwnedFd> {
        let mut flags = SocketFlags::CLOEXEC;
        flags.set(SocketFlags::NONBLOCK, is_nonblocking);
        Ok(socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
    }

    pub(super) fn is_listening(socket: impl AsFd) -> io::Result<bool> {
        Ok(socket_acceptconn(socket)?)
    }

    pub(super) fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
        Ok(socket_peercred(socket)?.uid.as_raw())
    }

    pub(super) fn peer_pid(socket: impl AsFd) -> Option<i32> {
        Some(socket_peercred(socket).ok()?.pid.as_raw_nonzero().get())
    }

    pub(super) fn send_to_abstract_name(
        socket: &UnixDatagram,
        name: &[u8],
        message: &[u8],
    ) -> io::Result<usize> {
        socket.send_to_addr(message, &SocketAddr::from_abstract_name(name)?)
    }
}

#[cfg(target_os = "macos")]
mod system {
    use nix::sys::socket::{getsockopt, sockopt};
    use rustix::io::{FdFlags, fcntl_setfd, ioctl_fionbio};
    use rustix::net::{AddressFamily, SocketType, socket};
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::net::UnixDatagram;

    pub(super) const PATH_BYTES_MAX: usize = 103;

    pub(super) fn create_stream_socket(is_nonblocking: bool) -> io::Result<OwnedFd> {
        let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
        fcntl_setfd(&socket, FdFlags::CLOEXEC)?;
        ioctl_fionbio(&socket, is_nonblocking)?;
        Ok(socket)
    }

    /// The system does not tell. The caller calls `listen`, which fails for a connected socket.
    #[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
    pub(super) fn is_listening(_socket: impl AsFd) -> io::Result<bool> {
        Ok(true)
    }

    pub(super) fn peer_uid(socket: impl AsFd) -> io::Result<u32> {
        Ok(getsockopt(&socket, sockopt::LocalPeerCred)?.uid())
    }

    pub(super) fn peer_pid(socket: impl AsFd) -> Option<i32> {
        getsockopt(&socket, sockopt::LocalPeerPid).ok().filter(|it| 0 < *it)
    }

    /// Only Linux has abstract names.
    pub(super) fn send_to_abstract_name(
        _socket: &UnixDatagram,
        _name: &[u8],
        _message: &[u8],
    ) -> io::Result<usize> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no abstract socket names"))
    }
}

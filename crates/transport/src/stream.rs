//! A connection over a unix socket, TCP or pipes, and its two halves.
//!
//! It is an enum and not a trait object, because reading and writing are the hot path and there are
//! only three variants.

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{Shutdown, shutdown};
use std::future::Future as _;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncReadExt as _, Interest};
use tokio::net::unix::pipe;
use tokio::net::{TcpStream, UnixStream, tcp, unix};

/// An open connection to an authenticated peer: accepted by a [`crate::ClientListener`], or dialed
/// by us.
#[derive(Debug)]
pub struct ClientStream {
    pub(crate) carrier: StreamCarrier,
    /// The bytes that the peer sent right after the line that authenticated it.
    pub(crate) early_bytes: Bytes,
}

#[derive(Debug)]
pub(crate) enum StreamCarrier {
    Unix(UnixStream),
    Tcp(TcpStream),
    Pipes(pipe::Receiver, pipe::Sender),
}

/// The process that connected to our unix socket, as the kernel recorded it at that moment.
#[derive(Debug, Clone, Copy)]
pub struct UnixPeer<'a> {
    /// `None` if it has no pid here: it is in another pid namespace and not a descendant of ours.
    pub pid: Option<u32>,
    pub uid: u32,
    pub socket: BorrowedFd<'a>,
}

impl ClientStream {
    /// The process that connected; `None` for TCP and pipes.
    pub fn unix_peer(&self) -> Option<UnixPeer<'_>> {
        let StreamCarrier::Unix(stream) = &self.carrier else { return None };
        let peer = stream.peer_cred().ok()?;
        let pid = peer.pid().and_then(|it| u32::try_from(it).ok()).filter(|it| *it != 0);
        Some(UnixPeer { pid, uid: peer.uid(), socket: stream.as_fd() })
    }

    /// Writes the first line on a new connection, which has room for it. tokio has not yet
    /// registered the socket as writable, so this bypasses tokio.
    pub(crate) fn write_first_line(&self, line: &[u8]) -> io::Result<()> {
        let written = match &self.carrier {
            StreamCarrier::Unix(stream) => rustix::io::write(stream, line),
            StreamCarrier::Tcp(stream) => rustix::io::write(stream, line),
            StreamCarrier::Pipes(_, write) => rustix::io::write(write, line),
        };
        if written? == line.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    pub(crate) fn split(self) -> (ReadHalf, WriteHalf, Bytes) {
        let (read, write) = match self.carrier {
            StreamCarrier::Unix(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Unix(read), WriteHalf::Unix(write))
            }
            StreamCarrier::Tcp(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Tcp(read), WriteHalf::Tcp(write))
            }
            StreamCarrier::Pipes(read, write) => (ReadHalf::Pipe(read), WriteHalf::Pipe(write)),
        };
        (read, write, self.early_bytes)
    }
}

impl From<StreamCarrier> for ClientStream {
    fn from(carrier: StreamCarrier) -> ClientStream {
        ClientStream { carrier, early_bytes: Bytes::new() }
    }
}

impl From<UnixStream> for ClientStream {
    fn from(stream: UnixStream) -> ClientStream {
        StreamCarrier::Unix(stream).into()
    }
}

impl From<TcpStream> for ClientStream {
    fn from(stream: TcpStream) -> ClientStream {
        StreamCarrier::Tcp(stream).into()
    }
}

/// A connection inside this process: our end on the current runtime, and a blocking one for the
/// client.
pub fn stream_pair() -> io::Result<(ClientStream, StdUnixStream)> {
    let (daemon_end, client_end) = StdUnixStream::pair()?;
    daemon_end.set_nonblocking(true)?;
    Ok((UnixStream::from_std(daemon_end)?.into(), client_end))
}

#[derive(Debug)]
pub(crate) enum ReadHalf {
    Unix(unix::OwnedReadHalf),
    Tcp(tcp::OwnedReadHalf),
    Pipe(pipe::Receiver),
}

impl ReadHalf {
    /// Reads once, at most as much as `buffer` has room for.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        // tokio's `read` skips the next system call after a short read, which has emptied the
        // socket.
        match self {
            ReadHalf::Unix(half) => pin!(half.read(buffer)).poll(cx),
            ReadHalf::Tcp(half) => pin!(half.read(buffer)).poll(cx),
            ReadHalf::Pipe(half) => pin!(half.read(buffer)).poll(cx),
        }
    }

    /// For the last read, which must not rely on tokio's readiness: a newer event may be pending.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        match self {
            ReadHalf::Unix(half) => AsRef::<UnixStream>::as_ref(half).as_fd(),
            ReadHalf::Tcp(half) => AsRef::<TcpStream>::as_ref(half).as_fd(),
            ReadHalf::Pipe(half) => half.as_fd(),
        }
    }
}

#[derive(Debug)]
pub(crate) enum WriteHalf {
    Unix(unix::OwnedWriteHalf),
    Tcp(tcp::OwnedWriteHalf),
    Pipe(pipe::Sender),
}

impl WriteHalf {
    pub(crate) fn try_write_vectored(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            WriteHalf::Unix(half) => half.try_write_vectored(slices),
            WriteHalf::Tcp(half) => half.try_write_vectored(slices),
            WriteHalf::Pipe(half) => half.try_write_vectored(slices),
        }
    }

    /// Records after a partial write that the socket is not writable, which saves a system call.
    pub(crate) fn mark_full(&self) {
        let full = || -> io::Result<()> { Err(io::ErrorKind::WouldBlock.into()) };
        let _ = match self {
            WriteHalf::Unix(half) => {
                AsRef::<UnixStream>::as_ref(half).try_io(Interest::WRITABLE, full)
            }
            WriteHalf::Tcp(half) => {
                AsRef::<TcpStream>::as_ref(half).try_io(Interest::WRITABLE, full)
            }
            WriteHalf::Pipe(half) => half.try_io(full),
        };
    }

    pub(crate) async fn writable(&self) -> io::Result<()> {
        match self {
            WriteHalf::Unix(half) => half.writable().await,
            WriteHalf::Tcp(half) => half.writable().await,
            WriteHalf::Pipe(half) => half.writable().await,
        }
    }

    /// Whether the peer no longer reads. A TCP peer that has closed looks like one that only closed
    /// its sending side, until we write.
    pub(crate) fn is_disconnected(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.fd(), PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let polled = rustix::event::poll(&mut fds, Some(&now));
        polled.is_ok() && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }

    /// Closes the sending side: the peer reads an end of file. Pipes close when they are dropped.
    pub(crate) fn finish(&self) {
        if !matches!(self, WriteHalf::Pipe(_)) {
            let _ = shutdown(self.fd(), Shutdown::Write);
        }
    }

    /// Closes the connection now, in both directions.
    pub(crate) fn close_both(&self) {
        if !matches!(self, WriteHalf::Pipe(_)) {
            let _ = shutdown(self.fd(), Shutdown::Both);
        }
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            WriteHalf::Unix(half) => AsRef::<UnixStream>::as_ref(half).as_fd(),
            WriteHalf::Tcp(half) => AsRef::<TcpStream>::as_ref(half).as_fd(),
            WriteHalf::Pipe(half) => half.as_fd(),
        }
    }
}

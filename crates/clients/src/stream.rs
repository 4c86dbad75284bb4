//! The two ends of a connection, whatever carries it.
//!
//! An enum and not a trait object: reading and writing are the hot path, and there are three
//! carriers only.

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

/// An open connection whose peer may speak: admitted by a [`crate::Listener`], or dialled by us.
#[derive(Debug)]
pub struct Stream {
    pub(crate) carrier: Carrier,
    /// What the peer said right behind the line that let it in.
    pub(crate) early: Bytes,
}

#[derive(Debug)]
pub(crate) enum Carrier {
    Unix(UnixStream),
    Tcp(TcpStream),
    Pipes(pipe::Receiver, pipe::Sender),
}

/// The process that connected to our unix socket, as the kernel noted it at that moment.
#[derive(Debug, Clone, Copy)]
pub struct UnixPeer<'a> {
    /// `None` if it has no number here: it is in another pid namespace, and no descendant of ours.
    pub pid: Option<u32>,
    pub uid: u32,
    pub socket: BorrowedFd<'a>,
}

impl Stream {
    /// Who connected, where that is known: TCP and pipes do not tell.
    pub fn unix_peer(&self) -> Option<UnixPeer<'_>> {
        let Carrier::Unix(stream) = &self.carrier else { return None };
        let peer = stream.peer_cred().ok()?;
        let pid = peer.pid().and_then(|it| u32::try_from(it).ok()).filter(|it| *it != 0);
        Some(UnixPeer { pid, uid: peer.uid(), socket: stream.as_fd() })
    }

    /// Says the first line on a fresh connection, which has room for it; tokio does not know that yet.
    pub(crate) fn begin(&self, line: &[u8]) -> io::Result<()> {
        let written = match &self.carrier {
            Carrier::Unix(stream) => rustix::io::write(stream, line),
            Carrier::Tcp(stream) => rustix::io::write(stream, line),
            Carrier::Pipes(_, write) => rustix::io::write(write, line),
        };
        if written? == line.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    pub(crate) fn split(self) -> (ReadHalf, WriteHalf, Bytes) {
        let (read, write) = match self.carrier {
            Carrier::Unix(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Unix(read), WriteHalf::Unix(write))
            }
            Carrier::Tcp(stream) => {
                let (read, write) = stream.into_split();
                (ReadHalf::Tcp(read), WriteHalf::Tcp(write))
            }
            Carrier::Pipes(read, write) => (ReadHalf::Pipe(read), WriteHalf::Pipe(write)),
        };
        (read, write, self.early)
    }
}

impl From<Carrier> for Stream {
    fn from(carrier: Carrier) -> Stream {
        Stream { carrier, early: Bytes::new() }
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Stream {
        Carrier::Unix(stream).into()
    }
}

impl From<TcpStream> for Stream {
    fn from(stream: TcpStream) -> Stream {
        Carrier::Tcp(stream).into()
    }
}

/// A connection inside this process: our end on the current runtime, and a blocking one for
/// whoever is the client.
pub fn pair() -> io::Result<(Stream, StdUnixStream)> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?.into(), theirs))
}

#[derive(Debug)]
pub(crate) enum ReadHalf {
    Unix(unix::OwnedReadHalf),
    Tcp(tcp::OwnedReadHalf),
    Pipe(pipe::Receiver),
}

impl ReadHalf {
    /// Reads once, what `buffer` has room for at most.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        // tokio's own read knows that a short read has emptied the socket and saves the next call.
        match self {
            ReadHalf::Unix(half) => pin!(half.read(buffer)).poll(cx),
            ReadHalf::Tcp(half) => pin!(half.read(buffer)).poll(cx),
            ReadHalf::Pipe(half) => pin!(half.read(buffer)).poll(cx),
        }
    }

    /// For the last read, which must not trust tokio's news: they may still be on their way.
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

    /// A write was cut short: the socket is not writable until the system says so. Saves the call
    /// that would find out.
    pub(crate) fn note_full(&self) {
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

    /// Whether nobody can hear us any more. A TCP peer that closed looks like one that only
    /// stopped talking, until we write.
    pub(crate) fn is_deaf(&self) -> bool {
        let mut fds = [PollFd::from_borrowed_fd(self.fd(), PollFlags::empty())];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let asked = rustix::event::poll(&mut fds, Some(&now));
        asked.is_ok() && fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR)
    }

    /// The peer reads an end of file after what was written. Pipes end when they are dropped.
    pub(crate) fn finish(&self) {
        if !matches!(self, WriteHalf::Pipe(_)) {
            let _ = shutdown(self.fd(), Shutdown::Write);
        }
    }

    /// Ends the connection now, in both directions.
    pub(crate) fn cut(&self) {
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

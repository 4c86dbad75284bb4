//! One connection of a client: a socket, and its seat in the room for as long as it is open.

use super::room::{Pass, Seat};
use crate::farewell::farewell;
use rustix::net::sockopt;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

/// Whoever reads and writes here may drop it at any time; it is closed so that the peer hears the
/// last that was said.
#[derive(Debug)]
pub(super) struct Conn {
    /// Both until it is dropped.
    open: Option<(TcpStream, Seat)>,
    /// The peer has said all.
    heard_all: bool,
}

const OPEN: &str = "it is open until it is dropped";

impl Conn {
    pub(super) fn new(stream: TcpStream, seat: Seat) -> Conn {
        // An event is sent when it is whole: nothing is gained by waiting for more.
        let _ = stream.set_nodelay(true);
        // A peer whose machine is gone is noticed, although it never says so.
        let _ = sockopt::set_socket_keepalive(&stream, true);
        let _ = sockopt::set_tcp_keepidle(&stream, Duration::from_mins(1));
        let _ = sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(15));
        let _ = sockopt::set_tcp_keepcnt(&stream, 4);
        Conn { open: Some((stream, seat)), heard_all: false }
    }

    /// Our own address, on the way that the client came.
    pub(super) fn local_ip(&self) -> io::Result<IpAddr> {
        self.parts().0.local_addr().map(|it| it.ip())
    }

    pub(super) fn pass(&self) -> Pass {
        self.parts().1.pass()
    }

    fn parts(&self) -> &(TcpStream, Seat) {
        self.open.as_ref().expect(OPEN)
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut TcpStream> {
        Pin::new(&mut self.get_mut().open.as_mut().expect(OPEN).0)
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        let Some((stream, seat)) = self.open.take() else { return };
        if seat.is_evicted() {
            // At once, and nothing of it is kept: there may be thousands.
            let _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
        } else if !self.heard_all
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(leave(stream, seat));
        }
    }
}

/// It has its seat until the socket is closed.
async fn leave(stream: TcpStream, seat: Seat) {
    let pass = seat.pass();
    tokio::select! {
        () = pass.evicted() => {}
        () = farewell(stream) => {}
    }
}

impl AsyncRead for Conn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (filled, room) = (buf.filled().len(), buf.remaining());
        let read = ready!(self.as_mut().stream().poll_read(cx, buf));
        if read.is_err() || 0 < room && buf.filled().len() == filled {
            self.heard_all = true;
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for Conn {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }
}

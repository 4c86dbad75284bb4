//! The socket of one client, which occupies a slot of the connection limiter while it is open.

use super::connection_limiter::{ConnectionHandle, ConnectionSlot};
use jackfield_transport::close_gracefully;
use rustix::net::sockopt;
use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;

/// A stream that may be dropped at any time; it is then closed gracefully, so that the peer
/// receives the last bytes.
#[derive(Debug)]
pub(super) struct LimitedStream {
    /// Present until it is dropped.
    open: Option<(TcpStream, ConnectionSlot)>,
    /// Whether the peer has closed its sending side.
    is_read_to_end: bool,
}

const OPEN: &str = "the socket is present until the stream is dropped";

impl LimitedStream {
    pub(super) fn new(stream: TcpStream, slot: ConnectionSlot) -> LimitedStream {
        // Events are written completely, so waiting for more data gains nothing.
        let _ = stream.set_nodelay(true);
        // Keepalives detect a peer whose machine has disappeared.
        let _ = sockopt::set_socket_keepalive(&stream, true);
        let _ = sockopt::set_tcp_keepidle(&stream, Duration::from_mins(1));
        let _ = sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(15));
        let _ = sockopt::set_tcp_keepcnt(&stream, 4);
        LimitedStream { open: Some((stream, slot)), is_read_to_end: false }
    }

    /// Our own address, to which the client connected.
    pub(super) fn local_ip(&self) -> io::Result<IpAddr> {
        self.parts().0.local_addr().map(|it| it.ip())
    }

    pub(super) fn handle(&self) -> ConnectionHandle {
        self.parts().1.handle()
    }

    fn parts(&self) -> &(TcpStream, ConnectionSlot) {
        self.open.as_ref().expect(OPEN)
    }

    fn stream(self: Pin<&mut Self>) -> Pin<&mut TcpStream> {
        Pin::new(&mut self.get_mut().open.as_mut().expect(OPEN).0)
    }
}

impl Drop for LimitedStream {
    fn drop(&mut self) {
        let Some((stream, slot)) = self.open.take() else { return };
        if slot.is_evicted() {
            // Closed at once without a lingering socket, because there may be thousands.
            let _ = sockopt::set_socket_linger(&stream, Some(Duration::ZERO));
        } else if !self.is_read_to_end
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(close_with_slot(stream, slot));
        }
    }
}

/// Closes the socket gracefully. It occupies its slot until then.
async fn close_with_slot(stream: TcpStream, slot: ConnectionSlot) {
    let handle = slot.handle();
    tokio::select! {
        () = handle.evicted() => {}
        () = close_gracefully(stream) => {}
    }
}

impl AsyncRead for LimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (filled, room) = (buf.filled().len(), buf.remaining());
        let read = ready!(self.as_mut().stream().poll_read(cx, buf));
        if read.is_err() || 0 < room && buf.filled().len() == filled {
            self.is_read_to_end = true;
        }
        Poll::Ready(read)
    }
}

impl AsyncWrite for LimitedStream {
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

//! A stream that counts its reads and writes, so that one timer can notice when nothing moves.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;

/// The connection of a process.
#[derive(Debug)]
pub(crate) struct CountedStream {
    stream: UnixStream,
    activity: StreamActivity,
}

/// The number of reads and writes of a stream that moved bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamActivity(Arc<AtomicU64>);

impl StreamActivity {
    fn count_bytes(&self, moved: usize) {
        if 0 < moved {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Completes once no byte has moved for this time, after at most twice this time.
    pub(crate) async fn wait_until_idle(&self, time: Duration) {
        let mut last = self.0.load(Ordering::Relaxed);
        loop {
            tokio::time::sleep(time).await;
            let now = self.0.load(Ordering::Relaxed);
            if now == last {
                return;
            }
            last = now;
        }
    }
}

impl CountedStream {
    pub(crate) fn new(stream: UnixStream) -> (CountedStream, StreamActivity) {
        let activity = StreamActivity::default();
        (CountedStream { stream, activity: activity.clone() }, activity)
    }

    fn count_written(&self, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(written)) = result {
            self.activity.count_bytes(written);
        }
        result
    }
}

impl AsyncRead for CountedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.activity.count_bytes(buf.filled().len() - before);
        result
    }
}

impl AsyncWrite for CountedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.count_written(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.count_written(result)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

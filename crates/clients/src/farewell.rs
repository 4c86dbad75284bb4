//! The end of a connection to a peer that may still be speaking.

use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

/// What a peer gets to read our last words, and how much of its own is thrown away meanwhile.
const WITHIN: Duration = Duration::from_secs(1);
const BYTES_MAX: u64 = 1 << 20;

/// Says that we say no more, and waits a moment for the peer to do the same. To close with its words
/// unread would reset the connection, and it might never hear our last ones.
pub(crate) async fn farewell(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let end = async {
        stream.shutdown().await?;
        let mut rest = tokio::io::AsyncReadExt::take(stream, BYTES_MAX);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // A peer that does not listen is not waited for.
    let _ = tokio::time::timeout(WITHIN, end).await;
}

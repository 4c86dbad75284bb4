//! Closes a connection to a peer that may still be sending.

use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

/// How long the peer may take to close, and how many of its bytes are discarded meanwhile.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
const DISCARDED_BYTES_MAX: u64 = 1 << 20;

/// Closes our sending side and waits a moment for the peer to close, too. Closing with unread data
/// would reset the connection, and the peer might not receive our last bytes.
pub async fn close_gracefully(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let end = async {
        stream.shutdown().await?;
        let mut rest = tokio::io::AsyncReadExt::take(stream, DISCARDED_BYTES_MAX);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // A peer that does not close in time is disconnected.
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, end).await;
}

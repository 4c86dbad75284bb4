//! NDJSON over TLS: a task relays the bytes between the network and a socket pair inside this
//! process, so that the rest of the code handles it like any other connection.

use crate::auth::{self, AuthRefusal};
use crate::authenticator::ClientAuthenticator;
use crate::outgoing_queue::LINGER;
use crate::stream::{ClientStream, stream_pair};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, copy, split};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The time limit for the handshake: a few round trips around the world.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Performs the handshake and authenticates the peer, or sends it the reason of the refusal.
pub(crate) async fn authenticate_tls_peer(
    stream: TcpStream,
    tls: TlsAcceptor,
    authenticator: &ClientAuthenticator,
) -> Result<ClientStream, AuthRefusal> {
    let stream = match timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(source)) => return Err(AuthRefusal::Handshake { source }),
        Err(_) => return Err(AuthRefusal::TimedOut),
    };
    let (stream, early_bytes) = auth::authenticate_peer(stream, authenticator).await?;
    let connect = || -> io::Result<(ClientStream, UnixStream)> {
        let (client_stream, relay_end) = stream_pair()?;
        relay_end.set_nonblocking(true)?;
        Ok((client_stream, UnixStream::from_std(relay_end)?))
    };
    let (client_stream, relay_end) =
        connect().map_err(|source| AuthRefusal::Handshake { source })?;
    tokio::spawn(relay_tls(stream, relay_end));
    Ok(ClientStream { early_bytes, ..client_stream })
}

/// Runs until both sides have ended. A peer that does not close in time after us is disconnected.
async fn relay_tls(network: TlsStream<TcpStream>, local: UnixStream) {
    let (mut network_read, mut network_write) = split(network);
    let (mut local_read, mut local_write) = local.into_split();
    let mut inbound = Box::pin(async move {
        // The local side is closed even after an error.
        let _ = copy(&mut network_read, &mut local_write).await;
        let _ = local_write.shutdown().await;
    });
    let mut outbound = Box::pin(async move {
        let _ = copy(&mut local_read, &mut network_write).await;
        let _ = network_write.shutdown().await;
    });
    tokio::select! {
        () = &mut inbound => outbound.await,
        () = &mut outbound => drop(timeout(LINGER, inbound).await),
    }
}

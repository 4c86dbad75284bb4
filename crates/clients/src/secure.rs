//! NDJSON over TLS: a task of its own carries the bytes between the network and a socket inside this
//! process, so that everything behind it is the same as for any other connection.

use crate::auth::{self, Refusal};
use crate::keys::Keys;
use crate::outbox::LINGER;
use crate::stream::{Stream, pair};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, copy, split};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// What a peer gets for its side of the handshake: a few round trips around the world.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// Shakes hands, waits for the token, and lets the peer in or says why not.
pub(crate) async fn admit(
    stream: TcpStream,
    tls: TlsAcceptor,
    keys: &Keys,
) -> Result<Stream, Refusal> {
    let stream = match timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(source)) => return Err(Refusal::Handshake { source }),
        Err(_) => return Err(Refusal::Late),
    };
    let (stream, early) = auth::admit(stream, keys).await?;
    let inside = || -> io::Result<(Stream, UnixStream)> {
        let (ours, theirs) = pair()?;
        theirs.set_nonblocking(true)?;
        Ok((ours, UnixStream::from_std(theirs)?))
    };
    let (ours, theirs) = inside().map_err(|source| Refusal::Handshake { source })?;
    tokio::spawn(carry(stream, theirs));
    Ok(Stream { early, ..ours })
}

/// Until both sides have ended. A peer that does not close after us is not waited for.
async fn carry(outside: TlsStream<TcpStream>, inside: UnixStream) {
    let (mut hear, mut say) = split(outside);
    let (mut from_us, mut to_us) = inside.into_split();
    let mut inwards = Box::pin(async move {
        // However it ended, the connection inside is to know.
        let _ = copy(&mut hear, &mut to_us).await;
        let _ = to_us.shutdown().await;
    });
    let mut outwards = Box::pin(async move {
        let _ = copy(&mut from_us, &mut say).await;
        let _ = say.shutdown().await;
    });
    tokio::select! {
        () = &mut inwards => outwards.await,
        () = &mut outwards => drop(timeout(LINGER, inwards).await),
    }
}

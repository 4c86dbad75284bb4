//! Authenticates a TCP connection in its first lines: a client that can read the token file is
//! accepted. Our own client requires a proof from the daemon first ([`crate::proof`]); other
//! programs may send the token in their first line.

use crate::authenticator::{ClientAuthenticator, PeerIdentity};
use crate::graceful_close::close_gracefully;
use crate::proof::{self, ChallengeExchange, ChallengeNonce};
use bytes::{Bytes, BytesMut};
use jackfield_protocol::{Fault, Frame, Kind, acp::Method};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

pub(crate) const METHOD: &str = Method::ControlAuth.name();
/// Each line has less than 250 bytes.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 10;
/// The time limit for the lines, which a client can send immediately after it has connected.
pub(crate) const AUTH_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a peer was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AuthRefusal {
    #[error("uid {uid} may not use the socket of uid {own_uid}")]
    OtherUser { uid: u32, own_uid: u32 },
    #[error("the token is wrong")]
    WrongToken,
    #[error("the proof that the client knows the token is wrong")]
    WrongProof,
    #[error("the system provides no random bytes for a challenge")]
    NoRandomness {
        #[source]
        source: io::Error,
    },
    #[error("the first line is not `{METHOD}` with a token")]
    NoToken,
    #[error("received no token within {} s", AUTH_TIMEOUT.as_secs())]
    TimedOut,
    #[error("the first line is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    #[error("the peer disconnected before it sent a token")]
    Disconnected,
    #[error("the TLS handshake with the peer failed")]
    Handshake {
        #[source]
        source: io::Error,
    },
}

impl AuthRefusal {
    /// The line that reports the refusal to the peer.
    pub(crate) fn to_line(&self) -> Bytes {
        let fault = Fault::InvalidRequest { why: self.to_string() };
        let mut line = BytesMut::from(&Frame::error_for("null", &fault).bytes()[..]);
        line.extend_from_slice(b"\n");
        line.freeze()
    }
}

/// Authenticates the peer, or sends it the reason of the refusal. Also returns the bytes that must
/// be processed first: the binding of a tenant, and what the peer sent right after the line.
pub(crate) async fn authenticate_peer<S>(
    mut stream: S,
    authenticator: &ClientAuthenticator,
) -> Result<(S, Bytes), AuthRefusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut buffer = BytesMut::with_capacity(LINE_BYTES_MAX);
    let checked =
        timeout(AUTH_TIMEOUT, identify_peer(&mut stream, &mut buffer, authenticator)).await;
    let admitted = checked.unwrap_or(Err(AuthRefusal::TimedOut)).map(|identity| match identity {
        PeerIdentity::Operator => buffer.freeze(),
        PeerIdentity::Tenant(tenant) => tenant.prepend_binding(&buffer),
    });
    match admitted {
        Ok(early_bytes) => Ok((stream, early_bytes)),
        Err(refusal) => {
            // A new socket has room for one line.
            let line = refusal.to_line();
            let sent = async {
                stream.write_all(&line).await?;
                stream.flush().await
            };
            if sent.await.is_ok() {
                close_gracefully(stream).await;
            }
            Err(refusal)
        }
    }
}

/// Reads the credentials of the peer and determines its identity.
async fn identify_peer<S>(
    stream: &mut S,
    buffer: &mut BytesMut,
    authenticator: &ClientAuthenticator,
) -> Result<PeerIdentity, AuthRefusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let first = Frame::parse(next_line(stream, buffer).await?).map_err(|_| AuthRefusal::NoToken)?;
    if first.kind() != Kind::Request || first.method().as_deref() != Some(proof::CHALLENGE) {
        let params = auth_params(&first)?;
        let token_text =
            params.get("token").and_then(|it| it.as_str()).ok_or(AuthRefusal::NoToken)?;
        return authenticator.identify(token_text).ok_or(AuthRefusal::WrongToken);
    }
    // One token for the whole exchange, because the file may be replaced in the meantime.
    let token = authenticator.own_token();
    let nonce = ChallengeNonce::random().map_err(|source| AuthRefusal::NoRandomness { source })?;
    let (id, params) = (first.id().ok_or(AuthRefusal::NoToken)?, params(&first)?);
    let (exchange, answer) = ChallengeExchange::answer_challenge(id, &params, nonce, &token)
        .ok_or(AuthRefusal::NoToken)?;
    let sent = async {
        stream.write_all(format!("{answer}\n").as_bytes()).await?;
        stream.flush().await
    };
    sent.await.map_err(|_| AuthRefusal::Disconnected)?;
    let second =
        Frame::parse(next_line(stream, buffer).await?).map_err(|_| AuthRefusal::NoToken)?;
    let is_proved = exchange.is_proved(&auth_params(&second)?, &token);
    if is_proved { Ok(PeerIdentity::Operator) } else { Err(AuthRefusal::WrongProof) }
}

/// The next line without its newline. Bytes after it stay in the buffer.
pub(crate) async fn next_line(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
) -> Result<Bytes, AuthRefusal> {
    let mut searched = 0;
    loop {
        if let Some(at) = buffer[searched..].iter().position(|it| *it == b'\n') {
            let mut line = buffer.split_to(searched + at + 1);
            line.truncate(searched + at);
            return Ok(line.freeze());
        }
        if LINE_BYTES_MAX <= buffer.len() {
            return Err(AuthRefusal::TooLong);
        }
        searched = buffer.len();
        match stream.read_buf(buffer).await {
            Ok(count) if 0 < count => {}
            Ok(_) | Err(_) => return Err(AuthRefusal::Disconnected),
        }
    }
}

fn auth_params(frame: &Frame) -> Result<serde_json::Value, AuthRefusal> {
    if frame.kind() != Kind::Notification || frame.method().as_deref() != Some(METHOD) {
        return Err(AuthRefusal::NoToken);
    }
    params(frame)
}

fn params(frame: &Frame) -> Result<serde_json::Value, AuthRefusal> {
    frame.params().and_then(|it| serde_json::from_str(it).ok()).ok_or(AuthRefusal::NoToken)
}

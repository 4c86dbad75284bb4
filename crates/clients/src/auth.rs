//! The first lines of a TCP connection: who can read the token file may speak. Our own client has the daemon
//! prove itself first ([`crate::proof`]); programs of others may show the token in their first line.

use crate::farewell::farewell;
use crate::keys::{Keys, Who};
use crate::proof::{self, Exchange, Nonce};
use bytes::{Bytes, BytesMut};
use jackfield_wire::{Fault, Frame, Kind};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

pub(crate) const METHOD: &str = "_jackfield/auth";
/// Each line takes less than 250 bytes.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 10;
/// A client knows the token before it connects.
pub(crate) const LINE_WITHIN: Duration = Duration::from_secs(5);

/// Why a peer was not let in.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("uid {uid} may not use the socket of uid {ours}")]
    Stranger { uid: u32, ours: u32 },
    #[error("the token is wrong")]
    WrongToken,
    #[error("the proof that the client knows the token is wrong")]
    WrongProof,
    #[error("the system gives no random bytes for a challenge")]
    NoRandomness {
        #[source]
        source: io::Error,
    },
    #[error("the first line is not `{METHOD}` with a token")]
    NoToken,
    #[error("no token came within {} s", LINE_WITHIN.as_secs())]
    Late,
    #[error("the first line is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    #[error("the peer left before it showed a token")]
    Left,
    #[error("the peer does not speak TLS as we do")]
    Handshake {
        #[source]
        source: io::Error,
    },
}

impl Refusal {
    /// The line that says so to the peer.
    pub(crate) fn line(&self) -> Bytes {
        let fault = Fault::InvalidRequest { why: self.to_string() };
        let mut line = BytesMut::from(&Frame::error_for("null", &fault).bytes()[..]);
        line.extend_from_slice(b"\n");
        line.freeze()
    }
}

/// Waits for the line, and lets the peer in or says why not. Returns what is to be heard first, too: in
/// whose name it speaks, if in any, and what came right behind the line.
pub(crate) async fn admit<S>(mut stream: S, keys: &Keys) -> Result<(S, Bytes), Refusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut buffer = BytesMut::with_capacity(LINE_BYTES_MAX);
    let checked = timeout(LINE_WITHIN, check(&mut stream, &mut buffer, keys)).await;
    let admitted = checked.unwrap_or(Err(Refusal::Late)).map(|who| match who {
        Who::Operator => buffer.freeze(),
        Who::Guest(guest) => guest.before(&buffer),
    });
    match admitted {
        Ok(early) => Ok((stream, early)),
        Err(refusal) => {
            // A fresh socket has room for one line.
            let line = refusal.line();
            let said = async {
                stream.write_all(&line).await?;
                stream.flush().await
            };
            if said.await.is_ok() {
                farewell(stream).await;
            }
            Err(refusal)
        }
    }
}

/// Reads what the peer says about itself.
async fn check<S>(stream: &mut S, buffer: &mut BytesMut, keys: &Keys) -> Result<Who, Refusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let first = Frame::parse(next_line(stream, buffer).await?).map_err(|_| Refusal::NoToken)?;
    if first.kind() != Kind::Request || first.method().as_deref() != Some(proof::CHALLENGE) {
        let params = auth_params(&first)?;
        let shown = params.get("token").and_then(|it| it.as_str()).ok_or(Refusal::NoToken)?;
        return keys.who(shown).ok_or(Refusal::WrongToken);
    }
    // One token for the whole exchange: it may be replaced meanwhile.
    let token = keys.own();
    let nonce = Nonce::random().map_err(|source| Refusal::NoRandomness { source })?;
    let (id, params) = (first.id().ok_or(Refusal::NoToken)?, params(&first)?);
    let (exchange, answer) =
        Exchange::answer(id, &params, nonce, &token).ok_or(Refusal::NoToken)?;
    let said = async {
        stream.write_all(format!("{answer}\n").as_bytes()).await?;
        stream.flush().await
    };
    said.await.map_err(|_| Refusal::Left)?;
    let second = Frame::parse(next_line(stream, buffer).await?).map_err(|_| Refusal::NoToken)?;
    let is_proved = exchange.is_proved(&auth_params(&second)?, &token);
    if is_proved { Ok(Who::Operator) } else { Err(Refusal::WrongProof) }
}

/// The next line without its end; what came right behind it stays in the buffer.
pub(crate) async fn next_line(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
) -> Result<Bytes, Refusal> {
    let mut searched = 0;
    loop {
        if let Some(at) = buffer[searched..].iter().position(|it| *it == b'\n') {
            let mut line = buffer.split_to(searched + at + 1);
            line.truncate(searched + at);
            return Ok(line.freeze());
        }
        if LINE_BYTES_MAX <= buffer.len() {
            return Err(Refusal::TooLong);
        }
        searched = buffer.len();
        match stream.read_buf(buffer).await {
            Ok(count) if 0 < count => {}
            Ok(_) | Err(_) => return Err(Refusal::Left),
        }
    }
}

fn auth_params(frame: &Frame) -> Result<serde_json::Value, Refusal> {
    if frame.kind() != Kind::Notification || frame.method().as_deref() != Some(METHOD) {
        return Err(Refusal::NoToken);
    }
    params(frame)
}

fn params(frame: &Frame) -> Result<serde_json::Value, Refusal> {
    frame.params().and_then(|it| serde_json::from_str(it).ok()).ok_or(Refusal::NoToken)
}

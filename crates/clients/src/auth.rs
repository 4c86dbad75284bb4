//! The first line of a TCP connection: whoever can read the token file may speak.

use crate::farewell::farewell;
use crate::keys::{Keys, Who};
use crate::token::Token;
use bytes::{Bytes, BytesMut};
use jackfield_wire::{Fault, Frame, Kind};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

const METHOD: &str = "_jackfield/auth";
/// The line takes 130 bytes.
const LINE_BYTES_MAX: usize = 4 << 10;
/// A client knows the token before it connects.
const LINE_WITHIN: Duration = Duration::from_secs(5);

/// Why a peer was not let in.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("uid {uid} may not use the socket of uid {ours}")]
    Stranger { uid: u32, ours: u32 },
    #[error("the token is wrong")]
    WrongToken,
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

/// What a client sends first.
pub(crate) fn line(token: &Token) -> String {
    let params = format!(r#"{{"token":"{}"}}"#, token.reveal());
    format!("{}\n", Frame::notification(METHOD, &params).text())
}

/// Waits for the line, and lets the peer in or says why not. Returns what is to be heard first, too: in
/// whose name it speaks, if in any, and what came right behind the line.
pub(crate) async fn admit<S>(mut stream: S, keys: &Keys) -> Result<(S, Bytes), Refusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let read = timeout(LINE_WITHIN, first_line(&mut stream)).await;
    let admitted = match read {
        Ok(Ok((line, early))) => check(line, keys).map(|who| match who {
            Who::Operator => early,
            Who::Guest(guest) => guest.before(&early),
        }),
        Ok(Err(refusal)) => Err(refusal),
        Err(_) => Err(Refusal::Late),
    };
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

/// The line, and what came right behind it.
async fn first_line(stream: &mut (impl AsyncRead + Unpin)) -> Result<(Bytes, Bytes), Refusal> {
    let mut buffer = BytesMut::with_capacity(LINE_BYTES_MAX);
    loop {
        let searched = buffer.len();
        match stream.read_buf(&mut buffer).await {
            Ok(count) if 0 < count => {}
            Ok(_) | Err(_) => return Err(Refusal::Left),
        }
        if let Some(at) = buffer[searched..].iter().position(|it| *it == b'\n') {
            let mut line = buffer.split_to(searched + at + 1);
            line.truncate(searched + at);
            return Ok((line.freeze(), buffer.freeze()));
        }
        if LINE_BYTES_MAX <= buffer.len() {
            return Err(Refusal::TooLong);
        }
    }
}

fn check(line: Bytes, keys: &Keys) -> Result<Who, Refusal> {
    let frame = Frame::parse(line).map_err(|_| Refusal::NoToken)?;
    if frame.kind() != Kind::Notification || frame.method().as_deref() != Some(METHOD) {
        return Err(Refusal::NoToken);
    }
    let params: serde_json::Value =
        frame.params().and_then(|it| serde_json::from_str(it).ok()).ok_or(Refusal::NoToken)?;
    let shown = params.get("token").and_then(|it| it.as_str()).ok_or(Refusal::NoToken)?;
    keys.who(shown).ok_or(Refusal::WrongToken)
}

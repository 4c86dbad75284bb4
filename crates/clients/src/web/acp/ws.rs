//! ACP over a WebSocket: every text frame is one message, and each socket is one connection to the
//! hub. While the client does not take what we send, we read nothing from the hub.

use super::limits::{BATCH_MAX, FAREWELL, HEARD_BYTES_MAX, PING_EVERY};
use super::pulse::Pulse;
use crate::stream::Stream;
use crate::talk::{Hearing, Speaking};
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use jackfield_wire::{Fault, Frame};
use std::error::Error as _;
use std::future::pending;
use std::pin::pin;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

type Sink = SplitSink<WebSocket, Message>;

/// Why a connection is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The client closed, or its connection broke.
    Left,
    /// Nothing was seen of the client for too long.
    Silent,
    /// The hub closed: the daemon stops, or it has cut this client off.
    HubGone,
    TooLong,
    NotText,
    NotWebSocket,
}

/// Carries messages both ways until one side ends.
pub(super) async fn carry(socket: WebSocket, hub: Stream) {
    let (hearing, speaking) = hub.talk(HEARD_BYTES_MAX);
    let (mut sink, mut stream) = socket.split();
    let (refuse, refusals) = mpsc::channel(1);
    let pulse = Pulse::new();
    let end = tokio::select! {
        end = listen(&mut stream, speaking, refuse, &pulse) => end,
        end = tell(&mut sink, hearing, refusals, &pulse) => end,
    };
    tracing::debug!(?end, "a websocket has ended");
    part(&mut sink, &mut stream, end).await;
}

/// From the client to the hub.
async fn listen(
    stream: &mut SplitStream<WebSocket>,
    mut hub: Speaking,
    refuse: mpsc::Sender<Frame>,
    pulse: &Pulse,
) -> End {
    loop {
        let message = match stream.next().await {
            None => return End::Left,
            Some(Err(error)) => return broken(&error),
            Some(Ok(message)) => message,
        };
        pulse.felt();
        let text = match message {
            Message::Text(text) => Bytes::from(text),
            Message::Close(_) => return End::Left,
            // Pings are answered below us; the protocol has no use for binary ones.
            Message::Ping(_) | Message::Pong(_) | Message::Binary(_) => continue,
        };
        match Frame::parse(text) {
            Ok(frame) if hub.say(frame.bytes()).await.is_err() => {
                // Its last words are still to be told.
                return pending().await;
            }
            Ok(_) => {}
            Err(malformed) => {
                let refusal = Frame::error_for("null", &Fault::from(malformed));
                // The other direction lives as long as this one.
                let _ = refuse.send(refusal).await;
            }
        }
    }
}

/// From the hub to the client.
async fn tell(
    sink: &mut Sink,
    mut hub: Hearing,
    mut refusals: mpsc::Receiver<Frame>,
    pulse: &Pulse,
) -> End {
    let mut ping = interval(PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let told = tokio::select! {
            heard = hub.next() => match heard {
                Ok(Some(line)) => push(sink, line, &mut hub, pulse).await,
                Ok(None) => Err(End::HubGone),
                Err(error) => {
                    tracing::warn!(%error, "the hub cannot be understood");
                    Err(End::HubGone)
                }
            },
            Some(refusal) = refusals.recv() => {
                push(sink, refusal.bytes().clone(), &mut hub, pulse).await
            }
            _ = ping.tick() => {
                if pulse.is_gone() {
                    return End::Silent;
                }
                patient(sink.send(Message::Ping(Bytes::new())), pulse).await
            }
        };
        if let Err(end) = told {
            return end;
        }
    }
}

/// One line, and what else is there already.
async fn push(sink: &mut Sink, line: Bytes, hub: &mut Hearing, pulse: &Pulse) -> Result<(), End> {
    let batch = async {
        sink.feed(text(line)).await?;
        for _ in 1..BATCH_MAX {
            if !hub.has_more() {
                break;
            }
            if let Ok(Some(line)) = hub.next().await {
                sink.feed(text(line)).await?;
            }
        }
        sink.flush().await
    };
    patient(batch, pulse).await
}

fn text(line: Bytes) -> Message {
    match Utf8Bytes::try_from(line) {
        Ok(text) => Message::Text(text),
        // The hub says nothing else; a client skips it.
        Err(_) => Message::Binary(Bytes::new()),
    }
}

/// Waits for the client to take what it is sent, as long as it is there.
async fn patient(
    sending: impl Future<Output = Result<(), axum::Error>>,
    pulse: &Pulse,
) -> Result<(), End> {
    let mut sending = pin!(sending);
    if let Some(sent) = sending.as_mut().now_or_never() {
        return sent.map_err(|_| End::Left);
    }
    loop {
        match timeout(PING_EVERY, &mut sending).await {
            Ok(sent) => {
                // It made room: only the other side can.
                pulse.felt();
                return sent.map_err(|_| End::Left);
            }
            Err(_) if pulse.is_gone() => return Err(End::Silent),
            Err(_) => {}
        }
    }
}

fn broken(error: &axum::Error) -> End {
    use tungstenite::Error;
    match error.source().and_then(|it| it.downcast_ref::<Error>()) {
        Some(Error::Capacity(_)) => End::TooLong,
        Some(Error::Utf8(_)) => End::NotText,
        Some(Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake)) => {
            End::Left
        }
        Some(Error::Protocol(_)) => End::NotWebSocket,
        _ => End::Left,
    }
}

/// Says goodbye, and waits a moment for the other side to do so too.
async fn part(sink: &mut Sink, stream: &mut SplitStream<WebSocket>, end: End) {
    let farewell = async {
        if let Some(close) = end.close() {
            sink.send(Message::Close(Some(close))).await?;
        }
        while let Some(Ok(_)) = stream.next().await {}
        if end == End::TooLong {
            // It cannot be read past, and our goodbye must arrive before the rest is cut off.
            pending::<()>().await;
        }
        Ok::<(), axum::Error>(())
    };
    // Who does not say goodbye in time is hung up on.
    let _ = timeout(FAREWELL, farewell).await;
}

impl End {
    /// What the client is told; nothing if it is not there any more.
    fn close(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            End::Left => return None,
            End::Silent => (close_code::POLICY, "nothing was heard from you for a minute"),
            End::HubGone => (close_code::AWAY, "the daemon has ended this connection"),
            End::TooLong => (close_code::SIZE, "a message may have 16 MiB"),
            End::NotText => (close_code::INVALID, "a text frame must be UTF-8"),
            End::NotWebSocket => (close_code::PROTOCOL, "this is no WebSocket frame"),
        };
        Some(CloseFrame { code, reason: reason.into() })
    }
}

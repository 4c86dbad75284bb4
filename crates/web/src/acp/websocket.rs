//! ACP over a WebSocket: every text frame is one message, and each WebSocket is one connection to
//! the hub. While the client does not read, nothing is read from the hub.

use super::limits::{BATCH_MAX, CLOSE_TIMEOUT, PING_EVERY};
use super::peer_activity::PeerActivity;
use crate::login::DeviceSession;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, close_code};
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{FutureExt as _, SinkExt as _, StreamExt as _};
use jackfield_protocol::{Fault, Frame, HUB_FRAME_BYTES_MAX};
use jackfield_transport::{ClientStream, FrameReceiver, FrameSender};
use std::error::Error as _;
use std::future::pending;
use std::pin::pin;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

type WebSocketSink = SplitSink<WebSocket, Message>;

/// Why a WebSocket has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WebSocketEnd {
    /// The client closed, or its connection broke.
    Disconnected,
    /// The client had no activity for too long.
    Silent,
    /// The hub closed: the daemon stops, or it has disconnected this client.
    HubGone,
    /// The device of the client was revoked.
    Revoked,
    TooLong,
    NotText,
    NotWebSocket,
}

/// Relays messages in both directions until one side ends.
pub(super) async fn relay_messages(
    socket: WebSocket,
    hub: ClientStream,
    device: Option<DeviceSession>,
) {
    let (receiver, sender) = hub.into_frame_halves(HUB_FRAME_BYTES_MAX);
    let (mut sink, mut stream) = socket.split();
    let (refuse, refusals) = mpsc::channel(1);
    let activity = PeerActivity::new();
    let end = tokio::select! {
        end = forward_to_hub(&mut stream, sender, refuse, &activity) => end,
        end = forward_to_client(&mut sink, receiver, refusals, &activity) => end,
        () = wait_revoked(device) => WebSocketEnd::Revoked,
    };
    tracing::debug!(?end, "closed a websocket");
    close_websocket(&mut sink, &mut stream, end).await;
}

/// Completes when the device of the client is revoked, and never for a client with a token.
async fn wait_revoked(device: Option<DeviceSession>) {
    match device {
        Some(device) => device.wait_revoked().await,
        None => pending().await,
    }
}

/// Forwards messages of the client to the hub.
async fn forward_to_hub(
    stream: &mut SplitStream<WebSocket>,
    mut hub: FrameSender,
    refuse: mpsc::Sender<Frame>,
    activity: &PeerActivity,
) -> WebSocketEnd {
    loop {
        let message = match stream.next().await {
            None => return WebSocketEnd::Disconnected,
            Some(Err(error)) => return end_of_error(&error),
            Some(Ok(message)) => message,
        };
        activity.mark_activity();
        let text = match message {
            Message::Text(text) => Bytes::from(text),
            Message::Close(_) => return WebSocketEnd::Disconnected,
            // The library answers pings, and ACP does not use binary messages.
            Message::Ping(_) | Message::Pong(_) | Message::Binary(_) => continue,
        };
        match Frame::parse(text) {
            Ok(frame) if hub.send_frame(frame.bytes()).await.is_err() => {
                // The hub's last frames must still be forwarded.
                return pending().await;
            }
            Ok(_) => {}
            Err(malformed) => {
                let refusal = Frame::error_for("null", &Fault::from(malformed));
                // The receiver exists as long as this task.
                let _ = refuse.send(refusal).await;
            }
        }
    }
}

/// Forwards frames of the hub to the client.
async fn forward_to_client(
    sink: &mut WebSocketSink,
    mut hub: FrameReceiver,
    mut refusals: mpsc::Receiver<Frame>,
    activity: &PeerActivity,
) -> WebSocketEnd {
    let mut ping = interval(PING_EVERY);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let sent = tokio::select! {
            received = hub.next_frame() => match received {
                Ok(Some(line)) => send_batch(sink, line, &mut hub, activity).await,
                Ok(None) => Err(WebSocketEnd::HubGone),
                Err(error) => {
                    tracing::warn!(%error, "failed to read a frame of the hub");
                    Err(WebSocketEnd::HubGone)
                }
            },
            Some(refusal) = refusals.recv() => {
                send_batch(sink, refusal.bytes().clone(), &mut hub, activity).await
            }
            _ = ping.tick() => {
                if activity.is_gone() {
                    return WebSocketEnd::Silent;
                }
                send_while_alive(sink.send(Message::Ping(Bytes::new())), activity).await
            }
        };
        if let Err(end) = sent {
            return end;
        }
    }
}

/// Sends one frame and those that are already available.
async fn send_batch(
    sink: &mut WebSocketSink,
    line: Bytes,
    hub: &mut FrameReceiver,
    activity: &PeerActivity,
) -> Result<(), WebSocketEnd> {
    let batch = async {
        sink.feed(text_message(line)).await?;
        for _ in 1..BATCH_MAX {
            if !hub.has_more() {
                break;
            }
            if let Ok(Some(line)) = hub.next_frame().await {
                sink.feed(text_message(line)).await?;
            }
        }
        sink.flush().await
    };
    send_while_alive(batch, activity).await
}

fn text_message(line: Bytes) -> Message {
    match Utf8Bytes::try_from(line) {
        Ok(text) => Message::Text(text),
        // The hub sends only UTF-8; a client ignores binary messages.
        Err(_) => Message::Binary(Bytes::new()),
    }
}

/// Waits until the client has read the data, as long as it is alive.
async fn send_while_alive(
    sending: impl Future<Output = Result<(), axum::Error>>,
    activity: &PeerActivity,
) -> Result<(), WebSocketEnd> {
    let mut sending = pin!(sending);
    if let Some(sent) = sending.as_mut().now_or_never() {
        return sent.map_err(|_| WebSocketEnd::Disconnected);
    }
    loop {
        match timeout(PING_EVERY, &mut sending).await {
            Ok(sent) => {
                // The client has read data, which is activity.
                activity.mark_activity();
                return sent.map_err(|_| WebSocketEnd::Disconnected);
            }
            Err(_) if activity.is_gone() => return Err(WebSocketEnd::Silent),
            Err(_) => {}
        }
    }
}

fn end_of_error(error: &axum::Error) -> WebSocketEnd {
    use tungstenite::Error;
    match error.source().and_then(|it| it.downcast_ref::<Error>()) {
        Some(Error::Capacity(_)) => WebSocketEnd::TooLong,
        Some(Error::Utf8(_)) => WebSocketEnd::NotText,
        Some(Error::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake)) => {
            WebSocketEnd::Disconnected
        }
        Some(Error::Protocol(_)) => WebSocketEnd::NotWebSocket,
        _ => WebSocketEnd::Disconnected,
    }
}

/// Sends a close frame and waits a moment for that of the client.
async fn close_websocket(
    sink: &mut WebSocketSink,
    stream: &mut SplitStream<WebSocket>,
    end: WebSocketEnd,
) {
    let closing = async {
        if let Some(close) = end.close_frame() {
            sink.send(Message::Close(Some(close))).await?;
        }
        while let Some(Ok(_)) = stream.next().await {}
        if end == WebSocketEnd::TooLong {
            // The oversized message cannot be skipped, and our close frame must arrive before the
            // connection is reset.
            pending::<()>().await;
        }
        Ok::<(), axum::Error>(())
    };
    // A client that does not close in time is disconnected.
    let _ = timeout(CLOSE_TIMEOUT, closing).await;
}

impl WebSocketEnd {
    /// The close frame for the client; `None` if it is disconnected.
    fn close_frame(self) -> Option<CloseFrame> {
        let (code, reason) = match self {
            WebSocketEnd::Disconnected => return None,
            WebSocketEnd::Silent => (close_code::POLICY, "no activity for one minute"),
            WebSocketEnd::HubGone => (close_code::AWAY, "the daemon has closed this connection"),
            WebSocketEnd::Revoked => (close_code::POLICY, "the device was revoked"),
            WebSocketEnd::TooLong => (close_code::SIZE, "the message exceeds the limit of 16 MiB"),
            WebSocketEnd::NotText => (close_code::INVALID, "a text frame must be UTF-8"),
            WebSocketEnd::NotWebSocket => (close_code::PROTOCOL, "invalid WebSocket frame"),
        };
        Some(CloseFrame { code, reason: reason.into() })
    }
}

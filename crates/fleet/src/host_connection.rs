//! Host connections: byte streams between a gateway and a host, relayed by NATS, which guarantees
//! neither delivery nor order. Each message contains its offset in the stream; a side that detects
//! a gap ends the connection. The bytes in flight are bounded in both directions, so a slow reader
//! slows the writer and no buffer grows.

use crate::connection::{FleetConnection, FleetConnectionError, random_id};
use async_nats::{Client, Subscriber};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::StreamExt as _;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixStream, unix},
    sync::{Notify, Semaphore, mpsc},
    task::JoinSet,
};

/// The maximum number of bytes in flight in one direction.
const WINDOW_BYTES: usize = 1 << 20;
/// The maximum number of bytes in one message.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// How many bytes are consumed before they are acknowledged. The unacknowledged rest leaves the
/// writer more than one message of the window.
const ACK_BYTES: u64 = WINDOW_BYTES as u64 / 4;
/// A side that only receives has no reason to ping, so it acknowledges at least this often.
const ACK_INTERVAL: Duration = Duration::from_secs(1);
const PING_INTERVAL: Duration = Duration::from_secs(3);
/// The connection ends if nothing is received for this long.
const SILENCE_MAX: Duration = Duration::from_secs(12);
/// The interval of hello messages until both sides have received one: a server may not know the
/// subscription of the other side yet.
const HELLO_INTERVAL: Duration = Duration::from_millis(20);

const TO_HOST: &str = "h";
const TO_GATEWAY: &str = "g";

/// The kind of a message: its first byte. An eight-byte number follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    /// 0: asks whether the other side is connected. 1: confirms it.
    Hello = 0,
    /// Bytes of the stream. The number is the offset of the first byte.
    Data = 1,
    /// The number of bytes that were consumed.
    Ack = 2,
    /// The total number of bytes that were sent. The server reports if the other side has no
    /// subscription.
    Ping = 3,
    /// The total number of bytes that were sent. No more will follow.
    End = 4,
}

/// Opens a host connection. Subscribes before `announce` sends the id to the host, so that the
/// first message of the host is not missed.
pub async fn open_host_connection<E: From<FleetConnectionError>>(
    connection: &FleetConnection,
    stream: UnixStream,
    announce: impl AsyncFnOnce(String) -> Result<(), E>,
) -> Result<(), E> {
    let id = random_id();
    let end = ConnectionEnd::new(connection, &id, TO_GATEWAY, TO_HOST).await?;
    announce(id).await?;
    end.start_relay(stream);
    Ok(())
}

/// Accepts a host connection that a gateway has opened.
pub async fn accept_host_connection(
    connection: &FleetConnection,
    id: &str,
    stream: UnixStream,
) -> Result<(), FleetConnectionError> {
    ConnectionEnd::new(connection, id, TO_HOST, TO_GATEWAY).await?.start_relay(stream);
    Ok(())
}

/// One end of a host connection.
struct ConnectionEnd {
    subscriber: Subscriber,
    sender: RelaySender,
}

#[derive(Clone)]
struct RelaySender {
    client: Client,
    subject: String,
    /// The subject of our subscription.
    reply_subject: String,
    sent_bytes: Arc<AtomicU64>,
}

impl RelaySender {
    /// Returns `false` if the connection to the server is closed.
    async fn send(&self, kind: FrameKind, number: u64, bytes: &[u8]) -> bool {
        let mut message = BytesMut::with_capacity(9 + bytes.len());
        message.put_u8(kind as u8);
        message.put_u64(number);
        message.put_slice(bytes);
        let (subject, message) = (self.subject.clone(), message.freeze());
        let published = if kind == FrameKind::Ping {
            self.client.publish_with_reply(subject, self.reply_subject.clone(), message).await
        } else {
            self.client.publish(subject, message).await
        };
        published.is_ok()
    }

    fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }
}

/// The state that both directions share.
#[derive(Clone)]
struct SharedState {
    /// The bytes that may be sent.
    window: Arc<Semaphore>,
    /// Notified once the other side is connected.
    connected: Arc<Notify>,
}

impl ConnectionEnd {
    async fn new(
        connection: &FleetConnection,
        id: &str,
        receive_direction: &str,
        send_direction: &str,
    ) -> Result<ConnectionEnd, FleetConnectionError> {
        let reply_subject = connection.relay_subject(id, receive_direction);
        let subject = connection.relay_subject(id, send_direction);
        let subscriber = connection.client.subscribe(reply_subject.clone()).await;
        let subscriber =
            subscriber.map_err(|it| FleetConnectionError::Unavailable(it.to_string()))?;
        let (client, sent_bytes) = (connection.client.clone(), Arc::default());
        let sender = RelaySender { client, subject, reply_subject, sent_bytes };
        Ok(ConnectionEnd { subscriber, sender })
    }

    /// Relays the bytes in the background until either end is closed or the other side is silent.
    fn start_relay(self, stream: UnixStream) {
        let (stream_rx, stream_tx) = stream.into_split();
        let (data_tx, data_rx) = mpsc::channel(WINDOW_BYTES / 64);
        let shared = SharedState {
            window: Arc::new(Semaphore::new(WINDOW_BYTES)),
            connected: Arc::new(Notify::new()),
        };
        let (subscriber, sender) = (self.subscriber, self.sender);
        let receiver = RelayReceiver { subscriber, sender: sender.clone(), shared: shared.clone() };
        tokio::spawn(async move {
            let mut tasks = JoinSet::new();
            tasks.spawn(receiver.run(data_tx));
            tasks.spawn(write_to_stream(stream_tx, data_rx, sender.clone()));
            tasks.spawn(read_from_stream(stream_rx, sender.clone(), shared));
            // The end of one task ends the connection, after the received bytes are written.
            tasks.join_next().await;
            tokio::time::timeout(SILENCE_MAX, tasks.join_next()).await.ok();
            drop(tasks);
            // A side that detected a gap reports the end; otherwise the other side would wait for
            // its timeout.
            sender.send(FrameKind::End, sender.sent_bytes(), &[]).await;
        });
    }
}

struct RelayReceiver {
    subscriber: Subscriber,
    sender: RelaySender,
    shared: SharedState,
}

impl RelayReceiver {
    /// Receives the frames of the other side, and checks that it is connected.
    async fn run(mut self, data: mpsc::Sender<Bytes>) {
        let (mut received, mut acknowledged, mut is_connected) = (0, 0, false);
        let mut silence = Duration::ZERO;
        loop {
            let interval = if is_connected { PING_INTERVAL } else { HELLO_INTERVAL };
            let Ok(message) = tokio::time::timeout(interval, self.subscriber.next()).await else {
                silence += interval;
                if SILENCE_MAX <= silence || !self.send_probe(is_connected).await {
                    return;
                }
                continue;
            };
            silence = Duration::ZERO;
            // The server's report that the other side has no subscription has no payload.
            let Some((kind, number, bytes)) = message.and_then(|it| parse_frame(&it.payload))
            else {
                return;
            };
            if kind == FrameKind::Hello && number == 0 {
                self.sender.send(FrameKind::Hello, 1, &[]).await;
                continue;
            }
            if !is_connected {
                is_connected = true;
                self.shared.connected.notify_one();
            }
            match kind {
                FrameKind::Data => {
                    if number != received || data.send(bytes.clone()).await.is_err() {
                        return;
                    }
                    received += bytes.len() as u64;
                }
                FrameKind::Ack => {
                    let newly_acknowledged = number.saturating_sub(acknowledged);
                    acknowledged = number.max(acknowledged);
                    let permits = usize::try_from(newly_acknowledged).unwrap_or(0);
                    self.shared.window.add_permits(permits);
                }
                FrameKind::Ping if number == received => {}
                FrameKind::Ping | FrameKind::End => return,
                FrameKind::Hello => {}
            }
        }
    }

    /// Asks the other side for a sign of life. Returns `false` if the connection to the server is
    /// closed.
    async fn send_probe(&self, is_connected: bool) -> bool {
        if is_connected {
            self.sender.send(FrameKind::Ping, self.sender.sent_bytes(), &[]).await
        } else {
            self.sender.send(FrameKind::Hello, 0, &[]).await
        }
    }
}

fn parse_frame(message: &Bytes) -> Option<(FrameKind, u64, Bytes)> {
    let kinds =
        [FrameKind::Hello, FrameKind::Data, FrameKind::Ack, FrameKind::Ping, FrameKind::End];
    let kind = kinds.into_iter().find(|it| Some(&(*it as u8)) == message.first())?;
    let number = message.get(1..9)?.try_into().ok().map(u64::from_be_bytes)?;
    Some((kind, number, message.slice(9..)))
}

/// Writes received bytes to our stream and acknowledges them.
async fn write_to_stream(
    mut stream: unix::OwnedWriteHalf,
    mut data: mpsc::Receiver<Bytes>,
    sender: RelaySender,
) {
    let (mut written, mut acknowledged, mut acknowledged_at) = (0, 0, Instant::now());
    while let Some(bytes) = data.recv().await {
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
        written += bytes.len() as u64;
        if ACK_BYTES <= written - acknowledged || ACK_INTERVAL <= acknowledged_at.elapsed() {
            (acknowledged, acknowledged_at) = (written, Instant::now());
            if !sender.send(FrameKind::Ack, written, &[]).await {
                return;
            }
        }
    }
}

/// Sends the bytes of our stream as far as the window permits.
async fn read_from_stream(
    mut stream: unix::OwnedReadHalf,
    sender: RelaySender,
    shared: SharedState,
) {
    shared.connected.notified().await;
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    while let Ok(count @ 1..) = stream.read(&mut buffer).await {
        let permits = u32::try_from(count).expect("less than the buffer");
        let Ok(permit) = shared.window.acquire_many(permits).await else { break };
        permit.forget();
        let offset = sender.sent_bytes.fetch_add(count as u64, Ordering::Relaxed);
        if !sender.send(FrameKind::Data, offset, &buffer[..count]).await {
            return;
        }
    }
    sender.send(FrameKind::End, sender.sent_bytes(), &[]).await;
}

//! A leg: a stream of bytes between a gateway and a host, carried by NATS, which promises nothing. Each
//! message says where in the stream it belongs; whoever finds a gap ends the leg. What is on its way and
//! not yet taken is bounded on both sides, so a slow reader slows the writer and nothing grows.

use crate::link::{Link, LinkError, unique};
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

/// Bytes on their way in one direction, at most.
const WINDOW: usize = 1 << 20;
/// Bytes of one message, at most.
const PIECE: usize = 64 << 10;
/// Taken bytes that are worth a word. What is not worth one leaves the writer more than a piece of room.
const WORTH_A_WORD: u64 = WINDOW as u64 / 4;
/// Who only listens never falls silent enough to ping, and must be heard all the same.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);
const PING: Duration = Duration::from_secs(3);
const SILENCE_MAX: Duration = Duration::from_secs(12);
/// Until both sides have heard each other: a server may not know yet that somebody listens.
const KNOCK: Duration = Duration::from_millis(20);

const TO_HOST: &str = "h";
const TO_GATEWAY: &str = "g";

/// What a message is: its first byte, then a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// Is anybody there? 1: I have heard you.
    Knock = 0,
    /// Bytes, the first of which has this place.
    Bytes = 1,
    /// So many bytes were taken.
    Taken = 2,
    /// So many bytes were sent, all in all. If there is nobody who could hear it, a server says so.
    Ping = 3,
    /// So many were sent, and no more will be.
    End = 4,
}

/// Opens a leg: subscribes first, so that the host's first word is not missed. `tell` lets the host know of
/// it by this name.
pub async fn open_leg<E: From<LinkError>>(
    link: &Link,
    stream: UnixStream,
    tell: impl AsyncFnOnce(String) -> Result<(), E>,
) -> Result<(), E> {
    let id = unique();
    let end = End::new(link, &id, TO_GATEWAY, TO_HOST).await?;
    tell(id).await?;
    end.carry(stream);
    Ok(())
}

/// The host's end of a leg that a gateway has opened.
pub async fn answer_leg(link: &Link, id: &str, stream: UnixStream) -> Result<(), LinkError> {
    End::new(link, id, TO_HOST, TO_GATEWAY).await?.carry(stream);
    Ok(())
}

struct End {
    said: Subscriber,
    voice: Voice,
}

#[derive(Clone)]
struct Voice {
    client: Client,
    to: String,
    /// Where we listen.
    ours: String,
    sent: Arc<AtomicU64>,
}

impl Voice {
    /// False if the connection is closed for good.
    async fn say(&self, word: Word, number: u64, bytes: &[u8]) -> bool {
        let mut message = BytesMut::with_capacity(9 + bytes.len());
        message.put_u8(word as u8);
        message.put_u64(number);
        message.put_slice(bytes);
        let (to, message) = (self.to.clone(), message.freeze());
        let said = if word == Word::Ping {
            self.client.publish_with_reply(to, self.ours.clone(), message).await
        } else {
            self.client.publish(to, message).await
        };
        said.is_ok()
    }

    fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }
}

/// What both directions share.
#[derive(Clone)]
struct Shared {
    /// Bytes that may be sent.
    room: Arc<Semaphore>,
    /// The other side has heard us.
    heard: Arc<Notify>,
}

impl End {
    async fn new(link: &Link, id: &str, ours: &str, theirs: &str) -> Result<End, LinkError> {
        let (ours, to) = (link.leg(id, ours), link.leg(id, theirs));
        let said = link.client.subscribe(ours.clone()).await;
        let said = said.map_err(|it| LinkError::Away(it.to_string()))?;
        let (client, sent) = (link.client.clone(), Arc::default());
        Ok(End { said, voice: Voice { client, to, ours, sent } })
    }

    /// Carries the bytes, in the background, until either end is closed or nothing is heard any more.
    fn carry(self, stream: UnixStream) {
        let (from, to) = stream.into_split();
        let (pieces, taken) = mpsc::channel(WINDOW / 64);
        let shared =
            Shared { room: Arc::new(Semaphore::new(WINDOW)), heard: Arc::new(Notify::new()) };
        let voice = self.voice;
        let listener = Listener { said: self.said, voice: voice.clone(), shared: shared.clone() };
        tokio::spawn(async move {
            let mut parts = JoinSet::new();
            parts.spawn(listener.run(pieces));
            parts.spawn(write(to, taken, voice.clone()));
            parts.spawn(read(from, voice.clone(), shared));
            // One of them is over: so is the leg, once what was said before is written.
            parts.join_next().await;
            tokio::time::timeout(SILENCE_MAX, parts.join_next()).await.ok();
            drop(parts);
            // Whoever has missed something says so: the other side would wait until nothing is heard.
            voice.say(Word::End, voice.sent(), &[]).await;
        });
    }
}

struct Listener {
    said: Subscriber,
    voice: Voice,
    shared: Shared,
}

impl Listener {
    /// Takes what the other side says, and makes sure that it is there.
    async fn run(mut self, pieces: mpsc::Sender<Bytes>) {
        let (mut received, mut acknowledged, mut met) = (0, 0, false);
        let mut silence = Duration::ZERO;
        loop {
            let pause = if met { PING } else { KNOCK };
            let Ok(message) = tokio::time::timeout(pause, self.said.next()).await else {
                silence += pause;
                if SILENCE_MAX <= silence {
                    return;
                }
                let (word, number) =
                    if met { (Word::Ping, self.voice.sent()) } else { (Word::Knock, 0) };
                if !self.voice.say(word, number, &[]).await {
                    return;
                }
                continue;
            };
            silence = Duration::ZERO;
            // That nobody hears us has no payload.
            let Some((word, number, bytes)) = message.and_then(|it| parse(&it.payload)) else {
                return;
            };
            if word == Word::Knock && number == 0 {
                self.voice.say(Word::Knock, 1, &[]).await;
                continue;
            }
            if !met {
                met = true;
                self.shared.heard.notify_one();
            }
            match word {
                Word::Bytes => {
                    if number != received || pieces.send(bytes.clone()).await.is_err() {
                        return;
                    }
                    received += bytes.len() as u64;
                }
                Word::Taken => {
                    let more = number.saturating_sub(acknowledged);
                    acknowledged = number.max(acknowledged);
                    self.shared.room.add_permits(usize::try_from(more).unwrap_or(0));
                }
                Word::Ping if number == received => {}
                Word::Ping | Word::End => return,
                Word::Knock => {}
            }
        }
    }
}

fn parse(message: &Bytes) -> Option<(Word, u64, Bytes)> {
    let word = [Word::Knock, Word::Bytes, Word::Taken, Word::Ping, Word::End]
        .into_iter()
        .find(|it| Some(&(*it as u8)) == message.first())?;
    let number = message.get(1..9)?.try_into().ok().map(u64::from_be_bytes)?;
    Some((word, number, message.slice(9..)))
}

/// From the leg to our side; says how much was taken.
async fn write(mut to: unix::OwnedWriteHalf, mut taken: mpsc::Receiver<Bytes>, voice: Voice) {
    let (mut written, mut told, mut told_at) = (0, 0, Instant::now());
    while let Some(piece) = taken.recv().await {
        if to.write_all(&piece).await.is_err() {
            return;
        }
        written += piece.len() as u64;
        if WORTH_A_WORD <= written - told || SIGN_OF_LIFE <= told_at.elapsed() {
            (told, told_at) = (written, Instant::now());
            if !voice.say(Word::Taken, written, &[]).await {
                return;
            }
        }
    }
}

/// From our side to the leg, as far as there is room.
async fn read(mut from: unix::OwnedReadHalf, voice: Voice, shared: Shared) {
    shared.heard.notified().await;
    let mut buffer = vec![0; PIECE];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let permits = u32::try_from(count).expect("less than a piece");
        let Ok(room) = shared.room.acquire_many(permits).await else { break };
        room.forget();
        let place = voice.sent.fetch_add(count as u64, Ordering::Relaxed);
        if !voice.say(Word::Bytes, place, &buffer[..count]).await {
            return;
        }
    }
    voice.say(Word::End, voice.sent(), &[]).await;
}

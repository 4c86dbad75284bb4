//! One open connection: frames in, frames out, and word of each to whoever owns the other end of
//! one channel.

use crate::chunk::{self, Drain};
use crate::outbox::{LINGER, Outbox, Phase};
use crate::stream::{ReadHalf, Stream};
use bytes::Bytes;
use jackfield_wire::{Fault, Frame, FrameHead, LineSplitter, LineTooLong, Valve};
use std::future::poll_fn;
use std::io;
use std::mem;
use std::sync::Arc;
use std::task::ready;
use tokio::sync::mpsc;

/// What a connection tells. In a life: `Opened`, then any of `Frames`, `Babbled` and `Wrote`, then
/// perhaps `Finished` and more `Wrote`, and last, exactly once, `Gone`.
#[derive(Debug)]
pub enum ClientEvent {
    Opened,
    /// In the order said, never empty. A frame may share its memory with the others of its batch:
    /// copy what is kept for long.
    Frames(Vec<Frame>),
    /// Between two frames stood a line that is none.
    Babbled(Fault),
    /// Texts of this length in all were written by the task, after the socket had been full. What
    /// [`ConnHandle::flush`] returned is not in here.
    Wrote(usize),
    /// The peer will say nothing more, but it can still hear: a script that wrote its requests and
    /// closed its side. It waits until we close.
    Finished,
    /// The connection is over, whoever ended it. Nothing follows.
    Gone,
}

/// Starts to read and write on `stream`, in a task on the current runtime. Every event carries
/// `key`. A full channel stops the reading, and then the kernel stops the client.
pub fn open<K>(
    stream: Stream,
    key: K,
    events: mpsc::Sender<(K, ClientEvent)>,
    frame_bytes_max: usize,
) -> ConnHandle
where
    K: Copy + Send + Sync + 'static,
{
    let (read, write, early) = stream.split();
    let outbox = Arc::new(Outbox::new(write));
    let valve = Arc::new(Valve::default());
    let splitter = LineSplitter::new(frame_bytes_max);
    let ears = Ears { half: read, splitter, valve: Arc::clone(&valve) };
    let mouth = Mouth { key, events, outbox: Arc::clone(&outbox) };
    tokio::spawn(run(ears, mouth, early));
    ConnHandle { outbox, valve }
}

/// The daemon's end of a connection. Dropping it is [`ConnHandle::close`].
#[derive(Debug)]
pub struct ConnHandle {
    outbox: Arc<Outbox>,
    valve: Arc<Valve>,
}

impl ConnHandle {
    /// Queues one frame; the newline is added when it is written. Does nothing once the connection
    /// ends.
    pub fn send(&mut self, text: Bytes) {
        self.outbox.push(text);
    }

    /// Writes everything queued, as far as the socket takes it, and never waits: the task writes
    /// the rest and tells so. Returns the length of the texts that this call completed.
    pub fn flush(&mut self) -> usize {
        self.outbox.flush()
    }

    /// The length of the texts that were sent and not yet reported as written.
    pub fn queued_bytes(&self) -> usize {
        self.outbox.queued()
    }

    /// Stops reading what the peer says: when its socket is full, it waits. What was read already
    /// still arrives. That the peer has left is noticed with the next write, or after a resume.
    pub fn pause(&mut self) {
        self.valve.set_closed(true);
    }

    pub fn resume(&mut self) {
        self.valve.set_closed(false);
    }

    /// Says what is queued, then ends. What the peer says from here on is not heard. A peer that
    /// takes nothing for a while is not waited for.
    pub fn close_after_flush(&mut self) {
        self.outbox.finish();
    }

    /// Ends at once; what is queued is dropped.
    pub fn close(&mut self) {
        self.outbox.close();
    }
}

impl Drop for ConnHandle {
    fn drop(&mut self) {
        // A farewell that is under way is not cut short.
        if self.outbox.phase() == Phase::Open {
            self.outbox.close();
        }
    }
}

/// Says what was heard and written. If nobody takes it any more, the connection has no purpose.
struct Mouth<K> {
    key: K,
    events: mpsc::Sender<(K, ClientEvent)>,
    outbox: Arc<Outbox>,
}

impl<K: Copy> Mouth<K> {
    async fn tell(&self, event: ClientEvent) {
        if self.events.send((self.key, event)).await.is_err() {
            self.outbox.close();
        }
    }
}

async fn run<K: Copy>(ears: Ears, mouth: Mouth<K>, early: Bytes) {
    mouth.tell(ClientEvent::Opened).await;
    let writing = async {
        while let Some(count) = mouth.outbox.wrote().await {
            mouth.tell(ClientEvent::Wrote(count)).await;
        }
    };
    // One task for both: what wakes one is most often news for the other.
    tokio::join!(ears.listen(&mouth, early), writing);
    mouth.tell(ClientEvent::Gone).await;
}

struct Ears {
    half: ReadHalf,
    splitter: LineSplitter,
    valve: Arc<Valve>,
}

impl Ears {
    async fn listen<K: Copy>(mut self, mouth: &Mouth<K>, early: Bytes) {
        self.hear(mouth, early).await;
        loop {
            match mouth.outbox.phase() {
                Phase::Open | Phase::Finishing => {}
                Phase::Finished => return self.await_end(mouth).await,
                Phase::Broken => return self.hear_last(mouth).await,
                Phase::Closed => return,
            }
            let chunk = tokio::select! {
                biased;
                chunk = next(&self.valve, &mut self.half) => chunk,
                () = mouth.outbox.changed() => continue,
            };
            match chunk {
                Ok(Some(chunk)) => self.hear(mouth, chunk).await,
                Ok(None) => return self.hear_end(mouth).await,
                Err(_) => return mouth.outbox.give_up(),
            }
        }
    }

    async fn hear<K: Copy>(&mut self, mouth: &Mouth<K>, chunk: Bytes) {
        let mut batch = Batch::default();
        self.splitter.push(chunk, &mut |line| batch.add(line));
        batch.deliver(mouth).await;
    }

    /// The peer has closed its side: what it left without a newline is a line too.
    async fn hear_end<K: Copy>(self, mouth: &Mouth<K>) {
        let mut batch = Batch::default();
        self.splitter.finish(&mut |line| batch.add(line));
        if mouth.outbox.is_deaf() {
            // If it left in the middle of a line, there is nobody to tell.
            batch.done.clear();
            batch.deliver(mouth).await;
            return mouth.outbox.give_up();
        }
        batch.deliver(mouth).await;
        if mouth.outbox.phase() == Phase::Open {
            mouth.tell(ClientEvent::Finished).await;
        }
    }

    /// A write has failed, but what the peer said before it left is here already.
    async fn hear_last<K: Copy>(&mut self, mouth: &Mouth<K>) {
        let mut drain = Drain::new();
        while let Some(chunk) = drain.next(&self.half) {
            self.hear(mouth, chunk).await;
        }
    }

    /// Until the peer closes too: to leave with its words unread would look like a crash to it.
    async fn await_end<K: Copy>(&mut self, mouth: &Mouth<K>) {
        let mut read = async || poll_fn(|cx| chunk::poll_read(&mut self.half, cx)).await;
        let end = async { while let Ok(Some(_)) = read().await {} };
        let _ = tokio::time::timeout(LINGER, end).await;
        mouth.outbox.close();
    }
}

async fn next(valve: &Valve, half: &mut ReadHalf) -> io::Result<Option<Bytes>> {
    poll_fn(|cx| {
        ready!(valve.poll_open(cx));
        chunk::poll_read(half, cx)
    })
    .await
}

/// What one chunk holds.
#[derive(Default)]
struct Batch {
    done: Vec<ClientEvent>,
    frames: Vec<Frame>,
}

impl Batch {
    fn add(&mut self, line: Result<Bytes, LineTooLong>) {
        let fault = match line.map(Frame::parse) {
            Ok(Ok(frame)) => return self.frames.push(frame),
            Ok(Err(malformed)) => Fault::from(malformed),
            Err(too_long) => match too_long.frame_head() {
                // The request that it answers fails.
                FrameHead { id: Some(id), method: None, .. } => {
                    return self.frames.push(Frame::error_for(&id, &too_long.fault()));
                }
                _ => too_long.fault(),
            },
        };
        if !self.frames.is_empty() {
            self.done.push(ClientEvent::Frames(mem::take(&mut self.frames)));
        }
        self.done.push(ClientEvent::Babbled(fault));
    }

    async fn deliver<K: Copy>(self, mouth: &Mouth<K>) {
        let last = (!self.frames.is_empty()).then_some(ClientEvent::Frames(self.frames));
        for event in self.done.into_iter().chain(last) {
            // After a farewell nobody listens.
            if matches!(mouth.outbox.phase(), Phase::Open | Phase::Broken) {
                mouth.tell(event).await;
            }
        }
    }
}

//! One open connection: reads and writes frames, and reports events over a channel.

use crate::chunk::{self, SocketDrain};
use crate::outgoing_queue::{ConnectionPhase, LINGER, OutgoingQueue};
use crate::stream::{ClientStream, ReadHalf};
use bytes::Bytes;
use jackfield_protocol::{Fault, FlowControl, Frame, FrameHead, LineSplitter, LineTooLong};
use std::future::poll_fn;
use std::io;
use std::mem;
use std::sync::Arc;
use std::task::ready;
use tokio::sync::mpsc;

/// An event of a connection. The order: `Opened`, then any of `Frames`, `InvalidFrame` and `Wrote`,
/// then perhaps `Finished` and more `Wrote`, and last, exactly once, `Gone`.
#[derive(Debug)]
pub enum ClientEvent {
    Opened,
    /// Frames in the order sent, never empty. A frame may share its memory with others of its
    /// batch, so copy it if you keep it for long.
    Frames(Vec<Frame>),
    /// The client sent a line that is not a frame.
    InvalidFrame(Fault),
    /// The task has written frames of this total length after the socket was full. What
    /// [`ClientHandle::flush`] returned is not included.
    Wrote(usize),
    /// The peer has closed its sending side but still reads, like a script that wrote its requests.
    /// It waits until we close.
    Finished,
    /// The connection has ended. No event follows.
    Gone,
}

/// Starts to read and write on `stream`, in a task on the current runtime. Every event has `key`. A
/// full channel stops the reading, and then the kernel blocks the client.
pub fn open_connection<K>(
    stream: ClientStream,
    key: K,
    events: mpsc::Sender<(K, ClientEvent)>,
    frame_bytes_max: usize,
) -> ClientHandle
where
    K: Copy + Send + Sync + 'static,
{
    let (read, write, early_bytes) = stream.split();
    let queue = Arc::new(OutgoingQueue::new(write));
    let flow_control = Arc::new(FlowControl::default());
    let splitter = LineSplitter::new(frame_bytes_max);
    let reader = FrameReader { half: read, splitter, flow_control: Arc::clone(&flow_control) };
    let events = EventSender { key, events, queue: Arc::clone(&queue) };
    tokio::spawn(run(reader, events, early_bytes));
    ClientHandle { queue, flow_control }
}

/// The daemon's end of a connection. Dropping it is [`ClientHandle::close`].
#[derive(Debug)]
pub struct ClientHandle {
    queue: Arc<OutgoingQueue>,
    flow_control: Arc<FlowControl>,
}

impl ClientHandle {
    /// Queues one frame; the newline is added when it is written. Does nothing if the connection is
    /// closing.
    pub fn send(&mut self, text: Bytes) {
        self.queue.push(text);
    }

    /// Writes the queued frames as far as the socket has room, and never waits: the task writes the
    /// rest and reports it. Returns the length of the frames that this call completed.
    pub fn flush(&mut self) -> usize {
        self.queue.flush()
    }

    /// The length of the frames that were sent and not yet reported as written.
    pub fn queued_bytes(&self) -> usize {
        self.queue.queued_bytes()
    }

    /// Stops reading from the peer, so the peer blocks when the socket is full. Frames that were
    /// already read are still reported. A disconnect is noticed at the next write or after a
    /// resume.
    pub fn pause(&mut self) {
        self.flow_control.pause_reading();
    }

    pub fn resume(&mut self) {
        self.flow_control.resume_reading();
    }

    /// Closes the connection after the queued frames. Frames of the peer are ignored from now on. A
    /// peer that reads nothing for a while is disconnected.
    pub fn close_after_flush(&mut self) {
        self.queue.finish();
    }

    /// Closes the connection at once and drops the queue.
    pub fn close(&mut self) {
        self.queue.close();
    }
}

impl Drop for ClientHandle {
    fn drop(&mut self) {
        // A graceful close that is in progress continues.
        if self.queue.phase() == ConnectionPhase::Open {
            self.queue.close();
        }
    }
}

/// Sends the events of a connection. If the channel is closed, the connection is closed.
struct EventSender<K> {
    key: K,
    events: mpsc::Sender<(K, ClientEvent)>,
    queue: Arc<OutgoingQueue>,
}

impl<K: Copy> EventSender<K> {
    async fn send(&self, event: ClientEvent) {
        if self.events.send((self.key, event)).await.is_err() {
            self.queue.close();
        }
    }
}

async fn run<K: Copy>(reader: FrameReader, events: EventSender<K>, early_bytes: Bytes) {
    events.send(ClientEvent::Opened).await;
    let writing = async {
        while let Some(count) = events.queue.write_when_ready().await {
            events.send(ClientEvent::Wrote(count)).await;
        }
    };
    // One task for both directions, because a wakeup of one usually concerns the other, too.
    tokio::join!(reader.read_frames(&events, early_bytes), writing);
    events.send(ClientEvent::Gone).await;
}

struct FrameReader {
    half: ReadHalf,
    splitter: LineSplitter,
    flow_control: Arc<FlowControl>,
}

impl FrameReader {
    async fn read_frames<K: Copy>(mut self, events: &EventSender<K>, early_bytes: Bytes) {
        self.report_chunk(events, early_bytes).await;
        loop {
            match events.queue.phase() {
                ConnectionPhase::Open | ConnectionPhase::Finishing => {}
                ConnectionPhase::Finished => return self.wait_for_close(events).await,
                ConnectionPhase::Broken => return self.report_buffered(events).await,
                ConnectionPhase::Closed => return,
            }
            let chunk = tokio::select! {
                biased;
                chunk = read_when_resumed(&self.flow_control, &mut self.half) => chunk,
                () = events.queue.phase_changed() => continue,
            };
            match chunk {
                Ok(Some(chunk)) => self.report_chunk(events, chunk).await,
                Ok(None) => return self.report_end(events).await,
                Err(_) => return events.queue.mark_broken(),
            }
        }
    }

    async fn report_chunk<K: Copy>(&mut self, events: &EventSender<K>, chunk: Bytes) {
        let mut batch = FrameBatch::default();
        self.splitter.push(chunk, &mut |line| batch.add(line));
        batch.deliver(events).await;
    }

    /// The peer has closed its side. A last line without newline counts, too.
    async fn report_end<K: Copy>(self, events: &EventSender<K>) {
        let mut batch = FrameBatch::default();
        self.splitter.finish(&mut |line| batch.add(line));
        if events.queue.is_disconnected() {
            // If it disconnected in the middle of a line, the fault cannot be answered.
            batch.done.clear();
            batch.deliver(events).await;
            return events.queue.mark_broken();
        }
        batch.deliver(events).await;
        if events.queue.phase() == ConnectionPhase::Open {
            events.send(ClientEvent::Finished).await;
        }
    }

    /// A write has failed. Reads what the peer sent before it disconnected.
    async fn report_buffered<K: Copy>(&mut self, events: &EventSender<K>) {
        let mut drain = SocketDrain::new();
        while let Some(chunk) = drain.next_chunk(&self.half) {
            self.report_chunk(events, chunk).await;
        }
    }

    /// Waits until the peer closes, too. Closing with unread data would reset the connection.
    async fn wait_for_close<K: Copy>(&mut self, events: &EventSender<K>) {
        let mut read = async || poll_fn(|cx| chunk::poll_read(&mut self.half, cx)).await;
        let end = async { while let Ok(Some(_)) = read().await {} };
        let _ = tokio::time::timeout(LINGER, end).await;
        events.queue.close();
    }
}

async fn read_when_resumed(
    flow_control: &FlowControl,
    half: &mut ReadHalf,
) -> io::Result<Option<Bytes>> {
    poll_fn(|cx| {
        ready!(flow_control.poll_reading(cx));
        chunk::poll_read(half, cx)
    })
    .await
}

/// The frames and faults of one chunk.
#[derive(Default)]
struct FrameBatch {
    done: Vec<ClientEvent>,
    frames: Vec<Frame>,
}

impl FrameBatch {
    fn add(&mut self, line: Result<Bytes, LineTooLong>) {
        let fault = match line.map(Frame::parse) {
            Ok(Ok(frame)) => return self.frames.push(frame),
            Ok(Err(malformed)) => Fault::from(malformed),
            Err(too_long) => match too_long.frame_head() {
                // It is a response, so the request that it answers fails.
                FrameHead { id: Some(id), method: None, .. } => {
                    return self.frames.push(Frame::error_for(&id, &too_long.fault()));
                }
                _ => too_long.fault(),
            },
        };
        if !self.frames.is_empty() {
            self.done.push(ClientEvent::Frames(mem::take(&mut self.frames)));
        }
        self.done.push(ClientEvent::InvalidFrame(fault));
    }

    async fn deliver<K: Copy>(self, events: &EventSender<K>) {
        let last = (!self.frames.is_empty()).then_some(ClientEvent::Frames(self.frames));
        for event in self.done.into_iter().chain(last) {
            // While the connection is closing, events are not reported.
            if matches!(events.queue.phase(), ConnectionPhase::Open | ConnectionPhase::Broken) {
                events.send(event).await;
            }
        }
    }
}

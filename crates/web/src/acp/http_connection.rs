//! One connection over HTTP: many requests of the client, and one connection to the hub.

use super::AcpState;
use super::limits::{IDLE_AFTER, POSTED_MAX, SWEEP_INTERVAL};
use super::sse_stream::StreamChunk;
use super::stream_router::{ReaderRegistration, StreamRouter};
use axum::http::HeaderValue;
use bytes::Bytes;
use jackfield_protocol::{Frame, HUB_FRAME_BYTES_MAX};
use jackfield_transport::{ClientStream, FrameReceiver, FrameSender};
use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, interval};

#[derive(Debug)]
pub(super) struct HttpConnection {
    pub(super) id: HeaderValue,
    posted: mpsc::Sender<Bytes>,
    state: Mutex<ConnectionStreams>,
    ended: Notify,
}

#[derive(Debug)]
struct ConnectionStreams {
    router: StreamRouter,
    /// Waits for room in the streams.
    receiver: Option<Waker>,
    /// The time of the client's last request.
    last_active_at: Instant,
    /// Since when a full stream has no reader.
    stuck_since: Option<Instant>,
    is_closed: bool,
}

/// The connection is closed.
#[derive(Debug)]
pub(super) struct ConnectionClosed;

impl HttpConnection {
    /// Opens a connection with a task that runs until it ends.
    pub(super) fn open(
        acp_state: &Arc<AcpState>,
        hub: ClientStream,
        id: HeaderValue,
    ) -> Arc<HttpConnection> {
        let (posted, inbox) = mpsc::channel(POSTED_MAX);
        let state = ConnectionStreams {
            router: StreamRouter::default(),
            receiver: None,
            last_active_at: Instant::now(),
            stuck_since: None,
            is_closed: false,
        };
        let state = Mutex::new(state);
        let connection = Arc::new(HttpConnection { id, posted, state, ended: Notify::new() });
        tokio::spawn(run(Arc::clone(&connection), hub, inbox, Arc::clone(acp_state)));
        connection
    }

    /// Sends `initialize` to the hub and waits for its response.
    pub(super) async fn initialize(&self, request: &Frame) -> Result<Frame, ConnectionClosed> {
        let answer = self.state().router.on_initialize(request.id().unwrap_or("null"));
        self.send(request).await?;
        answer.await.map_err(|_: oneshot::error::RecvError| ConnectionClosed)
    }

    /// Forwards a message of the client about this session or none.
    pub(super) async fn post(
        &self,
        frame: &Frame,
        session: Option<String>,
    ) -> Result<(), ConnectionClosed> {
        {
            let mut state = self.state();
            state.last_active_at = Instant::now();
            state.router.on_posted(frame, session);
        }
        self.send(frame).await
    }

    pub(super) async fn send(&self, frame: &Frame) -> Result<(), ConnectionClosed> {
        self.posted.send(frame.bytes().clone()).await.map_err(|_| ConnectionClosed)
    }

    /// Adds a reader of a stream; `None` if there are too many streams.
    pub(super) fn add_reader(
        &self,
        session: Option<&str>,
        last: Option<&str>,
    ) -> Option<ReaderRegistration> {
        self.state().router.add_reader(session, last)
    }

    pub(super) fn remove_reader(&self, session: Option<&str>, number: u64) {
        let mut state = self.state();
        state.router.remove_reader(session, number);
        state.last_active_at = Instant::now();
    }

    /// The next chunk of a stream; the end when the connection is closed or another reader has
    /// taken over the stream.
    pub(super) fn poll_chunk(
        &self,
        cx: &Context<'_>,
        session: Option<&str>,
        number: u64,
    ) -> Poll<Option<Bytes>> {
        let mut state = self.state();
        let taken = state.router.take_chunk(session, number, cx.waker());
        if !state.router.is_full() {
            state.stuck_since = None;
            state.receiver.take().into_iter().for_each(Waker::wake);
        }
        match taken {
            Some(StreamChunk::Bytes(bytes)) => Poll::Ready(Some(bytes)),
            Some(StreamChunk::Nothing) if !state.is_closed => Poll::Pending,
            Some(StreamChunk::Nothing | StreamChunk::TakenOver) | None => Poll::Ready(None),
        }
    }

    /// Closes the connection. Readers get the remaining frames, then the end.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.router.wake_all();
        self.ended.notify_one();
    }

    /// Waits until no stream is full.
    async fn wait_for_room(&self) {
        poll_fn(|cx| {
            let mut state = self.state();
            if !state.router.is_full() {
                return Poll::Ready(());
            }
            state.stuck_since.get_or_insert_with(Instant::now);
            state.receiver = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn is_unused(&self) -> bool {
        let state = self.state();
        let stuck = state.stuck_since.filter(|_| state.router.is_stuck());
        let idle = (!state.router.has_readers()).then_some(state.last_active_at);
        stuck.into_iter().chain(idle).any(|since| IDLE_AFTER <= since.elapsed())
    }

    fn state(&self) -> MutexGuard<'_, ConnectionStreams> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Relays frames between the hub and the streams until one of them ends.
async fn run(
    connection: Arc<HttpConnection>,
    hub: ClientStream,
    inbox: mpsc::Receiver<Bytes>,
    acp_state: Arc<AcpState>,
) {
    let (receiver, sender) = hub.into_frame_halves(HUB_FRAME_BYTES_MAX);
    let why = tokio::select! {
        why = receive_frames(&connection, receiver) => why,
        why = send_frames(sender, inbox) => why,
        why = wait_until_unused(&connection) => why,
        () = connection.ended.notified() => "the client has closed it",
    };
    tracing::debug!(why, "closed a connection over http");
    acp_state.connections.remove(&connection.id);
    connection.close();
}

async fn receive_frames(connection: &HttpConnection, mut hub: FrameReceiver) -> &'static str {
    loop {
        connection.wait_for_room().await;
        match hub.next_frame().await {
            Ok(Some(line)) => connection.state().router.on_hub_frame(line),
            Ok(None) => return "the hub has closed",
            Err(error) => {
                tracing::warn!(%error, "failed to read a frame of the hub");
                return "failed to read a frame of the hub";
            }
        }
    }
}

async fn send_frames(mut hub: FrameSender, mut inbox: mpsc::Receiver<Bytes>) -> &'static str {
    while let Some(text) = inbox.recv().await {
        if hub.send_frame(&text).await.is_err() {
            // The hub's last frames must still be received.
            return pending().await;
        }
    }
    "the channel of posted messages is closed"
}

async fn wait_until_unused(connection: &HttpConnection) -> &'static str {
    let mut sweep = interval(SWEEP_INTERVAL);
    loop {
        sweep.tick().await;
        if connection.is_unused() {
            return "it is unused";
        }
    }
}

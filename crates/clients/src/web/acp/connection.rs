//! One connection over HTTP: many requests of the client, one connection to the hub.

use super::Shared;
use super::limits::{HEARD_BYTES_MAX, IDLE_AFTER, LOOK_EVERY, POSTED_MAX};
use super::stream::Piece;
use super::switchboard::{Entered, Switchboard};
use crate::stream::Stream;
use crate::talk::{Hearing, Speaking};
use axum::http::HeaderValue;
use bytes::Bytes;
use jackfield_wire::Frame;
use std::future::{pending, poll_fn};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, interval};

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: HeaderValue,
    posted: mpsc::Sender<Bytes>,
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Debug)]
struct State {
    board: Switchboard,
    /// Waits for room.
    hearing: Option<Waker>,
    /// When the client was last seen.
    used: Instant,
    /// Since when nobody reads what is full.
    stuck: Option<Instant>,
    is_over: bool,
}

/// The connection is over.
#[derive(Debug)]
pub(super) struct Over;

impl Connection {
    /// A connection to the hub, in a task of its own until it ends.
    pub(super) fn open(shared: &Arc<Shared>, hub: Stream, id: HeaderValue) -> Arc<Connection> {
        let (posted, inbox) = mpsc::channel(POSTED_MAX);
        let state = State {
            board: Switchboard::default(),
            hearing: None,
            used: Instant::now(),
            stuck: None,
            is_over: false,
        };
        let state = Mutex::new(state);
        let connection = Arc::new(Connection { id, posted, state, ended: Notify::new() });
        tokio::spawn(run(Arc::clone(&connection), hub, inbox, Arc::clone(shared)));
        connection
    }

    /// Says hello to the hub and waits for its answer.
    pub(super) async fn hello(&self, hello: &Frame) -> Result<Frame, Over> {
        let answer = self.state().board.on_hello(hello.id().unwrap_or("null"));
        self.say(hello).await?;
        answer.await.map_err(|_: oneshot::error::RecvError| Over)
    }

    /// Passes on what the client posted, about this session or none.
    pub(super) async fn post(&self, frame: &Frame, session: Option<String>) -> Result<(), Over> {
        {
            let mut state = self.state();
            state.used = Instant::now();
            state.board.on_posted(frame, session);
        }
        self.say(frame).await
    }

    pub(super) async fn say(&self, frame: &Frame) -> Result<(), Over> {
        self.posted.send(frame.bytes().clone()).await.map_err(|_| Over)
    }

    /// Somebody comes to read a stream, and will leave it; `None` if there are too many.
    pub(super) fn enter(&self, session: Option<&str>, last: Option<&str>) -> Option<Entered> {
        self.state().board.enter(session, last)
    }

    pub(super) fn leave(&self, session: Option<&str>, number: u64) {
        let mut state = self.state();
        state.board.leave(session, number);
        state.used = Instant::now();
    }

    /// The next piece of a stream; the end when the connection is over, or somebody else reads it.
    pub(super) fn poll_take(
        &self,
        cx: &Context<'_>,
        session: Option<&str>,
        number: u64,
    ) -> Poll<Option<Bytes>> {
        let mut state = self.state();
        let taken = state.board.take(session, number, cx.waker());
        if !state.board.is_full() {
            state.stuck = None;
            state.hearing.take().into_iter().for_each(Waker::wake);
        }
        match taken {
            Some(Piece::Bytes(bytes)) => Poll::Ready(Some(bytes)),
            Some(Piece::Nothing) if !state.is_over => Poll::Pending,
            Some(Piece::Nothing | Piece::TakenOver) | None => Poll::Ready(None),
        }
    }

    /// Ends it; readers get what is left, then the end.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.is_over = true;
        state.board.wake_all();
        self.ended.notify_one();
    }

    /// Waits until no stream is full.
    async fn room(&self) {
        poll_fn(|cx| {
            let mut state = self.state();
            if !state.board.is_full() {
                return Poll::Ready(());
            }
            state.stuck.get_or_insert_with(Instant::now);
            state.hearing = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn is_unused(&self) -> bool {
        let state = self.state();
        let stuck = state.stuck.filter(|_| state.board.is_stuck());
        let idle = (!state.board.has_readers()).then_some(state.used);
        stuck.into_iter().chain(idle).any(|since| IDLE_AFTER <= since.elapsed())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Carries everything between the hub and the streams until one of them ends.
async fn run(
    connection: Arc<Connection>,
    hub: Stream,
    inbox: mpsc::Receiver<Bytes>,
    shared: Arc<Shared>,
) {
    let (hearing, speaking) = hub.talk(HEARD_BYTES_MAX);
    let why = tokio::select! {
        why = hear(&connection, hearing) => why,
        why = speak(speaking, inbox) => why,
        why = grow_old(&connection) => why,
        () = connection.ended.notified() => "the client has ended it",
    };
    tracing::debug!(why, "a connection over http has ended");
    shared.connections.forget(&connection.id);
    connection.end();
}

async fn hear(connection: &Connection, mut hub: Hearing) -> &'static str {
    loop {
        connection.room().await;
        match hub.next().await {
            Ok(Some(line)) => connection.state().board.on_heard(line),
            Ok(None) => return "the hub has closed",
            Err(error) => {
                tracing::warn!(%error, "the hub cannot be understood");
                return "the hub cannot be understood";
            }
        }
    }
}

async fn speak(mut hub: Speaking, mut inbox: mpsc::Receiver<Bytes>) -> &'static str {
    while let Some(text) = inbox.recv().await {
        if hub.say(&text).await.is_err() {
            // Its last words are still to be heard.
            return pending().await;
        }
    }
    "nobody can say anything any more"
}

async fn grow_old(connection: &Connection) -> &'static str {
    let mut look = interval(LOOK_EVERY);
    loop {
        look.tick().await;
        if connection.is_unused() {
            return "nobody uses it";
        }
    }
}

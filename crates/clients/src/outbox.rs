//! What a connection has yet to hear: a queue of frames, written many at a time.
//!
//! The daemon's loop writes directly as long as the socket takes it. When the socket is full, the
//! writing belongs to the connection's task until the queue is empty again: one writer at a time,
//! no system call that is known to fail.

use crate::stream::WriteHalf;
use bytes::Bytes;
use jackfield_wire::{Backlog, WRITE_BYTES_MAX};
use std::cell::RefCell;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// One turn of writing, so that a fast reader of a long queue does not keep the loop.
const TURN_BYTES_MAX: usize = 1 << 20;
/// What a peer gets to take the next bytes, or to close, once we want to close.
pub(crate) const LINGER: Duration = Duration::from_secs(5);

thread_local! {
    /// Where small texts are put together. Borrowed only while a write runs.
    static PAGE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug)]
pub(crate) struct Outbox {
    half: WriteHalf,
    state: Mutex<State>,
    writer_news: Notify,
    reader_news: Notify,
}

#[derive(Debug)]
struct State {
    queue: Backlog,
    /// The socket was full: the task writes, nobody else.
    waiting: bool,
    phase: Phase,
}

/// How far a connection is with ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Open,
    /// To be closed when the queue is empty.
    Finishing,
    /// The last byte and the end of file are written.
    Finished,
    /// The peer cannot hear us any more; what it has said may still be read.
    Broken,
    /// We have ended it.
    Closed,
}

impl Outbox {
    pub(crate) fn new(half: WriteHalf) -> Outbox {
        let state = State { queue: Backlog::default(), waiting: false, phase: Phase::Open };
        Outbox {
            half,
            state: Mutex::new(state),
            writer_news: Notify::new(),
            reader_news: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state().phase
    }

    pub(crate) fn queued(&self) -> usize {
        self.state().queue.text_bytes()
    }

    pub(crate) fn push(&self, text: Bytes) {
        let mut state = self.state();
        if state.phase == Phase::Open {
            state.queue.push(text);
        }
    }

    /// Writes what the socket takes now; the length of the texts that are out.
    pub(crate) fn flush(&self) -> usize {
        let mut state = self.state();
        if state.waiting || state.queue.is_empty() { 0 } else { self.write(&mut state) }
    }

    /// The rest is written without further calls, then the connection ends.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        if state.phase != Phase::Open {
            return;
        }
        state.phase = Phase::Finishing;
        state.waiting = !state.queue.is_empty();
        self.finish_if_empty(&mut state);
        self.tell();
    }

    pub(crate) fn close(&self) {
        self.end(Phase::Closed);
    }

    pub(crate) fn give_up(&self) {
        self.end(Phase::Broken);
    }

    fn end(&self, phase: Phase) {
        let mut state = self.state();
        if !matches!(state.phase, Phase::Broken | Phase::Closed) {
            self.drop_all(&mut state, phase);
        }
    }

    fn drop_all(&self, state: &mut State, phase: Phase) {
        // After a farewell it does not matter who ended it.
        state.phase = if state.phase == Phase::Open { phase } else { Phase::Closed };
        state.queue.clear();
        state.waiting = false;
        if state.phase == Phase::Closed {
            self.half.cut();
        }
        self.tell();
    }

    fn finish_if_empty(&self, state: &mut State) {
        if state.phase == Phase::Finishing && state.queue.is_empty() {
            state.phase = Phase::Finished;
            self.half.finish();
            self.tell();
        }
    }

    fn tell(&self) {
        self.writer_news.notify_one();
        self.reader_news.notify_one();
    }

    /// Something about [`Outbox::phase`] has changed. Nothing is missed between two calls.
    pub(crate) async fn changed(&self) {
        self.reader_news.notified().await;
    }

    pub(crate) fn is_deaf(&self) -> bool {
        self.half.is_deaf()
    }

    /// Writes when the socket has room again; the length of the texts that got out, or `None` when
    /// there will be nothing to write any more. For the connection's task alone.
    pub(crate) async fn wrote(&self) -> Option<usize> {
        loop {
            let (phase, waiting) = {
                let state = self.state();
                (state.phase, state.waiting)
            };
            match phase {
                Phase::Finished | Phase::Broken | Phase::Closed => return None,
                Phase::Open if waiting => self.room().await,
                Phase::Open => self.writer_news.notified().await,
                Phase::Finishing => {
                    if tokio::time::timeout(LINGER, self.room()).await.is_err() {
                        self.close();
                    }
                }
            }
            let wrote = self.write_waiting();
            if 0 < wrote {
                return Some(wrote);
            }
        }
    }

    /// Until the socket takes more, or the plan has changed.
    async fn room(&self) {
        tokio::select! {
            // An error shows in the write that follows.
            _ = self.half.writable() => {}
            () = self.writer_news.notified() => {}
        }
    }

    fn write_waiting(&self) -> usize {
        let mut state = self.state();
        if state.waiting { self.write(&mut state) } else { 0 }
    }

    fn write(&self, state: &mut State) -> usize {
        let (mut wrote, mut turn) = (0, 0);
        while !state.queue.is_empty() && turn < TURN_BYTES_MAX {
            let (written, offered) = self.write_once(state);
            match written {
                Ok(count) => {
                    wrote += state.queue.advance(count);
                    turn += count;
                    if count < offered {
                        self.half.note_full();
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.drop_all(state, Phase::Broken);
                    return wrote;
                }
            }
        }
        let was_waiting = state.waiting;
        state.waiting = !state.queue.is_empty();
        if state.waiting && !was_waiting {
            self.writer_news.notify_one();
        }
        self.finish_if_empty(state);
        wrote
    }

    fn write_once(&self, state: &State) -> (io::Result<usize>, usize) {
        PAGE.with_borrow_mut(|page| {
            // Less than a socket holds, so that most calls are not cut short.
            let slices = state.queue.lay_out(page, WRITE_BYTES_MAX);
            let offered = slices.iter().map(|it| it.len()).sum();
            (self.half.try_write_vectored(&slices), offered)
        })
    }
}

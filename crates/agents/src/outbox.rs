//! What waits to be written to an agent's stdin: queued by `send`, written by `flush`.
//!
//! `flush` writes on the spot, all queued frames in one call of the system. What the pipe does not
//! take is left to a task, and until that task is done nobody else writes: order is kept.

use crate::event::AgentEvent;
use bytes::{Buf as _, Bytes};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::unix::pipe::Sender;
use tokio::sync::{Notify, mpsc};

/// Slices per system call; each frame needs two.
const SLICES_MAX: usize = 128;
/// After so much, others get their turn.
const ROUND_BYTES_MAX: usize = 1 << 20;

/// The agent does not read, and what waits for it has reached its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent does not read: {backlog} bytes wait for it and the limit is {limit}")]
pub struct Full {
    pub backlog: usize,
    pub limit: usize,
}

#[derive(Clone)]
pub(crate) struct Outbox {
    state: Arc<Mutex<State>>,
    /// Wakes the task: there is something it must write, or it must let go of the pipe.
    wake: Arc<Notify>,
    /// Tells that nobody reads stdin any more.
    broken: Arc<Notify>,
    limit: usize,
}

struct State {
    /// `None` once stdin is closed.
    pipe: Option<Arc<Sender>>,
    queue: VecDeque<Bytes>,
    backlog: usize,
    /// The pipe was full: the task writes.
    blocked: bool,
    /// Close stdin when the queue is empty.
    closing: bool,
}

/// How a round of writing ended.
enum Round {
    Empty,
    /// Enough for now, or the pipe is full.
    More,
    /// Nobody reads the pipe any more.
    Broken,
}

impl Outbox {
    pub(crate) fn new(pipe: Sender, limit: usize) -> Outbox {
        let queue = VecDeque::new();
        let pipe = Some(Arc::new(pipe));
        let state = State { pipe, queue, backlog: 0, blocked: false, closing: false };
        let state = Arc::new(Mutex::new(state));
        Outbox { state, wake: Arc::default(), broken: Arc::default(), limit }
    }

    pub(crate) fn send(&self, text: Bytes) -> Result<(), Full> {
        let mut state = self.lock();
        if state.pipe.is_none() || state.closing {
            // The end of this agent is under way and will answer whatever is asked of it.
            return Ok(());
        }
        let bytes = text.len() + 1;
        if self.limit < state.backlog + bytes {
            return Err(Full { backlog: state.backlog, limit: self.limit });
        }
        state.backlog += bytes;
        state.queue.push_back(text);
        state.queue.push_back(Bytes::from_static(b"\n"));
        Ok(())
    }

    /// Returns the bytes that left.
    pub(crate) fn flush(&self) -> usize {
        let mut state = self.lock();
        if state.blocked {
            return 0;
        }
        let before = state.backlog;
        let round = state.write(|pipe, slices| Ok(rustix::io::writev(pipe, slices)?));
        let wrote = before - state.backlog;
        self.settle(state, &round);
        wrote
    }

    pub(crate) fn backlog(&self) -> usize {
        self.lock().backlog
    }

    /// Closes stdin behind the last frame.
    pub(crate) fn close(&self) {
        self.lock().closing = true;
        self.flush();
    }

    /// Closes stdin now and forgets what waits.
    pub(crate) fn abandon(&self) {
        self.lock().abandon();
        self.wake.notify_one();
    }

    /// Until a write finds that the agent has closed its stdin.
    pub(crate) async fn broken(&self) {
        self.broken.notified().await;
    }

    /// The task that writes when `flush` could not. Ends with stdin.
    pub(crate) async fn run<K: Clone>(self, key: K, events: mpsc::Sender<(K, AgentEvent)>) {
        let mut wrote = 0;
        loop {
            let (pipe, blocked) = {
                let state = self.lock();
                let Some(pipe) = &state.pipe else { return };
                (Arc::clone(pipe), state.blocked)
            };
            if !blocked {
                drop(pipe);
                self.wake.notified().await;
                continue;
            }
            tokio::select! {
                biased;
                () = self.wake.notified() => continue,
                _ = pipe.writable() => {}
            }
            drop(pipe);
            let empty = {
                let mut state = self.lock();
                let before = state.backlog;
                // tokio's own write: it remembers that the pipe is full.
                let round = state.write(Sender::try_write_vectored);
                wrote += before - state.backlog;
                self.settle(state, &round)
            };
            if empty && 0 < wrote {
                let _ = events.send((key.clone(), AgentEvent::Wrote { bytes: wrote })).await;
                wrote = 0;
            } else if 0 < wrote {
                // Only news of progress; if there is no room for it now, it comes with the next.
                let event = (key.clone(), AgentEvent::Wrote { bytes: wrote });
                if events.try_send(event).is_ok() {
                    wrote = 0;
                }
                tokio::task::yield_now().await;
            }
        }
    }

    /// Returns whether nothing is left to write.
    fn settle(&self, mut state: MutexGuard<'_, State>, round: &Round) -> bool {
        match round {
            Round::Empty => {
                state.blocked = false;
                if state.closing {
                    state.abandon();
                }
            }
            Round::More => state.blocked = true,
            Round::Broken => {
                state.abandon();
                self.broken.notify_one();
            }
        }
        if state.blocked || state.pipe.is_none() {
            self.wake.notify_one();
        }
        !state.blocked
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn write(&mut self, write: impl Fn(&Sender, &[IoSlice<'_>]) -> io::Result<usize>) -> Round {
        let Some(pipe) = self.pipe.clone() else { return Round::Empty };
        let mut round = 0;
        while !self.queue.is_empty() {
            if ROUND_BYTES_MAX <= round {
                return Round::More;
            }
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let count = self.queue.len().min(SLICES_MAX);
            for (slice, bytes) in slices.iter_mut().zip(&self.queue) {
                *slice = IoSlice::new(bytes);
            }
            match write(&pipe, &slices[..count]) {
                Ok(written) => {
                    self.take(written);
                    round += written;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Round::More,
                Err(error) if error.raw_os_error() == Some(Errno::INTR.raw_os_error()) => {}
                Err(_) => return Round::Broken,
            }
        }
        Round::Empty
    }

    fn take(&mut self, mut written: usize) {
        self.backlog -= written;
        while let Some(front) = self.queue.front_mut() {
            if written < front.len() {
                front.advance(written);
                return;
            }
            written -= front.len();
            self.queue.pop_front();
        }
    }

    fn abandon(&mut self) {
        self.pipe = None;
        self.blocked = false;
        self.backlog = 0;
        drop(mem::take(&mut self.queue));
    }
}

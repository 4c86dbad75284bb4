//! What waits to be written to an agent's stdin: queued by `send`, written by `flush`.
//!
//! `flush` writes on the spot, all queued frames in one call of the system. What the pipe does not
//! take is left to a task, and until that task is done nobody else writes: order is kept.

use crate::event::AgentEvent;
use bytes::Bytes;
use jackfield_wire::Backlog;
use rustix::io::Errno;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::unix::pipe::Sender;
use tokio::sync::{Notify, mpsc};

/// What a pipe holds: more would be laid out in vain.
const WRITE_BYTES_MAX: usize = 64 << 10;
/// After so much, others get their turn.
const ROUND_BYTES_MAX: usize = 1 << 20;

thread_local! {
    /// Where small frames are put together. Borrowed only while a write runs.
    static PAGE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

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
    queue: Backlog,
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
        let (pipe, queue) = (Some(Arc::new(pipe)), Backlog::default());
        let state = State { pipe, queue, blocked: false, closing: false };
        let state = Arc::new(Mutex::new(state));
        Outbox { state, wake: Arc::default(), broken: Arc::default(), limit }
    }

    pub(crate) fn send(&self, text: Bytes) -> Result<(), Full> {
        let mut state = self.lock();
        if state.pipe.is_none() || state.closing {
            // The end of this agent is under way and will answer whatever is asked of it.
            return Ok(());
        }
        let backlog = state.queue.bytes();
        if self.limit < backlog + text.len() + 1 {
            return Err(Full { backlog, limit: self.limit });
        }
        state.queue.push(text);
        Ok(())
    }

    /// Returns the bytes that left.
    pub(crate) fn flush(&self) -> usize {
        let mut state = self.lock();
        if state.blocked {
            return 0;
        }
        let before = state.queue.bytes();
        let round = state.write(|pipe, slices| Ok(rustix::io::writev(pipe, slices)?));
        let wrote = before - state.queue.bytes();
        self.settle(state, &round);
        wrote
    }

    pub(crate) fn backlog(&self) -> usize {
        self.lock().queue.bytes()
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
                let before = state.queue.bytes();
                // tokio's own write: it remembers that the pipe is full.
                let round = state.write(Sender::try_write_vectored);
                wrote += before - state.queue.bytes();
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
            let (written, offered) = PAGE.with_borrow_mut(|page| {
                let slices = self.queue.lay_out(page, WRITE_BYTES_MAX);
                (write(&pipe, &slices), slices.iter().map(|it| it.len()).sum::<usize>())
            });
            match written {
                Ok(written) => {
                    self.queue.advance(written);
                    round += written;
                    if written < offered {
                        return Round::More;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Round::More,
                Err(error) if error.raw_os_error() == Some(Errno::INTR.raw_os_error()) => {}
                Err(_) => return Round::Broken,
            }
        }
        Round::Empty
    }

    fn abandon(&mut self) {
        self.pipe = None;
        self.blocked = false;
        self.queue.clear();
    }
}

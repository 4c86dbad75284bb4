//! Writes an agent's stdin: `send` queues frames, `flush` writes them.
//!
//! `flush` writes all queued frames at once with one system call. A task writes what the pipe does
//! not take, and until it is done nothing else writes, so the order is preserved.

use crate::event::AgentProcessEvent;
use bytes::Bytes;
use jackfield_protocol::WriteBacklog;
use rustix::io::Errno;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::unix::pipe::Sender;
use tokio::sync::{Notify, mpsc};

/// The capacity of a pipe; larger writes would be partial.
const WRITE_BYTES_MAX: usize = 64 << 10;
/// After this many bytes the task yields to others.
const ROUND_BYTES_MAX: usize = 1 << 20;

thread_local! {
    /// The buffer in which small frames are joined. Borrowed only during a write.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The agent does not read, and its backlog has reached the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent does not read its stdin: {backlog} bytes are queued; the limit is {limit}")]
pub struct BacklogFull {
    pub backlog: usize,
    pub limit: usize,
}

#[derive(Clone)]
pub(crate) struct StdinWriter {
    state: Arc<Mutex<WriterState>>,
    /// Wakes the task to write, or to release the pipe.
    wake: Arc<Notify>,
    /// Notified when the agent has closed its stdin.
    broken: Arc<Notify>,
    limit: usize,
}

struct WriterState {
    /// `None` once stdin is closed.
    pipe: Option<Arc<Sender>>,
    queue: WriteBacklog,
    /// The pipe was full, so the task writes.
    blocked: bool,
    /// Whether stdin is closed when the queue is empty.
    closing: bool,
}

/// The result of a round of writes.
enum WriteRound {
    Empty,
    /// The round reached its limit, or the pipe is full.
    More,
    /// The agent has closed its end of the pipe.
    Broken,
}

impl StdinWriter {
    pub(crate) fn new(pipe: Sender, limit: usize) -> StdinWriter {
        let (pipe, queue) = (Some(Arc::new(pipe)), WriteBacklog::default());
        let state = WriterState { pipe, queue, blocked: false, closing: false };
        let state = Arc::new(Mutex::new(state));
        StdinWriter { state, wake: Arc::default(), broken: Arc::default(), limit }
    }

    pub(crate) fn send(&self, text: Bytes) -> Result<(), BacklogFull> {
        let mut state = self.lock();
        if state.pipe.is_none() || state.closing {
            // The agent is being ended. Its exit will answer all pending requests.
            return Ok(());
        }
        let backlog = state.queue.bytes();
        if self.limit < backlog + text.len() + 1 {
            return Err(BacklogFull { backlog, limit: self.limit });
        }
        state.queue.push(text);
        Ok(())
    }

    /// Returns the number of written bytes.
    pub(crate) fn flush(&self) -> usize {
        let mut state = self.lock();
        if state.blocked {
            return 0;
        }
        let before = state.queue.bytes();
        let round = state.write(|pipe, slices| Ok(rustix::io::writev(pipe, slices)?));
        let wrote = before - state.queue.bytes();
        self.finish_round(state, &round);
        wrote
    }

    pub(crate) fn backlog(&self) -> usize {
        self.lock().queue.bytes()
    }

    /// Closes stdin after the last frame.
    pub(crate) fn close(&self) {
        self.lock().closing = true;
        self.flush();
    }

    /// Closes stdin now and discards the queue.
    pub(crate) fn abandon(&self) {
        self.lock().abandon();
        self.wake.notify_one();
    }

    /// Completes when a write finds that the agent has closed its stdin.
    pub(crate) async fn broken(&self) {
        self.broken.notified().await;
    }

    /// The task that writes when `flush` could not. Ends when stdin is closed.
    pub(crate) async fn run<K: Clone>(self, key: K, events: mpsc::Sender<(K, AgentProcessEvent)>) {
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
                // tokio's write records that the pipe is full.
                let round = state.write(Sender::try_write_vectored);
                wrote += before - state.queue.bytes();
                self.finish_round(state, &round)
            };
            if empty && 0 < wrote {
                let _ = events.send((key.clone(), AgentProcessEvent::Wrote { bytes: wrote })).await;
                wrote = 0;
            } else if 0 < wrote {
                // A progress report; if the channel is full, the next report includes it.
                let event = (key.clone(), AgentProcessEvent::Wrote { bytes: wrote });
                if events.try_send(event).is_ok() {
                    wrote = 0;
                }
                tokio::task::yield_now().await;
            }
        }
    }

    /// Updates the state after a round. Returns whether nothing is left to write.
    fn finish_round(&self, mut state: MutexGuard<'_, WriterState>, round: &WriteRound) -> bool {
        match round {
            WriteRound::Empty => {
                state.blocked = false;
                if state.closing {
                    state.abandon();
                }
            }
            WriteRound::More => state.blocked = true,
            WriteRound::Broken => {
                state.abandon();
                self.broken.notify_one();
            }
        }
        if state.blocked || state.pipe.is_none() {
            self.wake.notify_one();
        }
        !state.blocked
    }

    fn lock(&self) -> MutexGuard<'_, WriterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WriterState {
    fn write(
        &mut self,
        write: impl Fn(&Sender, &[IoSlice<'_>]) -> io::Result<usize>,
    ) -> WriteRound {
        let Some(pipe) = self.pipe.clone() else { return WriteRound::Empty };
        let mut round = 0;
        while !self.queue.is_empty() {
            if ROUND_BYTES_MAX <= round {
                return WriteRound::More;
            }
            let (written, offered) = BUFFER.with_borrow_mut(|buffer| {
                let slices = self.queue.lay_out(buffer, WRITE_BYTES_MAX);
                (write(&pipe, &slices), slices.iter().map(|it| it.len()).sum::<usize>())
            });
            match written {
                Ok(written) => {
                    self.queue.advance(written);
                    round += written;
                    if written < offered {
                        return WriteRound::More;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return WriteRound::More,
                Err(error) if error.raw_os_error() == Some(Errno::INTR.raw_os_error()) => {}
                Err(_) => return WriteRound::Broken,
            }
        }
        WriteRound::Empty
    }

    fn abandon(&mut self) {
        self.pipe = None;
        self.blocked = false;
        self.queue.clear();
    }
}

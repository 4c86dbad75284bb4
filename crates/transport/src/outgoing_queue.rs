//! The queue of outgoing frames of a connection, which are written many at a time.
//!
//! The daemon's loop writes directly as long as the socket has room. When the socket is full, only
//! the connection's task writes until the queue is empty again, so that there is one writer at a
//! time and no system call that is known to fail.

use crate::stream::WriteHalf;
use bytes::Bytes;
use jackfield_protocol::{WRITE_BYTES_MAX, WriteBacklog};
use std::cell::RefCell;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The bytes that are written in one turn, so that a fast reader of a long queue does not block the
/// loop.
const TURN_BYTES_MAX: usize = 1 << 20;
/// How long a peer may take to read the next bytes, or to close, while we are closing.
pub(crate) const LINGER: Duration = Duration::from_secs(5);

thread_local! {
    /// The buffer in which small frames are joined. Borrowed only during a write.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug)]
pub(crate) struct OutgoingQueue {
    half: WriteHalf,
    state: Mutex<OutgoingQueueState>,
    writer_wakeup: Notify,
    reader_wakeup: Notify,
}

#[derive(Debug)]
struct OutgoingQueueState {
    queue: WriteBacklog,
    /// The socket was full, so only the task writes.
    is_blocked: bool,
    phase: ConnectionPhase,
}

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionPhase {
    Open,
    /// It closes when the queue is empty.
    Finishing,
    /// The last byte and the end of file are written.
    Finished,
    /// The peer no longer reads; what it has sent may still be read.
    Broken,
    /// We have closed it.
    Closed,
}

impl OutgoingQueue {
    pub(crate) fn new(half: WriteHalf) -> OutgoingQueue {
        let state = OutgoingQueueState {
            queue: WriteBacklog::default(),
            is_blocked: false,
            phase: ConnectionPhase::Open,
        };
        OutgoingQueue {
            half,
            state: Mutex::new(state),
            writer_wakeup: Notify::new(),
            reader_wakeup: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, OutgoingQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn phase(&self) -> ConnectionPhase {
        self.state().phase
    }

    pub(crate) fn queued_bytes(&self) -> usize {
        self.state().queue.text_bytes()
    }

    pub(crate) fn push(&self, text: Bytes) {
        let mut state = self.state();
        if state.phase == ConnectionPhase::Open {
            state.queue.push(text);
        }
    }

    /// Writes as much as the socket has room for. Returns the length of the completed frames.
    pub(crate) fn flush(&self) -> usize {
        let mut state = self.state();
        if state.is_blocked || state.queue.is_empty() { 0 } else { self.write(&mut state) }
    }

    /// Lets the task write the rest and then closes the connection.
    pub(crate) fn finish(&self) {
        let mut state = self.state();
        if state.phase != ConnectionPhase::Open {
            return;
        }
        state.phase = ConnectionPhase::Finishing;
        state.is_blocked = !state.queue.is_empty();
        self.finish_if_empty(&mut state);
        self.notify_both();
    }

    pub(crate) fn close(&self) {
        self.end_in(ConnectionPhase::Closed);
    }

    pub(crate) fn mark_broken(&self) {
        self.end_in(ConnectionPhase::Broken);
    }

    fn end_in(&self, phase: ConnectionPhase) {
        let mut state = self.state();
        if !matches!(state.phase, ConnectionPhase::Broken | ConnectionPhase::Closed) {
            self.drop_all(&mut state, phase);
        }
    }

    fn drop_all(&self, state: &mut OutgoingQueueState, phase: ConnectionPhase) {
        // After a graceful close has begun, a broken connection counts as closed.
        state.phase =
            if state.phase == ConnectionPhase::Open { phase } else { ConnectionPhase::Closed };
        state.queue.clear();
        state.is_blocked = false;
        if state.phase == ConnectionPhase::Closed {
            self.half.close_both();
        }
        self.notify_both();
    }

    fn finish_if_empty(&self, state: &mut OutgoingQueueState) {
        if state.phase == ConnectionPhase::Finishing && state.queue.is_empty() {
            state.phase = ConnectionPhase::Finished;
            self.half.finish();
            self.notify_both();
        }
    }

    fn notify_both(&self) {
        self.writer_wakeup.notify_one();
        self.reader_wakeup.notify_one();
    }

    /// Completes when [`OutgoingQueue::phase`] has changed. No change between two calls is missed.
    pub(crate) async fn phase_changed(&self) {
        self.reader_wakeup.notified().await;
    }

    pub(crate) fn is_disconnected(&self) -> bool {
        self.half.is_disconnected()
    }

    /// Writes when the socket has room again. Returns the length of the completed frames, or `None`
    /// when nothing more can be written. Only for the connection's task.
    pub(crate) async fn write_when_ready(&self) -> Option<usize> {
        loop {
            let (phase, is_blocked) = {
                let state = self.state();
                (state.phase, state.is_blocked)
            };
            match phase {
                ConnectionPhase::Finished | ConnectionPhase::Broken | ConnectionPhase::Closed => {
                    return None;
                }
                ConnectionPhase::Open if is_blocked => self.wait_for_room().await,
                ConnectionPhase::Open => self.writer_wakeup.notified().await,
                ConnectionPhase::Finishing => {
                    if tokio::time::timeout(LINGER, self.wait_for_room()).await.is_err() {
                        self.close();
                    }
                }
            }
            let wrote = self.write_blocked();
            if 0 < wrote {
                return Some(wrote);
            }
        }
    }

    /// Waits until the socket has room or the phase has changed.
    async fn wait_for_room(&self) {
        tokio::select! {
            // The next write reports an error.
            _ = self.half.writable() => {}
            () = self.writer_wakeup.notified() => {}
        }
    }

    fn write_blocked(&self) -> usize {
        let mut state = self.state();
        if state.is_blocked { self.write(&mut state) } else { 0 }
    }

    fn write(&self, state: &mut OutgoingQueueState) -> usize {
        let (mut wrote, mut turn) = (0, 0);
        while !state.queue.is_empty() && turn < TURN_BYTES_MAX {
            let (written, offered) = self.write_once(state);
            match written {
                Ok(count) => {
                    wrote += state.queue.advance(count);
                    turn += count;
                    if count < offered {
                        self.half.mark_full();
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    self.drop_all(state, ConnectionPhase::Broken);
                    return wrote;
                }
            }
        }
        let was_blocked = state.is_blocked;
        state.is_blocked = !state.queue.is_empty();
        if state.is_blocked && !was_blocked {
            self.writer_wakeup.notify_one();
        }
        self.finish_if_empty(state);
        wrote
    }

    fn write_once(&self, state: &OutgoingQueueState) -> (io::Result<usize>, usize) {
        BUFFER.with_borrow_mut(|buffer| {
            // Less than a socket buffer holds, so that most writes are complete.
            let slices = state.queue.lay_out(buffer, WRITE_BYTES_MAX);
            let offered = slices.iter().map(|it| it.len()).sum();
            (self.half.try_write_vectored(&slices), offered)
        })
    }
}

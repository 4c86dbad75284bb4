//! The queue of the writer thread.

use crate::record::AppendRequest;
use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

pub(super) enum WriteOperation {
    Append(AppendRequest),
    Delete(Arc<str>),
}

/// The next work of the writer thread.
pub(super) enum WriteGroup {
    /// Appends for one transaction.
    Append(Vec<AppendRequest>),
    Delete(Arc<str>),
}

#[derive(Default)]
pub(super) struct WriteQueue {
    state: Mutex<WriteQueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct WriteQueueState {
    operations: VecDeque<WriteOperation>,
    waiting_bytes: usize,
    /// The writer thread took a group and has not committed it yet.
    is_busy: bool,
    is_closed: bool,
}

impl WriteQueue {
    pub(super) fn push_all(&self, operations: impl IntoIterator<Item = WriteOperation>) {
        let mut state = self.lock();
        for operation in operations {
            if let WriteOperation::Append(append) = &operation {
                state.waiting_bytes += append_size(append);
            }
            state.operations.push_back(operation);
        }
        self.changed.notify_one();
    }

    /// Waits for the next group; the previous one counts as committed. Returns `None` after
    /// [`close`](WriteQueue::close) once the queue is empty.
    pub(super) fn next_group(&self, bytes_max: usize) -> Option<WriteGroup> {
        let mut state = self.lock();
        state.is_busy = false;
        while state.operations.is_empty() && !state.is_closed {
            state = self.changed.wait(state).expect(POISONED);
        }
        let group = state.pop_group(bytes_max)?;
        state.is_busy = true;
        Some(group)
    }

    /// Marks the last group as committed, so that appends may be committed inline again.
    pub(super) fn mark_committed(&self) {
        self.lock().is_busy = false;
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    #[cfg(test)]
    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Whether no operation is queued or in progress.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.operations.is_empty() && !state.is_busy
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.lock().waiting_bytes
    }

    fn lock(&self) -> MutexGuard<'_, WriteQueueState> {
        self.state.lock().expect(POISONED)
    }
}

impl WriteQueueState {
    /// A single deletion, or the appends before the next deletion, up to `bytes_max`.
    fn pop_group(&mut self, bytes_max: usize) -> Option<WriteGroup> {
        let mut appends = Vec::new();
        let mut bytes = 0;
        loop {
            match self.operations.pop_front() {
                Some(WriteOperation::Append(append)) => {
                    bytes += append_size(&append);
                    self.waiting_bytes -= append_size(&append);
                    appends.push(append);
                    if bytes_max <= bytes {
                        break;
                    }
                }
                Some(WriteOperation::Delete(stream)) if appends.is_empty() => {
                    return Some(WriteGroup::Delete(stream));
                }
                Some(delete @ WriteOperation::Delete(_)) => {
                    self.operations.push_front(delete);
                    break;
                }
                None => break,
            }
        }
        (!appends.is_empty()).then_some(WriteGroup::Append(appends))
    }
}

/// The bytes of an append that count toward the limits, including an overhead for the request.
pub(super) fn append_size(append: &AppendRequest) -> usize {
    append.body.len() + append.summary.as_ref().map_or(0, bytes::Bytes::len) + 256
}

const POISONED: &str = "nothing panics while it holds the queue";

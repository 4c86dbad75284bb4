//! What waits for the writer thread, in order.

use crate::record::Append;
use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

pub(super) enum Op {
    Append(Append),
    Delete(Arc<str>),
}

/// What the writer thread does next.
pub(super) enum Group {
    /// In one transaction.
    Append(Vec<Append>),
    Delete(Arc<str>),
}

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    ops: VecDeque<Op>,
    bytes: usize,
    /// A group was taken and is not finished.
    is_busy: bool,
    is_closed: bool,
}

impl Queue {
    pub(super) fn push(&self, ops: impl IntoIterator<Item = Op>) {
        let mut state = self.lock();
        for op in ops {
            if let Op::Append(append) = &op {
                state.bytes += size(append);
            }
            state.ops.push_back(op);
        }
        self.changed.notify_one();
    }

    /// Waits for the next group. The one before it is finished. None once all is done after
    /// [`close`](Queue::close).
    pub(super) fn take(&self, bytes_max: usize) -> Option<Group> {
        let mut state = self.lock();
        state.is_busy = false;
        while state.ops.is_empty() && !state.is_closed {
            state = self.changed.wait(state).expect(POISONED);
        }
        let group = state.next_group(bytes_max)?;
        state.is_busy = true;
        Some(group)
    }

    /// Tells that the group taken last is committed: the way is free again.
    pub(super) fn finish(&self) {
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

    /// Whether nothing waits and nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.ops.is_empty() && !state.is_busy
    }

    pub(super) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(POISONED)
    }
}

impl State {
    /// A deletion alone, or the appends before the next one, up to so many bytes.
    fn next_group(&mut self, bytes_max: usize) -> Option<Group> {
        let mut appends = Vec::new();
        let mut bytes = 0;
        loop {
            match self.ops.pop_front() {
                Some(Op::Append(append)) => {
                    bytes += size(&append);
                    self.bytes -= size(&append);
                    appends.push(append);
                    if bytes_max <= bytes {
                        break;
                    }
                }
                Some(Op::Delete(stream)) if appends.is_empty() => {
                    return Some(Group::Delete(stream));
                }
                Some(delete @ Op::Delete(_)) => {
                    self.ops.push_front(delete);
                    break;
                }
                None => break,
            }
        }
        (!appends.is_empty()).then_some(Group::Append(appends))
    }
}

/// What an append weighs: its bytes, and something for itself.
pub(super) fn size(append: &Append) -> usize {
    append.body.len() + append.summary.as_ref().map_or(0, bytes::Bytes::len) + 256
}

const POISONED: &str = "nothing panics while it holds the queue";

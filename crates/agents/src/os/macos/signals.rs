//! Signals and forks as a kqueue to wait for.
#![expect(unsafe_code, reason = "`kevent` is unsafe for events with descriptors")]

use crate::os::ProcessIdentity;
use crate::os::signal_set::{self, CaughtSignals};
use rustix::event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// The number of events that one call returns.
const EVENTS_MAX: usize = 32;

pub(crate) struct SignalReader {
    queue: OwnedFd,
}

impl SignalReader {
    /// Blocks the signals. For a process with one thread, because the mask belongs to the thread.
    /// The queue also reports signals that are blocked.
    pub(crate) fn block() -> io::Result<SignalReader> {
        signal_set::block_signals()?;
        let queue = kqueue()?;
        fcntl_setfd(&queue, FdFlags::CLOEXEC)?;
        let reader = SignalReader { queue };
        for signal in [Signal::CHILD, Signal::TERM] {
            reader.add(EventFilter::Signal { signal, times: 0 })?;
        }
        Ok(reader)
    }

    /// Reports the forks of a process from now on. The event ends with the process.
    pub(crate) fn follow(&self, process: ProcessIdentity) {
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // The process may have exited.
            let _gone = self.add(EventFilter::Proc { pid, flags: ProcessEvents::FORK });
        }
    }

    /// The signals and forks that arrived since the last call. Never waits.
    pub(crate) fn read_caught(&self) -> CaughtSignals {
        let mut caught = CaughtSignals::default();
        loop {
            let mut events = Vec::with_capacity(EVENTS_MAX);
            let room = rustix::buffer::spare_capacity(&mut events);
            // SAFETY: no event is added.
            let read = unsafe { kevent(&self.queue, &[], room, Some(Duration::ZERO)) };
            if !read.is_ok_and(|count| 0 < count) {
                return caught;
            }
            for event in &events {
                match event.filter() {
                    EventFilter::Signal { signal, .. } => {
                        caught.child |= signal == Signal::CHILD;
                        caught.term |= signal == Signal::TERM;
                    }
                    EventFilter::Proc { pid, flags } if flags.contains(ProcessEvents::FORK) => {
                        caught.forked.push(pid.as_raw_nonzero().get().unsigned_abs());
                    }
                    _ => {}
                }
            }
        }
    }

    fn add(&self, filter: EventFilter) -> io::Result<()> {
        let event = Event::new(filter, EventFlags::ADD | EventFlags::CLEAR, std::ptr::null_mut());
        // SAFETY: the event refers to a signal or a process and to no descriptor.
        unsafe { kevent(&self.queue, &[event], &mut [] as &mut [Event], None)? };
        Ok(())
    }
}

impl AsFd for SignalReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

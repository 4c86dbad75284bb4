//! Exit events of kqueue: a queue becomes readable when the process exits, and a pid is not reused
//! before that.
#![expect(unsafe_code, reason = "`kevent` is unsafe for events with descriptors")]

use rustix::event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal, kill_process};
use std::os::fd::{BorrowedFd, OwnedFd};

/// A descriptor that becomes readable when this process exits.
pub(crate) fn open(pid: Pid) -> Result<OwnedFd, Errno> {
    let queue = kqueue()?;
    fcntl_setfd(&queue, FdFlags::CLOEXEC)?;
    let filter = EventFilter::Proc { pid, flags: ProcessEvents::EXIT };
    let exit = Event::new(filter, EventFlags::ADD, std::ptr::null_mut());
    // SAFETY: the event refers to a process and to no descriptor.
    unsafe { kevent(&queue, &[exit], &mut [] as &mut [Event], None)? };
    Ok(queue)
}

/// Signals the pinned process if it has not exited. The system has no call that checks and signals
/// in one step.
pub(crate) fn signal(pin: BorrowedFd<'_>, pid: Pid, signal: Signal) -> Result<(), Errno> {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut pins = [PollFd::from_borrowed_fd(pin, PollFlags::IN)];
    if poll(&mut pins, Some(&now))? == 0 { kill_process(pid, signal) } else { Err(Errno::SRCH) }
}

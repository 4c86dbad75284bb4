//! The daemon's hold on one agent.

use crate::os::ticks;
use crate::outbox::{Full, Outbox};
use crate::stop::{Control, Order, Stop};
use bytes::Bytes;
use jackfield_wire::Valve;
use std::sync::Arc;
use std::time::Duration;

/// Dropping it hangs up: the guard ends the tree as if the daemon were gone, soon and by itself.
pub struct AgentHandle {
    outbox: Outbox,
    valve: Arc<Valve>,
    control: Arc<Control>,
}

impl AgentHandle {
    pub(crate) fn new(outbox: Outbox, valve: Arc<Valve>, control: Arc<Control>) -> AgentHandle {
        AgentHandle { outbox, valve, control }
    }

    /// Queues one frame, without a newline in it or behind it. Nothing is written before [`flush`];
    /// call that once after a series of sends. To an agent that is being stopped nothing is sent.
    ///
    /// [`flush`]: AgentHandle::flush
    pub fn send(&mut self, text: Bytes) -> Result<(), Full> {
        debug_assert!(!text.contains(&b'\n'), "a frame is one line");
        self.outbox.send(text)
    }

    /// Writes what is queued, all of it with one call if the pipe takes it. Never waits: a task
    /// writes the rest when the agent reads on, and tells by [`crate::AgentEvent::Wrote`]. Returns
    /// the bytes that left with this call, newlines included.
    pub fn flush(&mut self) -> usize {
        self.outbox.flush()
    }

    /// Bytes queued and not yet written.
    pub fn backlog(&self) -> usize {
        self.outbox.backlog()
    }

    /// Stops reading the agent's stdout: when the pipe is full, the agent waits. What was read
    /// already still arrives. An agent that ends is read to its end all the same.
    pub fn pause(&mut self) {
        self.valve.set_closed(true);
    }

    pub fn resume(&mut self) {
        self.valve.set_closed(false);
    }

    /// Closes stdin behind what is queued, and lets the program go on.
    pub fn close_stdin(&mut self) {
        self.outbox.close();
    }

    /// Ends what the agent started within this time and left running in a process group of its own,
    /// as tools do; the agent stays. For a turn that was cancelled: many agents forget its tools.
    pub fn end_tools(&mut self, age: Duration) {
        // Both are rounded down, so one tick earlier is not too late.
        let since = ticks::now().saturating_sub(ticks::of(age) + 1);
        self.control.order(Order::EndTools(since));
    }

    /// Ends the agent and its tree; [`crate::AgentEvent::Gone`] and `Swept` follow.
    pub fn stop(&mut self, stop: Stop) {
        self.control.order(Order::Stop(stop));
        match stop {
            Stop::Polite | Stop::Soon => self.outbox.close(),
            Stop::Now => self.outbox.abandon(),
        }
    }
}

impl Drop for AgentHandle {
    fn drop(&mut self) {
        self.outbox.abandon();
        self.control.hang_up();
    }
}

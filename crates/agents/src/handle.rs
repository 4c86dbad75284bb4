//! The daemon's handle to one agent.

use crate::os::{current_start_time, start_time_span};
use crate::stdin_writer::{BacklogFull, StdinWriter};
use crate::stop::{GuardConnection, GuardRequest, StopUrgency};
use bytes::Bytes;
use jackfield_protocol::FlowControl;
use std::sync::Arc;
use std::time::Duration;

/// Controls one agent. When it is dropped, the guard ends the process tree as if the daemon had
/// exited.
pub struct AgentHandle {
    stdin: StdinWriter,
    flow_control: Arc<FlowControl>,
    guard_connection: Arc<GuardConnection>,
}

impl AgentHandle {
    pub(crate) fn new(
        stdin: StdinWriter,
        flow_control: Arc<FlowControl>,
        guard_connection: Arc<GuardConnection>,
    ) -> AgentHandle {
        AgentHandle { stdin, flow_control, guard_connection }
    }

    /// Queues one frame, which contains no newline. Nothing is written before [`flush`]; call it
    /// once after a series of sends. Frames for an agent that is being stopped are discarded.
    ///
    /// [`flush`]: AgentHandle::flush
    pub fn send(&mut self, text: Bytes) -> Result<(), BacklogFull> {
        debug_assert!(!text.contains(&b'\n'), "a frame is one line");
        self.stdin.send(text)
    }

    /// Writes the queued frames, with one system call if the pipe has room. Never waits: a task
    /// writes the rest when the agent reads, and reports [`crate::AgentProcessEvent::Wrote`]. Returns the
    /// number of bytes that this call has written, newlines included.
    pub fn flush(&mut self) -> usize {
        self.stdin.flush()
    }

    /// The number of bytes that are queued and not yet written.
    pub fn backlog(&self) -> usize {
        self.stdin.backlog()
    }

    /// Stops reading the agent's stdout, so the agent blocks when the pipe is full. Output that was
    /// already read is still delivered. After the agent's exit, its output is read to the end.
    pub fn pause(&mut self) {
        self.flow_control.pause_reading();
    }

    pub fn resume(&mut self) {
        self.flow_control.resume_reading();
    }

    /// Closes stdin after the queued frames and lets the program continue.
    pub fn close_stdin(&mut self) {
        self.stdin.close();
    }

    /// Ends processes that the agent started within this time and left running in another process
    /// group, as tools do; the agent keeps running. For a canceled turn, because many agents do not
    /// end its tools.
    pub fn end_tools(&mut self, age: Duration) {
        // Both values are rounded down, so start one unit earlier.
        let since = current_start_time().saturating_sub(start_time_span(age) + 1);
        self.guard_connection.send_request(GuardRequest::EndTools(since));
    }

    /// Ends the agent and its process tree; [`crate::AgentProcessEvent::Gone`] and `Swept` follow.
    pub fn stop(&mut self, stop: StopUrgency) {
        self.guard_connection.send_request(GuardRequest::Stop(stop));
        match stop {
            StopUrgency::Polite | StopUrgency::Soon => self.stdin.close(),
            StopUrgency::Now => self.stdin.abandon(),
        }
    }
}

impl Drop for AgentHandle {
    fn drop(&mut self) {
        self.stdin.abandon();
        self.guard_connection.hang_up();
    }
}

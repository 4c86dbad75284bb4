//! The main loop of the guard: waits for the daemon, signals and timeouts, and executes the stop
//! sequence.

use super::agent_tree::AgentTree;
use super::guard_report::{self, GuardReport};
use super::stop_sequence::{StopAction, StopSequence};
use super::tool_reaper::ToolReaper;
use crate::os::{self, MARK_VARIABLE, ORPHAN_PARENT, ReapResult, Signal, SignalReader};
use crate::stop::{GracePeriods, GuardRequest, StopUrgency};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

pub(super) struct GuardLoop<'a> {
    socket: BorrowedFd<'a>,
    is_daemon_alive: bool,
    signals: &'a SignalReader,
    agent: u32,
    sequence: StopSequence,
    /// Tools that are being ended while the agent keeps running.
    tool_reaper: ToolReaper,
    tree: AgentTree<'a>,
    is_childless: bool,
    born: Instant,
    /// The bytes of requests that are not complete yet.
    request_bytes: Vec<u8>,
}

impl<'a> GuardLoop<'a> {
    pub(super) fn new(
        socket: BorrowedFd<'a>,
        signals: &'a SignalReader,
        agent: u32,
        graces: GracePeriods,
    ) -> GuardLoop<'a> {
        let mark = std::env::var(MARK_VARIABLE).unwrap_or_default();
        let mut tree = AgentTree::new(ORPHAN_PARENT, mark, signals);
        tree.add_agent(agent);
        GuardLoop {
            socket,
            is_daemon_alive: true,
            signals,
            agent,
            sequence: StopSequence::new(graces),
            tool_reaper: ToolReaper::default(),
            tree,
            is_childless: false,
            born: Instant::now(),
            request_bytes: Vec::new(),
        }
    }

    /// Runs until the tree has ended. Returns the pids of the survivors.
    pub(super) fn run(mut self) -> Vec<u32> {
        loop {
            let now = self.born.elapsed();
            match self.sequence.next_action(now) {
                StopAction::Wait { until } => {
                    self.tool_reaper.kill_if_due(self.tree.table(), now);
                    let next = until.into_iter().chain(self.tool_reaper.kill_at()).min();
                    let timeout = next.map(|next| next.saturating_sub(now));
                    self.wait_for_events(timeout.into_iter().chain(self.check_interval()).min());
                    self.check_orphans();
                }
                StopAction::Term => {
                    self.signal_tree(Signal::TERM);
                    // A stopped process handles no other signal until it is continued.
                    self.signal_tree(Signal::CONT);
                }
                StopAction::Kill => {
                    self.signal_tree(Signal::KILL);
                    self.on_children(&os::reap());
                }
                StopAction::Done => {
                    return self.tree.processes().into_iter().map(|it| it.pid).collect();
                }
            }
        }
    }

    fn wait_for_events(&mut self, timeout: Option<Duration>) {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut sources = [
            PollFd::new(self.signals, PollFlags::IN),
            PollFd::from_borrowed_fd(self.socket, PollFlags::IN),
        ];
        // A socket at its end is always ready, so it is polled only while the daemon is alive.
        let count = if self.is_daemon_alive { 2 } else { 1 };
        if poll(&mut sources[..count], timeout.as_ref()).is_err() {
            return;
        }
        let is_socket_ready = self.is_daemon_alive && !sources[1].revents().is_empty();
        // The agent's exit first, because the daemon waits for the report.
        let caught = self.signals.read_caught();
        if caught.child {
            self.on_children(&os::reap());
        }
        for parent in caught.forked {
            self.tree.add_children(parent);
        }
        if is_socket_ready {
            self.on_daemon();
        }
        if caught.term {
            self.on_term();
        }
    }

    fn on_children(&mut self, reap: &ReapResult) {
        let now = self.born.elapsed();
        if let Some(ended) = reap.ended.iter().find(|ended| ended.pid == self.agent) {
            let (code, signal) = (ended.code, ended.signal);
            guard_report::send_report(self.socket, &GuardReport::Exited { code, signal });
            self.sequence.on_exited(now);
        }
        self.is_childless = reap.childless;
        if self.is_childless && self.tree.is_empty_without_children() {
            self.sequence.on_empty();
        }
    }

    /// How often [`GuardLoop::check_orphans`] must be called.
    fn check_interval(&self) -> Option<Duration> {
        self.tree.check_interval().filter(|_| self.is_childless)
    }

    /// Ends the sequence when the last orphan has exited, where their exit is not reported.
    fn check_orphans(&mut self) {
        if self.check_interval().is_some() && self.tree.is_empty_without_children() {
            self.sequence.on_empty();
        }
    }

    fn on_daemon(&mut self) {
        let now = self.born.elapsed();
        let mut bytes = [0; 16];
        match recv(self.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                self.is_daemon_alive = false;
                self.sequence.on_orphaned(now);
            }
            Ok((count, _)) => {
                self.request_bytes.extend_from_slice(&bytes[..count]);
                while let Some(request) = GuardRequest::take_from(&mut self.request_bytes) {
                    match request {
                        GuardRequest::Stop(StopUrgency::Polite) => self.sequence.on_polite(now),
                        GuardRequest::Stop(StopUrgency::Soon) => self.sequence.on_soon(now),
                        GuardRequest::Stop(StopUrgency::Now) => self.sequence.on_now(now),
                        GuardRequest::EndTools(since) => {
                            self.tool_reaper.terminate_tools(
                                self.tree.table(),
                                self.agent,
                                since,
                                now,
                            );
                        }
                    }
                }
            }
            Err(error) if error == rustix::io::Errno::AGAIN || error == rustix::io::Errno::INTR => {
            }
            Err(_) => {
                self.is_daemon_alive = false;
                self.sequence.on_orphaned(now);
            }
        }
    }

    /// The first TERM stops gracefully, the second one immediately.
    fn on_term(&mut self) {
        let now = self.born.elapsed();
        if self.sequence.is_serving() {
            self.sequence.on_polite(now);
        } else {
            self.sequence.on_now(now);
        }
    }

    fn signal_tree(&mut self, signal: Signal) {
        for process in self.tree.processes() {
            process.signal(signal);
        }
    }
}

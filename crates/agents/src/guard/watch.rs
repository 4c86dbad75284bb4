//! The guard's one loop: hear the daemon, the signals and the clock; let the ladder decide.

use super::fact::{self, Fact};
use super::ladder::{Ladder, Step};
use super::tools::Tools;
use crate::os::{self, Reap, Signal, Signals, Table};
use crate::stop::{Graces, Order, Stop};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvFlags, recv};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

pub(super) struct Watch<'a> {
    socket: BorrowedFd<'a>,
    daemon_lives: bool,
    signals: &'a Signals,
    agent: u32,
    ladder: Ladder,
    /// What is being ended while the agent stays.
    tools: Tools,
    table: Table,
    born: Instant,
    /// Orders that have not come as a whole yet.
    orders: Vec<u8>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        socket: BorrowedFd<'a>,
        signals: &'a Signals,
        agent: u32,
        graces: Graces,
    ) -> Watch<'a> {
        Watch {
            socket,
            daemon_lives: true,
            signals,
            agent,
            ladder: Ladder::new(graces),
            tools: Tools::default(),
            table: Table::system(),
            born: Instant::now(),
            orders: Vec::new(),
        }
    }

    /// Returns when the tree is gone, with those that would not go.
    pub(super) fn run(mut self) -> Vec<u32> {
        loop {
            let now = self.born.elapsed();
            match self.ladder.step(now) {
                Step::Wait { until } => {
                    self.tools.kill_if_due(&self.table, now);
                    let next = until.into_iter().chain(self.tools.due()).min();
                    self.wait(next.map(|next| next.saturating_sub(now)));
                }
                Step::Term => {
                    self.signal_tree(Signal::TERM);
                    // A stopped process hears of nothing else until it is continued.
                    self.signal_tree(Signal::CONT);
                }
                Step::Kill => {
                    self.signal_tree(Signal::KILL);
                    self.on_children(&os::reap());
                }
                Step::Done => return self.below(),
            }
        }
    }

    fn wait(&mut self, timeout: Option<Duration>) {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut sources = [
            PollFd::new(self.signals, PollFlags::IN),
            PollFd::from_borrowed_fd(self.socket, PollFlags::IN),
        ];
        // A socket at its end is always ready: once is enough.
        let count = if self.daemon_lives { 2 } else { 1 };
        if poll(&mut sources[..count], timeout.as_ref()).is_err() {
            return;
        }
        let spoke = self.daemon_lives && !sources[1].revents().is_empty();
        // The agent's end first: the daemon waits for it.
        let caught = self.signals.read();
        if caught.child {
            self.on_children(&os::reap());
        }
        if spoke {
            self.on_daemon();
        }
        if caught.term {
            self.on_term();
        }
    }

    fn on_children(&mut self, reap: &Reap) {
        let now = self.born.elapsed();
        if let Some(ended) = reap.ended.iter().find(|ended| ended.pid == self.agent) {
            let (code, signal) = (ended.code, ended.signal);
            fact::tell(self.socket, &Fact::Exited { code, signal });
            self.ladder.on_exited(now);
        }
        if reap.childless {
            self.ladder.on_empty();
        }
    }

    fn on_daemon(&mut self) {
        let now = self.born.elapsed();
        let mut orders = [0; 16];
        match recv(self.socket, &mut orders, RecvFlags::DONTWAIT) {
            Ok((0, _)) => {
                self.daemon_lives = false;
                self.ladder.on_orphaned(now);
            }
            Ok((count, _)) => {
                self.orders.extend_from_slice(&orders[..count]);
                while let Some(order) = Order::take(&mut self.orders) {
                    match order {
                        Order::Stop(Stop::Polite) => self.ladder.on_polite(now),
                        Order::Stop(Stop::Soon) => self.ladder.on_soon(now),
                        Order::Stop(Stop::Now) => self.ladder.on_now(now),
                        Order::EndTools(since) => {
                            self.tools.end(&self.table, self.agent, since, now);
                        }
                    }
                }
            }
            Err(error) if error == rustix::io::Errno::AGAIN || error == rustix::io::Errno::INTR => {
            }
            Err(_) => {
                self.daemon_lives = false;
                self.ladder.on_orphaned(now);
            }
        }
    }

    /// Once is polite, twice is now.
    fn on_term(&mut self) {
        let now = self.born.elapsed();
        if self.ladder.is_serving() { self.ladder.on_polite(now) } else { self.ladder.on_now(now) }
    }

    fn signal_tree(&self, signal: Signal) {
        for process in self.table.descendants(&[std::process::id()]) {
            process.signal(signal);
        }
    }

    fn below(&self) -> Vec<u32> {
        let below = self.table.descendants(&[std::process::id()]);
        below.into_iter().map(|process| process.pid).collect()
    }
}

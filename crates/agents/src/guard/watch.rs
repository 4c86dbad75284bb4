//! The guard's one loop: hear the daemon, the signals and the clock; let the ladder decide.

use super::fact::{self, Fact};
use super::ladder::{Ladder, Step};
use crate::os::{self, Reap, Signal, Signals, Table};
use crate::stop::{Graces, Stop};
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
    table: Table,
    born: Instant,
}

impl<'a> Watch<'a> {
    pub(super) fn new(
        socket: BorrowedFd<'a>,
        signals: &'a Signals,
        agent: u32,
        graces: Graces,
    ) -> Watch<'a> {
        let (ladder, table, born) = (Ladder::new(graces), Table::system(), Instant::now());
        Watch { socket, daemon_lives: true, signals, agent, ladder, table, born }
    }

    /// Returns when the tree is gone, with those that would not go.
    pub(super) fn run(mut self) -> Vec<u32> {
        loop {
            let now = self.born.elapsed();
            match self.ladder.step(now) {
                Step::Wait { until } => self.wait(until.map(|until| until.saturating_sub(now))),
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
                for order in orders[..count].iter().filter_map(|byte| Stop::from_order(*byte)) {
                    match order {
                        Stop::Polite => self.ladder.on_polite(now),
                        Stop::Soon => self.ladder.on_soon(now),
                        Stop::Now => self.ladder.on_now(now),
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

//! Stopping an agent: how urgently, with what patience, and how the guard is told.

use rustix::net::{SendFlags, Shutdown, send, shutdown};
use std::time::Duration;
use tokio::net::UnixStream;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Close stdin, wait, ask the tree to end, wait, kill it.
    Polite,
    /// Close stdin, ask the tree to end, wait, kill it.
    Soon,
    /// Kill the tree.
    Now,
}

impl Stop {
    fn to_order(self) -> u8 {
        match self {
            Stop::Polite => b'p',
            Stop::Soon => b's',
            Stop::Now => b'n',
        }
    }

    pub(crate) fn from_order(byte: u8) -> Option<Stop> {
        [Stop::Polite, Stop::Soon, Stop::Now].into_iter().find(|stop| stop.to_order() == byte)
    }
}

/// How long the guard waits on each rung before it takes the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Graces {
    /// After stdin was closed, before TERM. Some agents need two seconds to end by themselves.
    pub eof: Duration,
    /// After TERM, before KILL.
    pub term: Duration,
    /// After the agent ended: between TERM and KILL for what it left behind.
    pub left: Duration,
    /// Like `eof`, when the daemon is gone. Together with `orphan_term` it must stay well below the
    /// five seconds within which no process of a killed daemon may be left.
    pub orphan_eof: Duration,
    /// Like `term`, when the daemon is gone.
    pub orphan_term: Duration,
    /// How long killing is repeated before the survivors are reported.
    pub kill: Duration,
}

impl Default for Graces {
    fn default() -> Graces {
        Graces {
            eof: Duration::from_secs(3),
            term: Duration::from_secs(2),
            left: Duration::from_millis(500),
            orphan_eof: Duration::from_millis(300),
            orphan_term: Duration::from_millis(700),
            kill: Duration::from_secs(2),
        }
    }
}

impl Graces {
    /// As options of the guard, for [`crate::GuardCommand::args`].
    pub fn to_args(mut self) -> Vec<String> {
        self.named()
            .into_iter()
            .flat_map(|(name, grace)| [name.to_owned(), grace.as_millis().to_string()])
            .collect()
    }

    pub(crate) fn named(&mut self) -> [(&'static str, &mut Duration); 6] {
        [
            ("--eof-ms", &mut self.eof),
            ("--term-ms", &mut self.term),
            ("--left-ms", &mut self.left),
            ("--orphan-eof-ms", &mut self.orphan_eof),
            ("--orphan-term-ms", &mut self.orphan_term),
            ("--kill-ms", &mut self.kill),
        ]
    }
}

/// The daemon's end of the socket to a guard.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) socket: UnixStream,
}

impl Control {
    /// A few bytes in a life: they always fit into the socket, and a guard that is gone needs none.
    pub(crate) fn order(&self, stop: Stop) {
        let _ = send(&self.socket, &[stop.to_order()], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
    }

    /// The guard takes this for the end of the daemon.
    pub(crate) fn hang_up(&self) {
        let _ = shutdown(&self.socket, Shutdown::Write);
    }
}

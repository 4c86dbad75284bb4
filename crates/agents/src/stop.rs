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

    fn from_order(byte: u8) -> Option<Stop> {
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

/// What the daemon can tell a guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Stop(Stop),
    /// End what the agent started since this tick and left running; the agent stays. A moment, not
    /// an age: an order takes its time to arrive, and a tool may be the first thing of its turn.
    EndTools(u64),
}

/// Before the tick, in eight bytes.
const END_TOOLS: u8 = b't';

impl Order {
    fn to_bytes(self) -> Vec<u8> {
        match self {
            Order::Stop(stop) => vec![stop.to_order()],
            Order::EndTools(since) => [&[END_TOOLS][..], &since.to_le_bytes()].concat(),
        }
    }

    /// Takes the first order out of what has come so far; nothing until it is there as a whole.
    pub(crate) fn take(bytes: &mut Vec<u8>) -> Option<Order> {
        loop {
            let first = *bytes.first()?;
            if first == END_TOOLS {
                let since = bytes.get(1..9)?.try_into().expect("eight bytes");
                bytes.drain(..9);
                return Some(Order::EndTools(u64::from_le_bytes(since)));
            }
            bytes.remove(0);
            // A byte that means nothing is of a newer daemon, and no reason to end anything.
            if let Some(stop) = Stop::from_order(first) {
                return Some(Order::Stop(stop));
            }
        }
    }
}

/// The daemon's end of the socket to a guard.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) socket: UnixStream,
}

impl Control {
    /// A few bytes in a life: they always fit into the socket, and a guard that is gone needs none.
    pub(crate) fn order(&self, order: Order) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let _ = send(&self.socket, &order.to_bytes(), flags);
    }

    /// The guard takes this for the end of the daemon.
    pub(crate) fn hang_up(&self) {
        let _ = shutdown(&self.socket, Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_out_as_they_went_in_however_they_are_cut() {
        let orders = [
            Order::Stop(Stop::Polite),
            Order::EndTools(70),
            Order::Stop(Stop::Soon),
            Order::Stop(Stop::Now),
        ];
        let sent: Vec<u8> = orders.iter().flat_map(|it| it.to_bytes()).collect();
        let (mut heard, mut taken) = (Vec::new(), Vec::new());
        for byte in [&b"?"[..], &sent].concat() {
            heard.push(byte);
            taken.extend(Order::take(&mut heard));
        }
        assert_eq!((taken.as_slice(), heard.len()), (&orders[..], 0));
    }
}

//! Stops an agent: how urgently, with which grace periods, and how the guard is notified.

use crate::os::NO_SIGNAL;
use rustix::net::{SendFlags, Shutdown, send, shutdown};
use std::time::Duration;
use tokio::net::UnixStream;

/// How urgently an agent is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopUrgency {
    /// Close stdin, wait, send TERM to the tree, wait, send KILL.
    Polite,
    /// Close stdin, send TERM to the tree, wait, send KILL.
    Soon,
    /// Send KILL to the tree.
    Now,
}

impl StopUrgency {
    fn to_byte(self) -> u8 {
        match self {
            StopUrgency::Polite => b'p',
            StopUrgency::Soon => b's',
            StopUrgency::Now => b'n',
        }
    }

    fn from_byte(byte: u8) -> Option<StopUrgency> {
        [StopUrgency::Polite, StopUrgency::Soon, StopUrgency::Now]
            .into_iter()
            .find(|stop| stop.to_byte() == byte)
    }
}

/// How long the guard waits in each phase of a stop before the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GracePeriods {
    /// After stdin was closed, before TERM. Some agents need two seconds to exit.
    pub eof: Duration,
    /// After TERM, before KILL.
    pub term: Duration,
    /// After the agent has exited: between TERM and KILL for processes that it left behind.
    pub left: Duration,
    /// Like `eof`, when the daemon has exited. Together with `orphan_term` it must be well below
    /// the five seconds after which no process of a killed daemon may be left.
    pub orphan_eof: Duration,
    /// Like `term`, when the daemon has exited.
    pub orphan_term: Duration,
    /// How long KILL is repeated before the survivors are reported.
    pub kill: Duration,
}

impl Default for GracePeriods {
    fn default() -> GracePeriods {
        GracePeriods {
            eof: Duration::from_secs(3),
            term: Duration::from_secs(2),
            left: Duration::from_millis(500),
            orphan_eof: Duration::from_millis(300),
            orphan_term: Duration::from_millis(700),
            kill: Duration::from_secs(2),
        }
    }
}

impl GracePeriods {
    /// The options of the guard, for [`crate::GuardCommand::args`].
    pub fn to_args(mut self) -> Vec<String> {
        self.by_option()
            .into_iter()
            .flat_map(|(name, grace)| [name.to_owned(), grace.as_millis().to_string()])
            .collect()
    }

    pub(crate) fn by_option(&mut self) -> [(&'static str, &mut Duration); 6] {
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

/// A request of the daemon to a guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuardRequest {
    Stop(StopUrgency),
    /// End processes that the agent started since this start time and left running; the agent keeps
    /// running. A point in time and not an age, because the request takes time to arrive and a tool
    /// may have been started at the very beginning of the turn.
    EndTools(u64),
}

/// The byte before the start time, which has eight bytes.
const END_TOOLS: u8 = b't';

impl GuardRequest {
    fn to_bytes(self) -> Vec<u8> {
        match self {
            GuardRequest::Stop(stop) => vec![stop.to_byte()],
            GuardRequest::EndTools(since) => [&[END_TOOLS][..], &since.to_le_bytes()].concat(),
        }
    }

    /// Removes the first request from the received bytes; `None` until it is complete.
    pub(crate) fn take_from(bytes: &mut Vec<u8>) -> Option<GuardRequest> {
        loop {
            let first = *bytes.first()?;
            if first == END_TOOLS {
                let since = bytes.get(1..9)?.try_into().expect("eight bytes");
                bytes.drain(..9);
                return Some(GuardRequest::EndTools(u64::from_le_bytes(since)));
            }
            bytes.remove(0);
            // An unknown byte comes from a newer daemon and is ignored.
            if let Some(stop) = StopUrgency::from_byte(first) {
                return Some(GuardRequest::Stop(stop));
            }
        }
    }
}

/// The daemon's end of the socket to a guard.
#[derive(Debug)]
pub(crate) struct GuardConnection {
    pub(crate) socket: UnixStream,
}

impl GuardConnection {
    /// Sends a request. The few bytes always fit into the socket, and a guard that has exited needs
    /// none.
    pub(crate) fn send_request(&self, request: GuardRequest) {
        let flags = SendFlags::DONTWAIT | NO_SIGNAL;
        let _ = send(&self.socket, &request.to_bytes(), flags);
    }

    /// Closes the sending side. The guard treats this as the exit of the daemon.
    pub(crate) fn hang_up(&self) {
        let _ = shutdown(&self.socket, Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_decoded_from_any_split_of_the_bytes() {
        let requests = [
            GuardRequest::Stop(StopUrgency::Polite),
            GuardRequest::EndTools(70),
            GuardRequest::Stop(StopUrgency::Soon),
            GuardRequest::Stop(StopUrgency::Now),
        ];
        let sent: Vec<u8> = requests.iter().flat_map(|it| it.to_bytes()).collect();
        let (mut received, mut taken) = (Vec::new(), Vec::new());
        for byte in [&b"?"[..], &sent].concat() {
            received.push(byte);
            taken.extend(GuardRequest::take_from(&mut received));
        }
        assert_eq!((taken.as_slice(), received.len()), (&requests[..], 0));
    }
}

//! What guard and daemon tell each other over their socket.
//!
//! Guard to daemon: one JSON line per fact, in the order of the enum. Daemon to guard: one byte per
//! order; the end of the stream means that the daemon is gone.

use crate::os::Process;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use serde::{Deserialize, Serialize};
use std::os::fd::AsFd;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub(crate) enum Fact {
    Started {
        process: Process,
    },
    /// Instead of everything else.
    Failed {
        why: String,
        /// There were no more processes, file descriptors or memory: that says nothing about the agent.
        #[serde(default)]
        shortage: bool,
    },
    /// The agent itself ended; what it left behind is being ended.
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// The tree is gone, but for these.
    Swept {
        survivors: Vec<u32>,
    },
}

/// The guard's last words may find nobody to hear them, and it never waits for a daemon. Returns
/// whether somebody could have heard.
pub(super) fn tell(socket: impl AsFd, fact: &Fact) -> bool {
    let Ok(mut line) = serde_json::to_vec(fact) else { return false };
    line.push(b'\n');
    send(socket, &line, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).is_ok()
}

/// Whether the daemon is gone, or has let go of this agent. An order that waits is not taken.
pub(super) fn is_hung_up(socket: impl AsFd) -> bool {
    let heard = recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    matches!(heard, Ok((0, _)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_survives_the_socket() {
        let facts = [
            Fact::Started { process: Process { pid: 7, start: 99 } },
            Fact::Failed { why: "no".to_owned(), shortage: true },
            Fact::Exited { code: None, signal: Some(9) },
            Fact::Swept { survivors: vec![1, 2] },
        ];
        for fact in facts {
            let line = serde_json::to_string(&fact).unwrap();
            assert_eq!(serde_json::from_str::<Fact>(&line).unwrap(), fact, "{line}");
        }
    }
}

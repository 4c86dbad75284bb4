//! The protocol between guard and daemon.
//!
//! Guard to daemon: one JSON line per report, in the order of the enum. Daemon to guard: requests
//! of one or nine bytes; the end of the stream means that the daemon has exited.

use crate::os::{NO_SIGNAL, ProcessIdentity};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use serde::{Deserialize, Serialize};
use std::os::fd::AsFd;

/// A report of the guard about its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub(crate) enum GuardReport {
    Started {
        process: ProcessIdentity,
    },
    /// The agent could not be started. No other report follows.
    Failed {
        why: String,
        /// The system lacked processes, file descriptors or memory, which is not the agent's fault.
        #[serde(default)]
        shortage: bool,
    },
    /// The agent itself has exited; processes that it left behind are being ended.
    Exited {
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// All processes of the tree have ended except these.
    Swept {
        survivors: Vec<u32>,
    },
}

/// Sends a report. Never waits for the daemon, which may have exited. Returns whether the report
/// could be sent.
pub(super) fn send_report(socket: impl AsFd, report: &GuardReport) -> bool {
    let Ok(mut line) = serde_json::to_vec(report) else { return false };
    line.push(b'\n');
    send(socket, &line, NO_SIGNAL | SendFlags::DONTWAIT).is_ok()
}

/// Whether the daemon has exited or released this agent. A pending request is not consumed.
pub(super) fn is_hung_up(socket: impl AsFd) -> bool {
    let received = recv(socket, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT);
    matches!(received, Ok((0, _)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_survives_the_socket() {
        let reports = [
            GuardReport::Started { process: ProcessIdentity { pid: 7, start: 99 } },
            GuardReport::Failed { why: "no".to_owned(), shortage: true },
            GuardReport::Exited { code: None, signal: Some(9) },
            GuardReport::Swept { survivors: vec![1, 2] },
        ];
        for report in reports {
            let line = serde_json::to_string(&report).unwrap();
            assert_eq!(serde_json::from_str::<GuardReport>(&line).unwrap(), report, "{line}");
        }
    }
}

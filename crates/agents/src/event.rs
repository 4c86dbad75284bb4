//! What the daemon hears of an agent.

use bytes::Bytes;
use jackfield_wire::{Frame, LineTooLong};
use std::fmt;

/// In a life: `Started`, then any of `Frames` or `Lines` or `Output`, `Noise` and `Wrote`, then `Gone`,
/// then `Swept`.
/// An agent that could not be started says only `Gone` and `Swept`.
#[derive(Debug)]
pub enum AgentEvent {
    Started {
        pid: u32,
    },
    /// In the order written, never empty. A frame may share its memory with the others of its
    /// batch: copy what is kept for long.
    Frames(Vec<Frame>),
    /// The same of a program that was started to speak lines.
    Lines(Vec<Bytes>),
    /// The same of a program that was started to print bytes. May share its memory, like a frame.
    Output(Bytes),
    /// Stdout that is no protocol. Counted and kept with the tail of stderr, never answered.
    Noise(Noise),
    /// A line was longer than a frame may be, and was dropped.
    Oversized(LineTooLong),
    /// So much of the backlog was taken by the agent after it had to wait.
    Wrote {
        bytes: usize,
    },
    /// The agent ended and everything it had said was delivered. Comes at once, whatever the agent
    /// left running.
    Gone(Exit),
    /// The last event: the agent's whole tree is gone, save for these pids.
    Swept {
        survivors: Vec<u32>,
    },
}

/// Some lines of noise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Noise {
    pub lines: u64,
    /// So many of them were longer than a frame may be, and might have been frames.
    pub too_long: u64,
    /// The first of them, redacted and shortened.
    pub first: String,
}

/// How an agent ended. Neither code nor signal: its guard was lost, or it never started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// Why there was no agent at all.
    pub failed_to_start: Option<String>,
    /// There were no more processes, file descriptors or memory: that says nothing about the agent.
    pub shortage: bool,
    /// The last lines of stderr, and of stdout that was no protocol; redacted.
    pub stderr_tail: String,
    /// How many lines of stdout were no protocol.
    pub noise: u64,
}

impl Exit {
    /// The name of the signal that ended it, as in `SIGTERM`.
    pub fn signal_name(&self) -> Option<String> {
        let signal = self.signal?;
        Some(signal_name(signal).map_or_else(|| signal.to_string(), |it| format!("SIG{it}")))
    }
}

/// In a few words, for people: `exit status 1`, `signal 9 (KILL)`.
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.failed_to_start, self.code, self.signal) {
            (Some(why), _, _) => write!(f, "not started: {why}"),
            (None, Some(code), _) => write!(f, "exit status {code}"),
            (None, None, Some(signal)) => match signal_name(signal) {
                Some(name) => write!(f, "signal {signal} ({name})"),
                None => write!(f, "signal {signal}"),
            },
            (None, None, None) => f.write_str("lost with its guard"),
        }
    }
}

/// The ones that end programs; their numbers are the same everywhere.
fn signal_name(signal: i32) -> Option<&'static str> {
    let names = [
        (1, "HUP"),
        (2, "INT"),
        (3, "QUIT"),
        (4, "ILL"),
        (6, "ABRT"),
        (8, "FPE"),
        (9, "KILL"),
        (11, "SEGV"),
        (13, "PIPE"),
        (14, "ALRM"),
        (15, "TERM"),
    ];
    names.into_iter().find_map(|(number, name)| (number == signal).then_some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_reads_like_a_sentence() {
        let exit = Exit::default();
        assert_eq!(exit.to_string(), "lost with its guard");
        assert_eq!(Exit { code: Some(3), ..exit.clone() }.to_string(), "exit status 3");
        assert_eq!(Exit { signal: Some(9), ..exit.clone() }.to_string(), "signal 9 (KILL)");
        assert_eq!(Exit { signal: Some(34), ..exit.clone() }.to_string(), "signal 34");
        let failed = Exit { failed_to_start: Some("no".to_owned()), ..exit };
        assert_eq!(failed.to_string(), "not started: no");
    }
}

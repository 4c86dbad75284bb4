//! The events of an agent process.

use bytes::Bytes;
use jackfield_protocol::{Frame, LineTooLong};
use std::fmt;

/// The order of events: `Started`, then any of `Frames` or `Lines` or `Output`, `Stderr`,
/// `Noise` and `Wrote`, then `Gone`, then `Swept`. An agent that could not be started has only `Gone` and
/// `Swept`.
#[derive(Debug)]
pub enum AgentProcessEvent {
    Started {
        pid: u32,
    },
    /// Frames in the order written, never empty. A frame may share its memory with others of its
    /// batch, so copy it if you keep it for long.
    Frames(Vec<Frame>),
    /// The same for a program with [`StdoutFormat::Lines`](crate::StdoutFormat::Lines).
    Lines(Vec<Bytes>),
    /// Output as it comes, of a program with [`StdoutFormat::Bytes`](crate::StdoutFormat::Bytes) or
    /// [`StdoutFormat::Text`](crate::StdoutFormat::Text). May share its memory, like a frame.
    Output(Bytes),
    /// Complete lines of stderr, redacted, of a program with
    /// [`StdoutFormat::Text`](crate::StdoutFormat::Text).
    Stderr(String),
    /// Stdout that is not ACP. It is counted and kept with the tail of stderr, never answered.
    Noise(StdoutNoise),
    /// A line was longer than a frame may be, and was dropped.
    Oversized(LineTooLong),
    /// The agent has read this many bytes of the backlog after it was blocked.
    Wrote {
        bytes: usize,
    },
    /// The agent has exited, and all its output is delivered. Sent at once, even if the agent left
    /// processes behind.
    Gone(AgentExit),
    /// The last event: all processes of the agent's tree have ended except these.
    Swept {
        survivors: Vec<u32>,
    },
}

/// Lines of stdout that are not ACP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StdoutNoise {
    pub lines: u64,
    /// The number of lines that exceeded the frame limit; they might have been frames.
    pub too_long: u64,
    /// The first of them, redacted and shortened.
    pub first: String,
}

/// How an agent ended. If neither code nor signal is set, its guard was killed or it never started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentExit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// Why the agent could not be started.
    pub failed_to_start: Option<String>,
    /// The system lacked processes, file descriptors or memory, which is not the agent's fault.
    pub shortage: bool,
    /// The last lines of stderr and of noise on stdout, redacted.
    pub stderr_tail: String,
    /// The number of lines of stdout that were not ACP.
    pub noise: u64,
}

impl AgentExit {
    /// The name of the signal that ended it, as in `SIGTERM`.
    pub fn signal_name(&self) -> Option<String> {
        let signal = self.signal?;
        Some(signal_name(signal).map_or_else(|| signal.to_string(), |it| format!("SIG{it}")))
    }
}

/// A short text for users: `exit status 1`, `signal 9 (KILL)`.
impl fmt::Display for AgentExit {
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

/// The names of signals that end programs. Their numbers are the same on all systems.
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
    fn exit_is_formatted_for_users() {
        let exit = AgentExit::default();
        assert_eq!(exit.to_string(), "lost with its guard");
        assert_eq!(AgentExit { code: Some(3), ..exit.clone() }.to_string(), "exit status 3");
        assert_eq!(AgentExit { signal: Some(9), ..exit.clone() }.to_string(), "signal 9 (KILL)");
        assert_eq!(AgentExit { signal: Some(34), ..exit.clone() }.to_string(), "signal 34");
        let failed = AgentExit { failed_to_start: Some("no".to_owned()), ..exit };
        assert_eq!(failed.to_string(), "not started: no");
    }
}

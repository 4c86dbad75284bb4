//! The command, the environment and the limits of one agent process.

use jackfield_protocol::FRAME_BYTES_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt;
use std::path::PathBuf;

/// The command of an agent. The arguments are a list, never a line for a shell.
#[derive(Clone, PartialEq, Eq)]
pub struct LaunchCommand {
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// The complete environment of the agent; nothing is inherited. Its `PATH` is used to find the
    /// program.
    pub env: Vec<(String, String)>,
    pub stdout_format: StdoutFormat,
}

/// The format of a program's stdout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StdoutFormat {
    /// ACP frames; everything else is noise.
    #[default]
    Frames,
    /// Lines that an adapter interprets.
    Lines,
    /// Text, as it comes; the lines of stderr are events of their own.
    Text,
    /// Any bytes, from stdout and stderr together in the order printed.
    Bytes,
}

impl StdoutFormat {
    /// Whether the output is delivered as it comes, and not line by line.
    pub(crate) fn is_unsplit(self) -> bool {
        matches!(self, StdoutFormat::Text | StdoutFormat::Bytes)
    }
}

/// Values of environment variables are omitted, because they may be API keys.
impl fmt::Debug for LaunchCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("LaunchCommand")
            .field("argv", &self.argv)
            .field("cwd", &self.cwd)
            .field("env", &names)
            .field("stdout_format", &self.stdout_format)
            .finish()
    }
}

/// The program that becomes a guard. It is run as `program args… --cwd DIR -- argv…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardCommand {
    /// A path with a `/`, preferably absolute, because a search on `PATH` would slow down each
    /// start.
    pub program: PathBuf,
    /// The subcommand that starts a guard, then its options, such as
    /// [`crate::GracePeriods::to_args`].
    pub args: Vec<String>,
}

impl GuardCommand {
    /// Raises the limit of open files of this process to the maximum, for many clients and agents.
    /// The guard restores the previous limit for its agent, because some programs depend on it.
    pub fn raise_file_limit(&mut self) {
        let limit = getrlimit(Resource::Nofile);
        let raise = |current: Option<u64>| {
            setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum }).is_ok()
        };
        if limit.current != limit.maximum
            && (raise(limit.maximum) || raise(Some(FILES_MAX)))
            && let Some(files) = limit.current
        {
            self.args.extend(["--files".to_owned(), files.to_string()]);
        }
    }
}

/// The limit of open files that every system permits, if the maximum is unlimited and is refused.
const FILES_MAX: u64 = 10_240;

/// Limits on the memory that one agent uses in the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// A longer line on stdout is dropped and counted as noise.
    pub frame_bytes_max: usize,
    /// If more bytes are queued for an agent that does not read, further frames are refused.
    pub backlog_bytes_max: usize,
    /// The size of the end of stderr that is kept.
    pub stderr_bytes_max: usize,
}

impl Default for ProcessLimits {
    fn default() -> ProcessLimits {
        ProcessLimits {
            // The limit of ACP's HTTP transport.
            frame_bytes_max: FRAME_BYTES_MAX,
            // Two of the longest frames.
            backlog_bytes_max: 32 << 20,
            // Enough for a stack trace, and small enough for an error message.
            stderr_bytes_max: 16 << 10,
        }
    }
}

/// A mark is used as a file name and as the value of an environment variable.
pub(crate) fn is_valid_mark(mark: &str) -> bool {
    (1..=64).contains(&mark.len())
        && mark.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_omits_values_of_the_environment() {
        let launch = LaunchCommand {
            argv: vec!["agent".into()],
            cwd: "/".into(),
            env: vec![("API_KEY".into(), "hunter2".into())],
            stdout_format: StdoutFormat::Frames,
        };
        let shown = format!("{launch:?}");
        assert!(shown.contains("API_KEY") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn mark_cannot_name_another_directory() {
        assert!(is_valid_mark("a-claude-1_x"));
        for bad in ["", "../x", "a/b", "a b", "a.json", &"x".repeat(65)] {
            assert!(!is_valid_mark(bad), "{bad}");
        }
    }
}

//! How to start one agent: its command, its surroundings, its limits.

use jackfield_wire::FRAME_BYTES_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fmt;
use std::path::PathBuf;

/// The command of an agent. Arguments are a list, never a line for a shell.
#[derive(Clone, PartialEq, Eq)]
pub struct Launch {
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    /// The whole environment of the agent; nothing is inherited. `PATH` in it finds the program.
    pub env: Vec<(String, String)>,
    pub speaks: Speaks,
}

/// What stdout of a program is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Speaks {
    /// Frames of the protocol; anything else is noise.
    #[default]
    Frames,
    /// Lines that only an adapter understands.
    Lines,
    /// Whatever a command prints, on stdout and stderr alike, in the order printed.
    Bytes,
}

/// Values of variables are never shown: keys live there.
impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Launch")
            .field("argv", &self.argv)
            .field("cwd", &self.cwd)
            .field("env", &names)
            .field("speaks", &self.speaks)
            .finish()
    }
}

/// The program that becomes a guard. It is run as `program args… --cwd DIR -- argv…`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardCommand {
    /// With a `/` in it (best absolute): a search on `PATH` would make every start dearer.
    pub program: PathBuf,
    /// What makes the program a guard, then its options, such as [`crate::Graces::to_args`].
    pub args: Vec<String>,
}

impl GuardCommand {
    /// Lets us open as many files as the system allows, for many clients and many agents. The agents
    /// are to have what they expect: what it was before.
    pub fn open_many_files(&mut self) {
        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        if limit != raised
            && setrlimit(Resource::Nofile, raised).is_ok()
            && let Some(files) = limit.current
        {
            self.args.extend(["--files".to_owned(), files.to_string()]);
        }
    }
}

/// What one agent may cost the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A longer line on stdout is dropped and counted as noise.
    pub frame_bytes_max: usize,
    /// More than this waiting for an agent that does not read is refused.
    pub backlog_bytes_max: usize,
    /// What is kept of the end of stderr.
    pub stderr_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            // What the HTTP transport of the protocol accepts.
            frame_bytes_max: FRAME_BYTES_MAX,
            // Two of the longest frames.
            backlog_bytes_max: 32 << 20,
            // Enough for a stack trace, little enough to put into an error.
            stderr_bytes_max: 16 << 10,
        }
    }
}

/// The mark names a file and a variable's value, so it is kept plain.
pub(crate) fn is_good_mark(mark: &str) -> bool {
    (1..=64).contains(&mark.len())
        && mark.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_never_shown() {
        let launch = Launch {
            argv: vec!["agent".into()],
            cwd: "/".into(),
            env: vec![("API_KEY".into(), "hunter2".into())],
            speaks: Speaks::Frames,
        };
        let shown = format!("{launch:?}");
        assert!(shown.contains("API_KEY") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn a_mark_cannot_name_another_directory() {
        assert!(is_good_mark("a-claude-1_x"));
        for bad in ["", "../x", "a/b", "a b", "a.json", &"x".repeat(65)] {
            assert!(!is_good_mark(bad), "{bad}");
        }
    }
}

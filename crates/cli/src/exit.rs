//! Every exit code the command can return. Scripts rely on these numbers.

use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Ok = 0,
    /// The agent or the protocol failed, or something we did not foresee.
    Failed = 1,
    /// The command line makes no sense (clap's own code).
    Usage = 2,
    /// A deadline passed.
    TimedOut = 3,
    /// The named session, agent or ask does not exist.
    NotFound = 4,
    /// An ask was denied because nobody could allow it.
    Denied = 5,
    /// No daemon answers.
    Unreachable = 6,
    /// The turn was cancelled: by Ctrl-C, or by another client.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// The table as it stands in the help and in the manual.
pub(crate) const TABLE: &str = "\
Exit codes:
  0    it worked
  1    the agent or the protocol failed
  2    wrong usage
  3    timed out
  4    no such session, agent or ask
  5    permission denied
  6    the daemon cannot be reached
  130  interrupted";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_in_the_table() {
        let all = [
            Exit::Ok,
            Exit::Failed,
            Exit::Usage,
            Exit::TimedOut,
            Exit::NotFound,
            Exit::Denied,
            Exit::Unreachable,
            Exit::Interrupted,
        ];
        for exit in all {
            let number = format!("  {:<5}", exit as u8);
            assert!(TABLE.lines().any(|it| it.starts_with(&number)), "{exit:?}");
        }
        assert_eq!(TABLE.lines().count(), all.len() + 1);
    }
}

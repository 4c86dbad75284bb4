//! The exit codes of the command. Scripts rely on these numbers.

use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CliExitCode {
    Ok = 0,
    /// The agent, the protocol or an operation on this machine failed.
    Failed = 1,
    /// Invalid command line (clap's own code).
    Usage = 2,
    /// A deadline passed.
    TimedOut = 3,
    /// The named session, agent or ask does not exist.
    NotFound = 4,
    /// A request was denied.
    Denied = 5,
    /// No daemon could be reached.
    Unreachable = 6,
    /// The turn was canceled by Ctrl-C or by another client.
    Interrupted = 130,
}

impl From<CliExitCode> for ExitCode {
    fn from(exit: CliExitCode) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// The table in the help and the manual page.
pub(crate) const TABLE: &str = "\
Exit codes:
  0    success
  1    the agent or the protocol failed
  2    invalid usage
  3    timed out
  4    no such session, agent or ask
  5    permission denied
  6    the daemon cannot be reached
  130  interrupted";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_table() {
        let all = [
            CliExitCode::Ok,
            CliExitCode::Failed,
            CliExitCode::Usage,
            CliExitCode::TimedOut,
            CliExitCode::NotFound,
            CliExitCode::Denied,
            CliExitCode::Unreachable,
            CliExitCode::Interrupted,
        ];
        for exit in all {
            let number = format!("  {:<5}", exit as u8);
            assert!(TABLE.lines().any(|it| it.starts_with(&number)), "{exit:?}");
        }
        assert_eq!(TABLE.lines().count(), all.len() + 1);
    }
}

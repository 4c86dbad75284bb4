//! `jackfield policy`: what the rules say.

mod check;
mod explain;

use crate::{app::Desk, report::Failure};
use clap::{Args, Subcommand};

/// Check the rules about what agents may do, and explain what they decided
///
/// Rules stand in policy.toml beside config.toml, and in the .jackfield.toml of a project that you
/// trust. A deny wins from anywhere, and an ask in a file wins over an allow that was learned;
/// otherwise session, project and user are asked in this order.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield policy check
  $ jackfield policy check .jackfield.toml
  $ jackfield policy explain s-7f3 2")]
pub(crate) struct Policy {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Check),
    Explain(explain::Explain),
}

impl Policy {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        match self.command {
            Command::Check(it) => it.run(desk),
            Command::Explain(it) => it.run(desk),
        }
    }
}

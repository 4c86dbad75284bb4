//! `jackfield policy`: checks and explains policy rules.

mod check;
mod explain;

use crate::{context::CommandContext, report::CommandError};
use clap::{Args, Subcommand};

/// Check policy rules and explain their decisions
///
/// Rules are in policy.toml next to config.toml, and in the .jackfield.toml of trusted projects. A deny
/// from any source wins, and an ask in a file wins over a learned allow; otherwise the rules of the
/// session, the project and the user apply in this order.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield policy check
  $ jackfield policy check .jackfield.toml
  $ jackfield policy explain s-7f3 2")]
pub(crate) struct PolicyCommand {
    #[command(subcommand)]
    command: PolicySubcommand,
}

#[derive(Debug, Subcommand)]
enum PolicySubcommand {
    Check(check::CheckPolicyCommand),
    Explain(explain::ExplainRequestCommand),
}

impl PolicyCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        match self.command {
            PolicySubcommand::Check(it) => it.run(context),
            PolicySubcommand::Explain(it) => it.run(context),
        }
    }
}

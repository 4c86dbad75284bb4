//! `jackfield sandbox`: explains what the sandbox of a session permits.

mod explain;
mod sandbox_history;

use crate::{context::CommandContext, report::CommandError};
use clap::{Args, Subcommand};

/// Explain what the sandbox of an agent permits and what it refused
///
/// A profile limits the files, the network and the resources of an agent: `jackfield run --sandbox
/// workspace`, or `sandbox` in config.toml. Profiles are in policy.toml next to it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sandbox explain s-7f3
  $ jackfield sandbox explain s-7f3 ~/.ssh/id_ed25519 pypi.org")]
pub(crate) struct SandboxCommand {
    #[command(subcommand)]
    command: SandboxSubcommand,
}

#[derive(Debug, Subcommand)]
enum SandboxSubcommand {
    Explain(explain::ExplainSandboxCommand),
}

impl SandboxCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        match self.command {
            SandboxSubcommand::Explain(it) => it.run(context),
        }
    }
}

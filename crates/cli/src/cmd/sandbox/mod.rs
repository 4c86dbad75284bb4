//! `jackfield sandbox`: checks what a sandbox stops, and explains what it refused.

mod check;
mod check_json;
mod check_text;
mod explain;
mod sandbox_history;

use crate::{context::CommandContext, report::CommandError};
use clap::{Args, Subcommand};

/// Check what the sandbox of an agent stops, and explain what it refused
///
/// A sandbox limits what an agent can do, whether it asks or not. Its profile says what is permitted; the built-in ones
/// are `read-only`, `workspace` and `open`, and policy.toml can change them and add others.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sandbox check
  $ jackfield sandbox check read-only --layer landlock
  $ jackfield sandbox explain s-7f3
  $ jackfield sandbox explain s-7f3 ~/.ssh/id_ed25519 pypi.org")]
pub(crate) struct SandboxCommand {
    #[command(subcommand)]
    command: SandboxSubcommand,
}

#[derive(Debug, Subcommand)]
enum SandboxSubcommand {
    Check(check::CheckSandboxCommand),
    Explain(explain::ExplainSandboxCommand),
}

impl SandboxCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        match self.command {
            SandboxSubcommand::Check(it) => it.run(context),
            SandboxSubcommand::Explain(it) => it.run(context),
        }
    }
}

//! `jackfield sandbox`: checks what a sandbox stops, explains what it refused, and lists answers about hosts.

mod check;
mod check_json;
mod check_text;
mod explain;
mod host_answers;
mod sandbox_history;

use crate::{context::CommandContext, report::CommandError};
use clap::{Args, Subcommand};

/// Check and explain the sandboxes of agents, and manage answers about hosts
///
/// A sandbox limits what an agent can do, whether it asks or not. Its profile says what is permitted; the built-in ones
/// are `read-only`, `workspace` and `open`, and policy.toml can change them and add others.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sandbox check
  $ jackfield sandbox check read-only --layer landlock
  $ jackfield sandbox explain s-7f3
  $ jackfield sandbox explain s-7f3 ~/.ssh/id_ed25519 pypi.org
  $ jackfield sandbox hosts
  $ jackfield sandbox forget pypi.org")]
pub(crate) struct SandboxCommand {
    #[command(subcommand)]
    command: SandboxSubcommand,
}

#[derive(Debug, Subcommand)]
enum SandboxSubcommand {
    Check(check::CheckSandboxCommand),
    Explain(explain::ExplainSandboxCommand),
    Hosts(host_answers::ListHostsCommand),
    Forget(host_answers::ForgetHostsCommand),
}

impl SandboxCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        match self.command {
            SandboxSubcommand::Check(it) => it.run(context),
            SandboxSubcommand::Explain(it) => it.run(context),
            SandboxSubcommand::Hosts(it) => it.run(context),
            SandboxSubcommand::Forget(it) => it.run(context),
        }
    }
}

//! `jackfield completions`: prints shell completions.

use crate::{context::CommandContext, report::CommandError};
use clap::Args;
use clap_complete::Shell;

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield completions bash > ~/.local/share/bash-completion/completions/jackfield
  $ jackfield completions zsh > ~/.zfunc/_jackfield
  $ jackfield completions fish > ~/.config/fish/completions/jackfield.fish")]
pub(crate) struct CompletionsCommand {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl CompletionsCommand {
    /// `tree` has all commands.
    pub(crate) fn run(
        self,
        context: &CommandContext,
        mut tree: clap::Command,
    ) -> Result<(), CommandError> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut tree, "jackfield", &mut text);
        context.output.print_raw(&String::from_utf8_lossy(&text))
    }
}

//! `jackfield man`: prints a manual page, generated from the help.

use crate::{context::CommandContext, report::CommandError};
use clap::Args;

/// Print the manual page of a command
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield man | man -l -
  $ jackfield man sessions rm > jackfield-sessions-rm.1")]
pub(crate) struct ManCommand {
    /// The command [default: `jackfield` itself]
    command: Vec<String>,
}

impl ManCommand {
    /// `tree` has all commands.
    pub(crate) fn run(
        self,
        context: &CommandContext,
        mut tree: clap::Command,
    ) -> Result<(), CommandError> {
        tree.build();
        let mut page = &tree;
        for name in &self.command {
            page = page.find_subcommand(name).ok_or_else(|| {
                let command = self.command.join(" ");
                CommandError::usage(
                    format!("unknown command `{command}`"),
                    "`jackfield --help` lists the commands",
                )
            })?;
        }
        let mut text = Vec::new();
        clap_mangen::Man::new(page.clone())
            .render(&mut text)
            .map_err(|source| CommandError::local("cannot write the manual page", source))?;
        context.output.print_raw(&String::from_utf8_lossy(&text))
    }
}

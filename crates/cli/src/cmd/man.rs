//! `jackfield man`: prints a manual page, generated from the help.

use crate::{context::CommandContext, env, report::CommandError};
use clap::Args;
use std::path::{Path, PathBuf};

/// Print the manual page of a command
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield man | man -l -
  $ jackfield man sessions rm > jackfield-sessions-rm.1
  $ jackfield man --output-dir ~/.local/share/man/man1")]
pub(crate) struct ManCommand {
    /// The command [default: `jackfield` itself]
    command: Vec<String>,

    /// Write the pages of all commands into this existing directory instead
    #[arg(long, env = env::OUTPUT_DIR, hide_env_values = true, value_name = "DIR")]
    #[arg(conflicts_with = "command")]
    output_dir: Option<PathBuf>,
}

impl ManCommand {
    /// `tree` has all commands.
    pub(crate) fn run(
        self,
        context: &CommandContext,
        mut tree: clap::Command,
    ) -> Result<(), CommandError> {
        if let Some(directory) = &self.output_dir {
            return write_pages(tree, directory);
        }
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

/// One page for each command that is not hidden.
fn write_pages(tree: clap::Command, directory: &Path) -> Result<(), CommandError> {
    clap_mangen::generate_to(tree, directory).map_err(|source| {
        let directory = directory.display();
        CommandError::local(format!("cannot write the manual pages into `{directory}`"), source)
    })
}

//! `jackfield config`: shows, checks and changes config.toml.

mod check;
mod edit;
mod file;
mod set;
mod show;

use crate::{context::CommandContext, report::CommandError};
use clap::{Args, Subcommand};
use file::ConfigFile;

/// Show, check and change the configuration
///
/// The configuration is config.toml in the configuration directory. A running daemon uses a changed
/// file with the next command; the commands that change it report settings that need a restart.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield config show
  $ jackfield config set default_agent claude
  $ jackfield config set agents.goose.command goose acp
  $ jackfield config edit
  $ jackfield config check")]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    command: ConfigSubcommand,
}

#[derive(Debug, Subcommand)]
enum ConfigSubcommand {
    Show(show::ShowConfigCommand),
    Path(ConfigPathCommand),
    Edit(edit::EditConfigCommand),
    Set(set::SetConfigCommand),
    Check(check::CheckConfigCommand),
}

/// Print the path of config.toml
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield config path
  $ cat \"$(jackfield config path)\"")]
struct ConfigPathCommand {}

impl ConfigCommand {
    /// `tree` has all commands, with the environment variables of their flags.
    pub(crate) fn run(
        self,
        context: &CommandContext,
        tree: &clap::Command,
    ) -> Result<(), CommandError> {
        match self.command {
            ConfigSubcommand::Show(it) => it.run(context, tree),
            ConfigSubcommand::Path(_) => print_path(context),
            ConfigSubcommand::Edit(_) => edit::edit_config(context),
            ConfigSubcommand::Set(it) => it.run(context),
            ConfigSubcommand::Check(it) => it.run(context),
        }
    }
}

fn print_path(context: &CommandContext) -> Result<(), CommandError> {
    let path = context.daemon.paths().config_file();
    if !path.exists() {
        context.output.print_note("the file does not exist yet; all settings have their defaults");
    }
    context.output.print_line(&path.display().to_string())
}

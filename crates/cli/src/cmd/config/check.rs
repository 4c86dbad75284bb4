//! `jackfield config check`: lists all errors in config.toml.

use super::{ConfigFile, file::invalid_file_error};
use crate::{
    context::CommandContext,
    env,
    out::{OutputFormat, print_json_document},
    report::CommandError,
};
use clap::Args;
use jackfield_daemon::config::ConfigLineError;
use serde_json::json;
use std::path::PathBuf;

/// Report all errors in config.toml, each with its line
///
/// It does not use the daemon. The exit code is 2 if the file has errors.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield config check
  $ jackfield config check new-config.toml
  $ jackfield config check --format json | jq '.errors[].line'")]
pub(super) struct CheckConfigCommand {
    /// The file [default: config.toml in the configuration directory]
    file: Option<PathBuf>,

    /// How to print the result; `quiet` prints only errors
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl CheckConfigCommand {
    pub(super) fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        let path = self.file.clone().unwrap_or_else(|| context.daemon.paths().config_file());
        let file = ConfigFile::read(&path)?;
        let shown = path.display();
        if self.file.is_some() && !file.exists {
            let message = format!("`{shown}` does not exist");
            return Err(CommandError::usage(message, "pass the path of a config.toml"));
        }
        let checked = file.parse(&file.text);
        let problems = checked.err().unwrap_or_default();
        match self.format {
            OutputFormat::Json => {
                let error = |it: &ConfigLineError| json!({ "line": it.line, "reason": it.reason });
                let errors: Vec<_> = problems.iter().map(error).collect();
                let document = json!({ "file": path, "exists": file.exists, "errors": errors });
                print_json_document(&context.output, &document)?;
            }
            OutputFormat::Text if !file.exists => {
                context.output.print_note(&format!(
                    "`{shown}` does not exist: all settings have their defaults"
                ));
            }
            OutputFormat::Text if problems.is_empty() => {
                context.output.print_note(&format!("`{shown}` is valid"));
            }
            OutputFormat::Text | OutputFormat::Quiet => {}
        }
        if problems.is_empty() {
            return Ok(());
        }
        let hint = "correct these lines; until then no daemon starts with this file, and a running \
                    one keeps its settings";
        Err(invalid_file_error(&path, &problems, hint))
    }
}

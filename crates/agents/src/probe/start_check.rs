//! Checks whether a program supports a launch variant, by starting it with an empty stdin.

use super::{
    agent_environment,
    command::{CommandResult, ProbeCommand, run_command},
    text_lines::error_line,
};
use crate::find::{FoundProgram, ProgramLocations};
use jackfield_catalog::{AgentSpec, LaunchOptions, LaunchVariant};
use std::{path::Path, time::Duration};

/// Starts the program as this variant does. The error is a reason why the variant cannot be used: the
/// program could not be started, or ended with an error. A program that is still running after the
/// limit supports the variant.
pub async fn check_start(
    spec: &AgentSpec,
    variant: &LaunchVariant,
    found: &FoundProgram,
    locations: &ProgramLocations,
    limit: Duration,
) -> Result<(), String> {
    let cwd = Path::new("/");
    let options = LaunchOptions { cwd: "/", ..LaunchOptions::default() };
    let args = variant.compose_argv(&options).map_err(|it| it.to_string())?;
    let env = agent_environment(spec, found, locations);
    let command = ProbeCommand { program: &found.path, args: &args, env: &env, cwd };
    let shown = command.command_line();
    match run_command(command, limit).await {
        CommandResult::Ended { status, stdout, stderr } if !status.success() => {
            let line = error_line(&stderr).or_else(|| error_line(&stdout)).unwrap_or_default();
            Err(format!("`{shown}` ended with {status}: {line}"))
        }
        CommandResult::NotStarted(error) => Err(format!("`{shown}` cannot be started: {error}")),
        CommandResult::Ended { .. } | CommandResult::TimedOut => Ok(()),
    }
}

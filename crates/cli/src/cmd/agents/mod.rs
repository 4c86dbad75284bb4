//! `jackfield agents`: lists the known agents, whether they are installed, and their problems.

mod configured;
mod import;
mod list;
mod show;

pub(crate) use configured::ConfiguredAgents;

use crate::{context::CommandContext, env, out::OutputFormat, report::CommandError};
use clap::{Args, Subcommand};
use jackfield_agents::probe::AgentDiagnostic;
use serde_json::{Value, json};

/// List the agents that `--agent` accepts, and where they are installed
///
/// The list starts no program: version, login and models are those of the last `--probe`. Programs
/// are searched on PATH, then in the folders of version managers and installers;
/// `JACKFIELD_PROGRAM_DIRS` replaces those folders. A TOML file in the folder `agents` next to
/// config.toml adds an agent.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield agents
  $ jackfield agents --all
  $ jackfield agents --probe
  $ jackfield agents show codex
  $ jackfield agents --format json | jq -r '.agents[] | select(.state == \"found\").id'")]
pub(crate) struct AgentsCommand {
    #[command(subcommand)]
    command: Option<AgentsSubcommand>,

    /// Also list agents that are not installed
    #[arg(long = "all", env = env::ALL_AGENTS, hide_env_values = true, value_parser = env::flag_parser())]
    all_agents: bool,

    /// Query version, login and models from the programs; takes at most four seconds
    #[arg(long, env = env::PROBE, hide_env_values = true, value_parser = env::flag_parser())]
    probe: bool,

    /// How to print the list; `quiet` prints the names of found agents
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

#[derive(Debug, Subcommand)]
enum AgentsSubcommand {
    Show(show::ShowAgentCommand),
    Import(import::ImportAgentsCommand),
}

impl AgentsCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        match self.command {
            None => list::list_agents(context, self.probe, self.all_agents, self.format),
            Some(AgentsSubcommand::Show(it)) => it.run(context),
            Some(AgentsSubcommand::Import(it)) => it.run(context),
        }
    }
}

pub(crate) fn diagnostics_json(diagnostics: &[AgentDiagnostic]) -> Vec<Value> {
    let one = |it: &AgentDiagnostic| {
        json!({
            "reason": it.reason, "severity": it.severity, "message": it.message, "fix": it.fix,
        })
    };
    diagnostics.iter().map(one).collect()
}

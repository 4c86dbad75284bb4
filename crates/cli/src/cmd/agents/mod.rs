//! `jackfield agents`: lists the known agents, whether they are installed, and their problems.

mod configured;
mod import;
mod install;
mod installation;
mod list;
mod live_sessions;
mod remove;
mod show;

pub(crate) use configured::ConfiguredAgents;

use crate::{context::CommandContext, env, out::OutputFormat, report::CommandError};
use clap::{Args, Subcommand};
use jackfield_agents::probe::AgentDiagnostic;
use serde_json::{Value, json};

/// List the agents that `--agent` accepts, and where they are installed
///
/// The list starts no program: version, login, models and whether ACP works are those of the last
/// `--probe`. Programs of `agents install` are used first; others are searched on PATH, then in the
/// folders of version managers and installers; `JACKFIELD_PROGRAM_DIRS` replaces those folders. A TOML
/// file in the folder `agents` next to config.toml adds an agent.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield agents
  $ jackfield agents --all
  $ jackfield agents --probe
  $ jackfield agents show codex
  $ jackfield agents install codex
  $ jackfield agents --format json | jq -r '.agents[] | select(.state == \"found\").id'")]
pub(crate) struct AgentsCommand {
    #[command(subcommand)]
    command: Option<AgentsSubcommand>,

    /// Also list agents that are not installed
    #[arg(long = "all", env = env::ALL_AGENTS, hide_env_values = true, value_parser = env::flag_parser())]
    all_agents: bool,

    /// Query version, login, models and ACP from the programs; takes at most four seconds
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
    Install(install::InstallAgentCommand),
    Update(install::UpdateAgentsCommand),
    Rollback(remove::RollbackAgentCommand),
    Remove(remove::RemoveAgentCommand),
}

impl AgentsCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        match self.command {
            None => list::list_agents(context, self.probe, self.all_agents, self.format),
            Some(AgentsSubcommand::Show(it)) => it.run(context),
            Some(AgentsSubcommand::Import(it)) => it.run(context),
            Some(AgentsSubcommand::Install(it)) => it.run(context),
            Some(AgentsSubcommand::Update(it)) => it.run(context),
            Some(AgentsSubcommand::Rollback(it)) => it.run(context),
            Some(AgentsSubcommand::Remove(it)) => it.run(context),
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

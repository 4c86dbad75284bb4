//! `jackfield agents`: which agents there are, which of them are on this machine, and what is wrong
//! with the others.

mod import;
mod list;
mod show;
mod survey;

pub(crate) use survey::Survey;

use crate::{app::Desk, env, out::Format, report::Failure};
use clap::{Args, Subcommand};
use jackfield_agents::probe::AgentDiagnostic;
use serde_json::{Value, json};

/// List the agents that can be named with `--agent`, and where they are
///
/// Nothing is started to make the list: version, login and models are those of the last `--probe`.
/// Programs are looked for on PATH, then where version managers and installers put them;
/// `JACKFIELD_PROGRAM_DIRS` replaces those folders. A TOML file in the folder `agents` beside
/// config.toml adds an agent.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield agents
  $ jackfield agents --probe
  $ jackfield agents show codex
  $ jackfield agents --format json | jq -r '.agents[] | select(.state == \"found\").id'")]
pub(crate) struct Agents {
    #[command(subcommand)]
    command: Option<Command>,

    /// Ask the programs for version, login and models; four seconds at most
    #[arg(long, env = env::PROBE, hide_env_values = true, value_parser = env::flag())]
    probe: bool,

    /// How to print the list; `quiet` prints the names of those that are found
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Command {
    Show(show::Show),
    Import(import::Import),
}

impl Agents {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        match self.command {
            None => list::run(desk, self.probe, self.format),
            Some(Command::Show(it)) => it.run(desk),
            Some(Command::Import(it)) => it.run(desk),
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

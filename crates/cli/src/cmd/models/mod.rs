//! `jackfield models`: what an agent can be told to think with.

mod probe;

use super::agents::{Survey, diagnostics_json};
use crate::{
    app::Desk,
    env,
    out::{Cell, Format, NAME, Table, document},
    report::Failure,
};
use clap::{Args, Subcommand};
use jackfield_agents::probe::{AgentStatus, DiagnosticReason, ModelListSource};
use jackfield_catalog::{AgentSpec, DEFAULT_OPTION};
use serde_json::{Value, json};

/// List the models of an agent, or probe a model server
///
/// `default` lets the program decide. Without `--probe` the list is the one it told last, or else our
/// own, which may be old.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  $ jackfield models codex
  $ jackfield models probe http://localhost:11434
  $ jackfield models gemini --probe
  $ jackfield models codex --format json | jq -r '.models[].id'")]
pub(crate) struct Models {
    #[command(subcommand)]
    command: Option<Command>,

    /// The agent's name in the catalogue
    #[arg(required = true)]
    agent: Option<String>,

    /// Ask the program; some open a session for it, which takes seconds
    #[arg(long, env = env::PROBE, hide_env_values = true, value_parser = env::flag())]
    probe: bool,

    /// How to print the list; `quiet` prints ids
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

#[derive(Debug, Subcommand)]
enum Command {
    Probe(probe::Probe),
}

impl Models {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        if let Some(Command::Probe(it)) = self.command {
            return it.run(desk);
        }
        let mut survey = Survey::new(desk)?;
        let spec = survey.spec(&self.agent.unwrap_or_default())?.clone();
        if self.probe {
            survey.probe(desk, vec![spec.clone()], None)?;
        }
        let standing = survey.known.status(&spec);
        match self.format {
            Format::Json => document(&desk.out, &to_json(&spec, &standing)),
            Format::Quiet => ids(&standing).try_for_each(|it| desk.out.line(it)),
            Format::Text => print(desk, &spec, &standing),
        }
    }
}

fn ids(standing: &AgentStatus) -> impl Iterator<Item = &str> {
    [DEFAULT_OPTION].into_iter().chain(standing.models.models.iter().map(|it| it.id.as_str()))
}

fn print(desk: &Desk, spec: &AgentSpec, standing: &AgentStatus) -> Result<(), Failure> {
    let mut table = Table::new(&["MODEL", "NAME"]);
    table.row(vec![
        Cell::styled(DEFAULT_OPTION, NAME),
        Cell::new("what the program itself prefers"),
    ]);
    for model in &standing.models.models {
        let current = standing.models.current.as_ref() == Some(&model.id);
        let name = if model.name == model.id { "" } else { &model.name };
        let name = if current { format!("{name} (current)") } else { name.to_owned() };
        table.row(vec![Cell::styled(model.id.clone(), NAME), Cell::new(name.trim_start())]);
    }
    table.print(&desk.out)?;
    let from = match standing.models.source {
        ModelListSource::Acp => "told by the agent when a session began",
        ModelListSource::Command => "told by the program",
        ModelListSource::Help => "told by the program's help",
        ModelListSource::Settings => "from its settings file and our own list",
        ModelListSource::Fallback if spec.models.from.is_none() => {
            "our own list: this program tells none"
        }
        ModelListSource::Fallback if !standing.is_probed && standing.program.is_some() => {
            "our own list, which may be old: `--probe` asks the program"
        }
        ModelListSource::Fallback => "our own list, which may be old",
    };
    let other = if spec.models.custom { "; other ids work too" } else { "" };
    desk.out.note(&format!("{from}{other}"));
    for it in standing.diagnostics.iter().filter(|it| it.reason == DiagnosticReason::ModelsFallback)
    {
        desk.out.note(&format!("{}\n  {} {}", it.message, "fix:", it.fix));
    }
    if !spec.reasoning.is_empty() {
        desk.out.note(&format!("reasoning: {DEFAULT_OPTION}, {}", spec.reasoning.join(", ")));
    }
    Ok(())
}

fn to_json(spec: &AgentSpec, standing: &AgentStatus) -> Value {
    let about =
        standing.diagnostics.iter().filter(|it| it.reason == DiagnosticReason::ModelsFallback);
    let about: Vec<_> = about.cloned().collect();
    let default = json!({ "id": DEFAULT_OPTION, "name": "Default" });
    let models = standing.models.models.iter().map(|it| json!(it));
    let models: Vec<Value> = [default].into_iter().chain(models).collect();
    json!({
        "agent": spec.id, "source": standing.models.source.name(), "probed": standing.is_probed,
        "current": standing.models.current, "custom": spec.models.custom,
        "models": models, "reasoning": spec.reasoning,
        "diagnostics": diagnostics_json(&about),
    })
}

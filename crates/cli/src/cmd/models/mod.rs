//! `jackfield models`: lists the models of an agent.

mod probe;

use super::agents::{ConfiguredAgents, diagnostics_json};
use crate::{
    context::CommandContext,
    env,
    out::{NAME, OutputFormat, TableCell, TextTable, print_json_document},
    report::CommandError,
};
use clap::{Args, Subcommand};
use jackfield_agents::probe::{AgentStatus, DiagnosticReason, ModelListSource};
use jackfield_catalog::{AgentSpec, DEFAULT_OPTION};
use serde_json::{Value, json};

/// List the models of an agent, or probe a model server
///
/// `default` lets the program decide. Without `--probe` it is the list of the last probe, or else the
/// built-in list, which may be outdated.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  $ jackfield models codex
  $ jackfield models probe http://localhost:11434
  $ jackfield models gemini --probe
  $ jackfield models codex --format json | jq -r '.models[].id'")]
pub(crate) struct ModelsCommand {
    #[command(subcommand)]
    command: Option<ModelsSubcommand>,

    /// The agent's name in the catalog
    #[arg(required = true)]
    agent: Option<String>,

    /// Query the program; some have to open a session, which takes seconds
    #[arg(long, env = env::PROBE, hide_env_values = true, value_parser = env::flag_parser())]
    probe: bool,

    /// How to print the list; `quiet` prints ids
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

#[derive(Debug, Subcommand)]
enum ModelsSubcommand {
    Probe(probe::ProbeServerCommand),
}

impl ModelsCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        if let Some(ModelsSubcommand::Probe(it)) = self.command {
            return it.run(context);
        }
        let mut agents = ConfiguredAgents::new(context)?;
        let spec = agents.find_spec(&self.agent.unwrap_or_default())?.clone();
        if self.probe {
            agents.probe(context, vec![spec.clone()], None)?;
        }
        let status = agents.survey.status(&spec);
        match self.format {
            OutputFormat::Json => print_json_document(&context.output, &to_json(&spec, &status)),
            OutputFormat::Quiet => {
                model_ids(&status).try_for_each(|it| context.output.print_line(it))
            }
            OutputFormat::Text => print_models(context, &spec, &status),
        }
    }
}

fn model_ids(status: &AgentStatus) -> impl Iterator<Item = &str> {
    [DEFAULT_OPTION].into_iter().chain(status.models.models.iter().map(|it| it.id.as_str()))
}

fn print_models(
    context: &CommandContext,
    spec: &AgentSpec,
    status: &AgentStatus,
) -> Result<(), CommandError> {
    let mut table = TextTable::new(&["MODEL", "NAME"]);
    table.add_row(vec![
        TableCell::styled(DEFAULT_OPTION, NAME),
        TableCell::new("the program's own default"),
    ]);
    for model in &status.models.models {
        let is_current = status.models.current.as_ref() == Some(&model.id);
        let name = if model.name == model.id { "" } else { &model.name };
        let name = if is_current { format!("{name} (current)") } else { name.to_owned() };
        table.add_row(vec![
            TableCell::styled(model.id.clone(), NAME),
            TableCell::new(name.trim_start()),
        ]);
    }
    table.print(&context.output)?;
    let source = match status.models.source {
        ModelListSource::Acp => "reported by the agent in a session",
        ModelListSource::Command => "reported by the program",
        ModelListSource::Help => "from the program's help",
        ModelListSource::Settings => "from its settings file and the built-in list",
        ModelListSource::Fallback if spec.models.from.is_none() => {
            "built-in list; the program does not report models"
        }
        ModelListSource::Fallback if !status.is_probed && status.program.is_some() => {
            "built-in list, which may be outdated; `--probe` queries the program"
        }
        ModelListSource::Fallback => "built-in list, which may be outdated",
    };
    let custom = if spec.models.custom { "; other ids work too" } else { "" };
    context.output.print_note(&format!("{source}{custom}"));
    for it in status.diagnostics.iter().filter(|it| it.reason == DiagnosticReason::ModelsFallback) {
        context.output.print_note(&format!("{}\n  {} {}", it.message, "fix:", it.fix));
    }
    if !spec.reasoning.is_empty() {
        context
            .output
            .print_note(&format!("reasoning: {DEFAULT_OPTION}, {}", spec.reasoning.join(", ")));
    }
    Ok(())
}

fn to_json(spec: &AgentSpec, status: &AgentStatus) -> Value {
    let diagnostics =
        status.diagnostics.iter().filter(|it| it.reason == DiagnosticReason::ModelsFallback);
    let diagnostics: Vec<_> = diagnostics.cloned().collect();
    let default = json!({ "id": DEFAULT_OPTION, "name": "Default" });
    let models = status.models.models.iter().map(|it| json!(it));
    let models: Vec<Value> = [default].into_iter().chain(models).collect();
    json!({
        "agent": spec.id, "source": status.models.source.name(), "probed": status.is_probed,
        "current": status.models.current, "custom": spec.models.custom,
        "models": models, "reasoning": spec.reasoning,
        "diagnostics": diagnostics_json(&diagnostics),
    })
}

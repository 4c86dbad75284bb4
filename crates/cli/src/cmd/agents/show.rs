//! `jackfield agents show`: shows the details of one agent.

use super::{
    ConfiguredAgents, diagnostics_json,
    list::{installed_version, path_json, start_command},
};
use crate::{
    context::CommandContext,
    env,
    out::{ALERT, BRIGHT, DIM, DONE, NAME, OutputFormat, WARNING, paint, print_json_document},
    report::CommandError,
};
use clap::Args;
use jackfield_agents::{
    find::ProgramOrigin,
    probe::{AcpState, AgentStatus, DiagnosticSeverity},
};
use jackfield_catalog::{AgentSpec, LaunchVariant};
use serde_json::{Value, json};

/// Show one agent: its programs, start commands, environment and problems
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield agents show codex
  $ jackfield agents show codex --probe
  $ jackfield agents show codex --format json | jq .agent.diagnostics")]
pub(super) struct ShowAgentCommand {
    /// The agent's name in the catalog
    name: String,

    /// Query version, login and models from the program first
    #[arg(long, env = env::PROBE, hide_env_values = true, value_parser = env::flag_parser())]
    probe: bool,

    /// How to print it; `quiet` prints the program's path
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl ShowAgentCommand {
    pub(super) fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        let mut agents = ConfiguredAgents::new(context)?;
        let spec = agents.find_spec(&self.name)?.clone();
        if self.probe {
            agents.probe(context, vec![spec.clone()], None)?;
        }
        let status = agents.survey.status(&spec);
        match self.format {
            OutputFormat::Json => {
                let agent = to_json(&agents, &spec, &status);
                print_json_document(&context.output, &json!({ "agent": agent }))
            }
            OutputFormat::Quiet => {
                let path = status.program.iter().map(|it| it.path.display().to_string());
                path.into_iter().try_for_each(|it| context.output.print_line(&it))
            }
            OutputFormat::Text => print(context, &agents, &spec, &status),
        }
    }
}

fn print(
    context: &CommandContext,
    agents: &ConfiguredAgents,
    spec: &AgentSpec,
    status: &AgentStatus,
) -> Result<(), CommandError> {
    let program = status.program.as_ref().map(|it| match it.origin {
        ProgramOrigin::Path => it.path.display().to_string(),
        ProgramOrigin::Installed => format!("{} (installed by Jackfield)", it.path.display()),
        other => format!("{} (from {})", it.path.display(), other.name()),
    });
    let login = match (&status.login_variable, status.is_probed) {
        (Some(variable), _) => format!("ok, from {variable}"),
        (None, true) => status.login.name().to_owned(),
        (None, false) => String::new(),
    };
    let fields = [
        ("agent", spec.id.clone()),
        ("name", spec.name.clone()),
        ("aliases", spec.aliases.join(", ")),
        ("program", program.unwrap_or_else(|| "not found".to_owned())),
        ("version", installed_version(agents, spec, status).unwrap_or_default()),
        ("installed", describe_installed(agents, spec)),
        ("acp", status.acp.map(AcpState::name).unwrap_or_default().to_owned()),
        ("login", login),
        ("models", format_models(status)),
        ("reasoning", spec.reasoning.join(", ")),
        ("install", spec.install.clone().unwrap_or_default()),
        ("docs", spec.docs.clone().unwrap_or_default()),
        ("note", spec.note.clone().unwrap_or_default()),
    ];
    for (name, value) in fields.iter().filter(|it| !it.1.is_empty()) {
        context.output.print_line(&format!("{} {value}", paint(DIM, format!("{name:<10}"))))?;
    }
    print_starts(context, spec, status)?;
    print_environment(context, spec)?;
    print_heading(context, "notes", spec.quirks.is_empty())?;
    spec.quirks.iter().try_for_each(|it| context.output.print_line(&format!("  {}", it.text)))?;
    print_heading(context, "problems", status.diagnostics.is_empty())?;
    for it in &status.diagnostics {
        let (style, word) = match it.severity {
            DiagnosticSeverity::Error => (ALERT, "error"),
            DiagnosticSeverity::Warning => (WARNING, "warning"),
            DiagnosticSeverity::Info => (DIM, "info"),
        };
        context.output.print_line(&format!(
            "  {} {}",
            paint(style, format!("{word}:")),
            it.message
        ))?;
        context.output.print_line(&format!("    {} {}", paint(NAME, "fix:"), it.fix))?;
    }
    if !status.is_probed && status.program.is_some() {
        context.output.print_note("`--probe` queries version, login and models from the program");
    }
    Ok(())
}

/// The packages that Jackfield has installed, and the version before.
fn describe_installed(agents: &ConfiguredAgents, spec: &AgentSpec) -> String {
    let installed = agents.survey.locations.find_installed(&spec.id);
    let Some(record) = installed.and_then(|it| it.read_record()) else { return String::new() };
    let packages = record.packages.iter().map(|it| format!("{} {}", it.name, it.version));
    packages.collect::<Vec<_>>().join(", ")
}

fn print_heading(context: &CommandContext, text: &str, is_empty: bool) -> Result<(), CommandError> {
    if is_empty { Ok(()) } else { context.output.print_line(&paint(DIM, text)) }
}

fn format_models(status: &AgentStatus) -> String {
    const SHOWN_MAX: usize = 6;
    let ids: Vec<&str> = status.models.models.iter().map(|it| it.id.as_str()).collect();
    let more = ids.len().saturating_sub(SHOWN_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let ids = ids[..ids.len().min(SHOWN_MAX)].join(", ");
    let source = match status.models.source.name() {
        "fallback" => "the built-in list",
        source => source,
    };
    if ids.is_empty() { String::new() } else { format!("{ids}{more} (from {source})") }
}

/// Prints each launch variant, and which one is used.
fn print_starts(
    context: &CommandContext,
    spec: &AgentSpec,
    status: &AgentStatus,
) -> Result<(), CommandError> {
    context.output.print_line(&paint(DIM, "starts"))?;
    for (index, variant) in spec.launch.iter().enumerate() {
        let is_used = status.chosen == Some(index);
        let is_installed = status.variants[index].is_ok();
        let has_failed = status.variant_failures.get(index).is_some_and(Option::is_some);
        let usage = match (is_used, is_installed) {
            (_, true) if has_failed => paint(ALERT, "failed"),
            (true, _) => paint(DONE, "used"),
            (false, true) => "used if an earlier one fails".to_owned(),
            (false, false) => {
                format!("not used: `{}` is not installed", variant.bins.join("` or `"))
            }
        };
        let bin = variant.bins.first().map_or("", String::as_str);
        let command = [bin].into_iter().chain(variant.args.iter().map(String::as_str));
        let command = command.collect::<Vec<_>>().join(" ");
        let protocol = match &variant.dialect {
            None => "native ACP".to_owned(),
            Some(dialect) => format!("adapter, dialect {dialect}"),
        };
        let name = &variant.name;
        context
            .output
            .print_line(&format!("  {name}: {} ({protocol}; {usage})", paint(BRIGHT, &command)))?;
        if !variant.modes.is_empty() {
            context.output.print_line(&format!("    modes: {}", format_modes(variant)))?;
        }
        if let Some(note) = permission_note(variant) {
            context.output.print_line(&format!("    {note}"))?;
        }
    }
    Ok(())
}

/// A note about when the variant asks for permission, unless it always does.
fn permission_note(variant: &LaunchVariant) -> Option<String> {
    if !variant.can_ask() {
        return Some("never asks for permission: policy rules cannot be enforced".to_owned());
    }
    let set: Vec<String> =
        variant.ask_env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!set.is_empty()).then(|| {
        format!(
            "asks for permission because it is started with {}; your own value takes precedence",
            set.join(" ")
        )
    })
}

fn format_modes(variant: &LaunchVariant) -> String {
    let modes = variant.modes.iter().map(|it| {
        let asks = if it.asks { "asks" } else { "never asks" };
        format!("{} ({asks})", it.id)
    });
    modes.collect::<Vec<_>>().join(", ")
}

/// Prints the names of the variables that the agent gets.
fn print_environment(context: &CommandContext, spec: &AgentSpec) -> Result<(), CommandError> {
    let set: Vec<String> = spec.env.set.iter().map(|(name, it)| format!("{name}={it}")).collect();
    let parts = [
        ("env", [&spec.env.pass[..], &spec.env.require[..]].concat().join(" ")),
        ("env unset", spec.env.remove.join(" ")),
        ("env set", set.join(" ")),
    ];
    for (name, value) in parts.iter().filter(|it| !it.1.is_empty()) {
        context.output.print_line(&format!("{} {value}", paint(DIM, format!("{name:<10}"))))?;
    }
    Ok(())
}

fn to_json(agents: &ConfiguredAgents, spec: &AgentSpec, status: &AgentStatus) -> Value {
    let variants: Vec<Value> = spec
        .launch
        .iter()
        .zip(&status.variants)
        .enumerate()
        .map(|(index, (variant, found))| {
            let modes: Vec<Value> = variant
                .modes
                .iter()
                .map(|it| json!({ "id": it.id, "name": it.name, "asks": it.asks }))
                .collect();
            json!({
                "name": variant.name, "bins": variant.bins, "args": variant.args, "dialect": variant.dialect,
                "program": path_json(found.as_ref().ok()), "modes": modes,
                "canAsk": variant.can_ask(), "askEnv": variant.ask_env,
                "used": status.chosen == Some(index),
                "failure": status.variant_failures.get(index).cloned().flatten(),
            })
        })
        .collect();
    let quirks: Vec<&str> = spec.quirks.iter().map(|it| it.text.as_str()).collect();
    json!({
        "id": spec.id, "name": spec.name, "aliases": spec.aliases, "program": path_json(status.program.as_ref()),
        "version": installed_version(agents, spec, status), "acp": status.acp,
        "installed": agents.survey.locations.find_installed(&spec.id).and_then(|it| it.read_record()),
        "login": status.login.name(), "loginBy": status.login_variable,
        "probed": status.is_probed, "starts": start_command(spec, status), "variants": variants,
        "env": {
            "pass": spec.env.pass, "require": spec.env.require, "remove": spec.env.remove,
            "set": spec.env.set,
        },
        "models": status.models, "reasoning": spec.reasoning, "install": spec.install,
        "docs": spec.docs, "note": spec.note, "quirks": quirks,
        "diagnostics": diagnostics_json(&status.diagnostics),
    })
}

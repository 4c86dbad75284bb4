//! `jackfield agents show`: one agent, with everything that is known of it.

use super::{
    Survey, diagnostics_json,
    list::{path_json, starts},
};
use crate::{
    app::Desk,
    env,
    out::{ALERT, BRIGHT, DIM, DONE, Format, NAME, WARNING, document, paint},
    report::Failure,
};
use clap::Args;
use jackfield_agents::probe::{AgentStatus, DiagnosticSeverity};
use jackfield_catalog::{AgentSpec, LaunchVariant};
use serde_json::{Value, json};

/// Show one agent: its programs, how it is started, what it sees, what is wrong
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield agents show codex
  $ jackfield agents show codex --probe
  $ jackfield agents show codex --format json | jq .agent.diagnostics")]
pub(super) struct Show {
    /// Its name in the catalogue
    name: String,

    /// Ask the program for version, login and models first
    #[arg(long, env = env::PROBE, hide_env_values = true, value_parser = env::flag())]
    probe: bool,

    /// How to print it; `quiet` prints the program's path
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

impl Show {
    pub(super) fn run(&self, desk: &Desk) -> Result<(), Failure> {
        let mut survey = Survey::new(desk)?;
        let spec = survey.spec(&self.name)?.clone();
        if self.probe {
            survey.probe(desk, vec![spec.clone()], None)?;
        }
        let standing = survey.known.status(&spec);
        match self.format {
            Format::Json => document(&desk.out, &json!({ "agent": to_json(&spec, &standing) })),
            Format::Quiet => {
                let path = standing.program.iter().map(|it| it.path.display().to_string());
                path.into_iter().try_for_each(|it| desk.out.line(&it))
            }
            Format::Text => print(desk, &spec, &standing),
        }
    }
}

fn print(desk: &Desk, spec: &AgentSpec, standing: &AgentStatus) -> Result<(), Failure> {
    let program = standing.program.as_ref().map(|it| match it.origin.name() {
        "path" => it.path.display().to_string(),
        via => format!("{} (by {via})", it.path.display()),
    });
    let login = match (&standing.login_variable, standing.is_probed) {
        (Some(variable), _) => format!("ok, by {variable}"),
        (None, true) => standing.login.name().to_owned(),
        (None, false) => String::new(),
    };
    let fields = [
        ("agent", spec.id.clone()),
        ("name", spec.name.clone()),
        ("program", program.unwrap_or_else(|| "not found".to_owned())),
        ("version", standing.version.clone().unwrap_or_default()),
        ("login", login),
        ("models", models(standing)),
        ("reasoning", spec.reasoning.join(", ")),
        ("install", spec.install.clone().unwrap_or_default()),
        ("docs", spec.docs.clone().unwrap_or_default()),
        ("note", spec.note.clone().unwrap_or_default()),
    ];
    for (name, value) in fields.iter().filter(|it| !it.1.is_empty()) {
        desk.out.line(&format!("{} {value}", paint(DIM, format!("{name:<10}"))))?;
    }
    print_starts(desk, spec, standing)?;
    print_sight(desk, spec)?;
    heading(desk, "to know", spec.quirks.is_empty())?;
    spec.quirks.iter().try_for_each(|it| desk.out.line(&format!("  {}", it.text)))?;
    heading(desk, "problems", standing.diagnostics.is_empty())?;
    for it in &standing.diagnostics {
        let (style, word) = match it.severity {
            DiagnosticSeverity::Error => (ALERT, "error"),
            DiagnosticSeverity::Warning => (WARNING, "warning"),
            DiagnosticSeverity::Info => (DIM, "info"),
        };
        desk.out.line(&format!("  {} {}", paint(style, format!("{word}:")), it.message))?;
        desk.out.line(&format!("    {} {}", paint(NAME, "fix:"), it.fix))?;
    }
    if !standing.is_probed && standing.program.is_some() {
        desk.out.note("`--probe` asks the program for version, login and models");
    }
    Ok(())
}

fn heading(desk: &Desk, text: &str, empty: bool) -> Result<(), Failure> {
    if empty { Ok(()) } else { desk.out.line(&paint(DIM, text)) }
}

fn models(standing: &AgentStatus) -> String {
    const SHOWN_MAX: usize = 6;
    let ids: Vec<&str> = standing.models.models.iter().map(|it| it.id.as_str()).collect();
    let more = ids.len().saturating_sub(SHOWN_MAX);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let ids = ids[..ids.len().min(SHOWN_MAX)].join(", ");
    let source = match standing.models.source.name() {
        "fallback" => "our own list",
        source => source,
    };
    if ids.is_empty() { String::new() } else { format!("{ids}{more} (from {source})") }
}

/// Each way to start it, and which one is used.
fn print_starts(desk: &Desk, spec: &AgentSpec, standing: &AgentStatus) -> Result<(), Failure> {
    desk.out.line(&paint(DIM, "starts"))?;
    for (index, variant) in spec.launch.iter().enumerate() {
        let used = standing.chosen == Some(index);
        let there = standing.variants[index].is_ok();
        let verdict = match (used, there) {
            (true, _) => paint(DONE, "used"),
            (false, true) => "not used: an earlier one is there".to_owned(),
            (false, false) => {
                format!("not used: `{}` is not there", variant.bins.join("` or `"))
            }
        };
        let bin = variant.bins.first().map_or("", String::as_str);
        let command = [bin].into_iter().chain(variant.args.iter().map(String::as_str));
        let command = command.collect::<Vec<_>>().join(" ");
        let how = match &variant.dialect {
            None => "speaks ACP".to_owned(),
            Some(dialect) => format!("through our adapter, dialect {dialect}"),
        };
        desk.out.line(&format!("  {} ({how}; {verdict})", paint(BRIGHT, &command)))?;
        if !variant.modes.is_empty() {
            desk.out.line(&format!("    modes: {}", modes(variant)))?;
        }
        if let Some(asking) = asking(variant) {
            desk.out.line(&format!("    {asking}"))?;
        }
    }
    Ok(())
}

/// Whether it asks before it acts, where that is not what one would expect.
fn asking(variant: &LaunchVariant) -> Option<String> {
    if !variant.can_ask() {
        return Some("never asks before it acts: rules cannot be enforced".to_owned());
    }
    let set: Vec<String> =
        variant.ask_env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    (!set.is_empty())
        .then(|| format!("asks because it is started with {}; your own value wins", set.join(" ")))
}

fn modes(variant: &LaunchVariant) -> String {
    let modes = variant.modes.iter().map(|it| {
        let asks = if it.asks { "asks" } else { "never asks" };
        format!("{} ({asks})", it.id)
    });
    modes.collect::<Vec<_>>().join(", ")
}

/// Which variables it sees: names only.
fn print_sight(desk: &Desk, spec: &AgentSpec) -> Result<(), Failure> {
    let set: Vec<String> = spec.env.set.iter().map(|(name, it)| format!("{name}={it}")).collect();
    let parts = [
        ("sees", spec.env.pass.join(" ")),
        ("never sees", spec.env.remove.join(" ")),
        ("is given", set.join(" ")),
    ];
    for (name, value) in parts.iter().filter(|it| !it.1.is_empty()) {
        desk.out.line(&format!("{} {value}", paint(DIM, format!("{name:<10}"))))?;
    }
    Ok(())
}

fn to_json(spec: &AgentSpec, standing: &AgentStatus) -> Value {
    let variants: Vec<Value> = spec
        .launch
        .iter()
        .zip(&standing.variants)
        .enumerate()
        .map(|(index, (variant, found))| {
            let modes: Vec<Value> = variant
                .modes
                .iter()
                .map(|it| json!({ "id": it.id, "name": it.name, "asks": it.asks }))
                .collect();
            json!({
                "bins": variant.bins, "args": variant.args, "dialect": variant.dialect,
                "program": path_json(found.as_ref().ok()), "modes": modes,
                "canAsk": variant.can_ask(), "askEnv": variant.ask_env,
                "used": standing.chosen == Some(index),
            })
        })
        .collect();
    let quirks: Vec<&str> = spec.quirks.iter().map(|it| it.text.as_str()).collect();
    json!({
        "id": spec.id, "name": spec.name, "program": path_json(standing.program.as_ref()),
        "version": standing.version, "login": standing.login.name(), "loginBy": standing.login_variable,
        "probed": standing.is_probed, "starts": starts(spec, standing), "variants": variants,
        "env": { "pass": spec.env.pass, "remove": spec.env.remove, "set": spec.env.set },
        "models": standing.models, "reasoning": spec.reasoning, "install": spec.install,
        "docs": spec.docs, "note": spec.note, "quirks": quirks,
        "diagnostics": diagnostics_json(&standing.diagnostics),
    })
}

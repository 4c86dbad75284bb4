//! The list of agents with their state: found, broken or missing.

use super::{ConfiguredAgents, diagnostics_json};
use crate::{
    context::CommandContext,
    out::{
        ALERT, DIM, DONE, NAME, OutputFormat, TableCell, TextTable, WARNING, print_json_document,
    },
    plain_text::format_count,
    report::CommandError,
};
use jackfield_agents::{
    find::{FoundProgram, ProgramOrigin, find_program},
    probe::{AcpState, AgentStatus, DiagnosticReason, DiagnosticSeverity},
};
use jackfield_catalog::{AgentSpec, Catalog, InstallAdvice};
use jackfield_protocol::quote_argv;
use serde_json::{Value, json};
use std::{path::Path, time::Duration};

/// The time limit for all probes, so that the command takes less than four seconds.
const PROBE_MAX: Duration = Duration::from_millis(3500);

/// One agent in the list.
struct AgentRow {
    id: String,
    state: AgentState,
    /// Where its program was found.
    origin: String,
    version: String,
    /// Whether its ACP mode works.
    acp: String,
    login: String,
    /// The command that starts the agent.
    command: String,
    /// The most important diagnostic in one line.
    remark: String,
    json: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AgentState {
    Found,
    Broken,
    Missing,
}

impl AgentState {
    fn name(self) -> &'static str {
        match self {
            AgentState::Found => "found",
            AgentState::Broken => "broken",
            AgentState::Missing => "missing",
        }
    }

    fn cell(self) -> TableCell {
        let style = match self {
            AgentState::Found => DONE,
            AgentState::Broken => ALERT,
            AgentState::Missing => DIM,
        };
        TableCell::styled(self.name(), style)
    }
}

pub(super) fn list_agents(
    context: &CommandContext,
    probe: bool,
    all_agents: bool,
    format: OutputFormat,
) -> Result<(), CommandError> {
    let mut agents = ConfiguredAgents::new(context)?;
    if probe {
        let mut specs: Vec<AgentSpec> = agents.survey.catalogue.iter().cloned().collect();
        // Agents without a known version come first, so that a timeout does not skip the same ones again.
        specs.sort_by_cached_key(|it| agents.survey.status(it).version.is_some());
        agents.probe(context, specs, Some(PROBE_MAX))?;
    }
    let mut rows = agent_rows(&agents);
    rows.sort_by(|one, other| (one.state, &one.id).cmp(&(other.state, &other.id)));
    match format {
        OutputFormat::Json => {
            let rows: Vec<Value> = rows.into_iter().map(|it| it.json).collect();
            let errors = file_errors_json(&agents.survey.catalogue);
            print_json_document(&context.output, &json!({ "agents": rows, "flaws": errors }))
        }
        OutputFormat::Quiet => {
            let found = rows.iter().filter(|it| it.state == AgentState::Found);
            found.into_iter().try_for_each(|it| context.output.print_line(&it.id))
        }
        OutputFormat::Text => {
            // An agent of the user's own files whose program is missing is a mistake, not one that is not installed.
            let builtin = Catalog::builtin();
            let is_shown = |it: &&AgentRow| {
                all_agents
                    || it.state != AgentState::Missing
                    || agents.settings.agents.contains_key(&it.id)
                    || builtin.get(&it.id).is_none()
            };
            let (shown, folded): (Vec<&AgentRow>, Vec<&AgentRow>) = rows.iter().partition(is_shown);
            print_table(context, &shown, &agents.survey.catalogue)?;
            print_summary(context, &rows, &folded);
            Ok(())
        }
    }
}

fn print_table(
    context: &CommandContext,
    rows: &[&AgentRow],
    catalog: &Catalog,
) -> Result<(), CommandError> {
    let headings = ["AGENT", "STATE", "FROM", "VERSION", "ACP", "LOGIN", "STARTS", "REMARK"];
    let mut table = TextTable::new(&headings);
    for row in rows {
        table.add_row(vec![
            TableCell::styled(row.id.clone(), NAME),
            row.state.cell(),
            TableCell::new(row.origin.clone()),
            TableCell::new(row.version.clone()),
            TableCell::new(row.acp.clone()),
            TableCell::new(row.login.clone()),
            TableCell::new(row.command.clone()),
            TableCell::new(row.remark.clone()),
        ]);
    }
    for error in catalog.errors() {
        let name = Path::new(&error.file).file_stem().unwrap_or_default().to_string_lossy();
        let mut cells = vec![TableCell::styled(name, NAME), TableCell::styled("invalid", WARNING)];
        cells.extend([""; 5].map(TableCell::new));
        cells.push(TableCell::new(error.to_string()));
        table.add_row(cells);
    }
    table.print(&context.output)
}

/// What the table leaves out, and how to see more.
fn print_summary(context: &CommandContext, rows: &[AgentRow], folded: &[&AgentRow]) {
    const NAMES_MAX: usize = 8;
    if !folded.is_empty() {
        let more = if NAMES_MAX < folded.len() { ", …" } else { "" };
        let names: Vec<&str> = folded.iter().take(NAMES_MAX).map(|it| it.id.as_str()).collect();
        let (count, names) = (format_count(folded.len(), "agent"), names.join(", "));
        context.output.print_note(&format!(
            "{count} not installed ({names}{more}); `jackfield agents --all` shows how to install them"
        ));
    }
    let found = rows.iter().filter(|it| it.state == AgentState::Found).count();
    let has_unprobed =
        rows.iter().any(|it| it.json["probed"] == false && it.state == AgentState::Found);
    let probe_hint =
        if has_unprobed { "`--probe` queries version, login and models; " } else { "" };
    let total = format_count(rows.len(), "agent");
    context.output.print_note(&format!(
        "{found} of {total} found; {probe_hint}`jackfield agents show NAME` shows details"
    ));
}

fn agent_rows(agents: &ConfiguredAgents) -> Vec<AgentRow> {
    let configured = agents.settings.agents.iter();
    let commands = configured.filter_map(|(name, it)| Some((name, it.command.as_ref()?)));
    let commands: Vec<AgentRow> =
        commands.map(|(name, command)| command_row(agents, name, command)).collect();
    let is_not_overridden = |spec: &&AgentSpec| commands.iter().all(|it| it.id != spec.id);
    let specs: Vec<AgentRow> = agents
        .survey
        .catalogue
        .iter()
        .filter(is_not_overridden)
        .map(|it| spec_row(agents, it))
        .collect();
    commands.into_iter().chain(specs).collect()
}

/// An agent whose command is in config.toml.
fn command_row(agents: &ConfiguredAgents, name: &str, command: &[String]) -> AgentRow {
    let program = command.first().cloned().unwrap_or_default();
    let found = find_program(std::slice::from_ref(&program), None, &agents.survey.locations).ok();
    let state = if found.is_some() { AgentState::Found } else { AgentState::Missing };
    let remark = match &found {
        Some(_) => String::new(),
        None => format!("`{program}` of [agents.{name}] in config.toml was not found"),
    };
    let json = json!({
        "id": name, "name": name, "state": state.name(), "program": path_json(found.as_ref()),
        "version": null, "acp": null, "login": "unknown", "starts": { "speaks": "command", "command": command },
        "probed": true, "diagnostics": [],
    });
    let (id, command) = (name.to_owned(), quote_argv(command));
    let origin = found.map(|it| it.origin.name().to_owned()).unwrap_or_default();
    let (version, acp, login) = Default::default();
    AgentRow { id, state, origin, version, acp, login, command, remark, json }
}

fn spec_row(agents: &ConfiguredAgents, spec: &AgentSpec) -> AgentRow {
    let status = agents.survey.status(spec);
    let state = match (status.chosen, status.is_usable()) {
        (None, _) => AgentState::Missing,
        (Some(_), false) => AgentState::Broken,
        (Some(_), true) => AgentState::Found,
    };
    let is_login_known = status.is_probed || status.login_variable.is_some();
    AgentRow {
        id: spec.id.clone(),
        state,
        origin: status.program.as_ref().map(|it| it.origin.name()).unwrap_or_default().to_owned(),
        version: installed_version(agents, spec, &status).unwrap_or_default(),
        acp: status.acp.map(AcpState::name).unwrap_or_default().to_owned(),
        login: if is_login_known && status.chosen.is_some() {
            status.login.name().to_owned()
        } else {
            String::new()
        },
        command: start_command(spec, &status).map(quote_argv).unwrap_or_default(),
        remark: main_remark(spec, &status),
        json: to_json(agents, spec, &status, state),
    }
}

/// The version that the program printed, or else the one that Jackfield has installed.
pub(super) fn installed_version(
    agents: &ConfiguredAgents,
    spec: &AgentSpec,
    status: &AgentStatus,
) -> Option<String> {
    let is_ours = |it: &FoundProgram| it.origin == ProgramOrigin::Installed;
    let recorded = || {
        let installed = agents.survey.locations.find_installed(&spec.id)?;
        Some(installed.read_record()?.reported_version)
    };
    let is_ours = status.program.as_ref().is_some_and(is_ours);
    status.version.clone().or_else(|| is_ours.then(recorded).flatten())
}

/// The command that starts the agent, as a user would type it.
pub(super) fn start_command(spec: &AgentSpec, status: &AgentStatus) -> Option<Vec<String>> {
    let variant = &spec.launch[status.chosen?];
    if !variant.is_native_acp() {
        return Some(["jackfield", "adapt", &spec.id].map(str::to_owned).into());
    }
    let found = status.variants[status.chosen?].as_ref().ok()?;
    let name = found.path.file_name().map(|it| it.to_string_lossy().into_owned());
    Some(name.into_iter().chain(variant.args.iter().cloned()).collect())
}

/// The most severe diagnostic; for a missing agent, how to install it.
fn main_remark(spec: &AgentSpec, status: &AgentStatus) -> String {
    let worst = |severity| status.diagnostics.iter().find(|it| it.severity == severity);
    let Some(worst) =
        worst(DiagnosticSeverity::Error).or_else(|| worst(DiagnosticSeverity::Warning))
    else {
        return String::new();
    };
    if worst.reason != DiagnosticReason::NotOnPath {
        return worst.message.clone();
    }
    match spec.install_advice() {
        InstallAdvice::Command(command) => command,
        InstallAdvice::Vendor { .. } | InstallAdvice::Included => {
            spec.install.clone().or(spec.docs.clone()).unwrap_or_else(|| worst.fix.clone())
        }
    }
}

fn to_json(
    agents: &ConfiguredAgents,
    spec: &AgentSpec,
    status: &AgentStatus,
    state: AgentState,
) -> Value {
    let variant = status.chosen.map(|it| &spec.launch[it]);
    let speaks = |acp| if acp { "acp" } else { "adapter" };
    let starts = variant.map(|it| {
        json!({
            "speaks": speaks(it.is_native_acp()), "dialect": it.dialect,
            "command": start_command(spec, status),
        })
    });
    json!({
        "id": spec.id, "name": spec.name, "state": state.name(),
        "program": path_json(status.program.as_ref()),
        "version": installed_version(agents, spec, status), "acp": status.acp,
        "login": status.login.name(), "starts": starts,
        "models": { "source": status.models.source.name(), "count": status.models.models.len() },
        "install": spec.install, "probed": status.is_probed,
        "diagnostics": diagnostics_json(&status.diagnostics),
    })
}

pub(super) fn path_json(found: Option<&FoundProgram>) -> Value {
    found.map_or(Value::Null, |it| json!({ "path": it.path, "via": it.origin.name() }))
}

fn file_errors_json(catalog: &Catalog) -> Vec<Value> {
    let one = |it: &jackfield_catalog::AgentFileError| json!({ "file": it.file, "line": it.error.line, "reason": it.error.reason });
    catalog.errors().iter().map(one).collect()
}

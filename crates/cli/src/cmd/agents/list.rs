//! The list: who is found, who is missing, and whose file or command is wrong.

use super::{Survey, diagnostics_json};
use crate::{
    app::Desk,
    out::{ALERT, Cell, DIM, DONE, Format, NAME, Table, WARNING, count, document},
    report::Failure,
};
use jackfield_agents::{
    find::{FoundProgram, find_program},
    probe::{AgentStatus, DiagnosticReason, DiagnosticSeverity},
};
use jackfield_catalog::{AgentSpec, Catalog};
use serde_json::{Value, json};
use std::{path::Path, time::Duration};

/// With the start and the end of the command this stays below four seconds, whatever hangs.
const PROBE_MAX: Duration = Duration::from_millis(3500);

/// One agent in the list.
struct Line {
    id: String,
    state: State,
    version: String,
    login: String,
    /// The command that starts it.
    starts: String,
    /// What to know about it in one line.
    remark: String,
    json: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    Found,
    Broken,
    Missing,
}

impl State {
    fn shown(self) -> &'static str {
        match self {
            State::Found => "found",
            State::Broken => "broken",
            State::Missing => "missing",
        }
    }

    fn cell(self) -> Cell {
        let style = match self {
            State::Found => DONE,
            State::Broken => ALERT,
            State::Missing => DIM,
        };
        Cell::styled(self.shown(), style)
    }
}

pub(super) fn run(desk: &Desk, probe: bool, format: Format) -> Result<(), Failure> {
    let mut survey = Survey::new(desk)?;
    if probe {
        let mut specs: Vec<AgentSpec> = survey.known.catalogue.iter().cloned().collect();
        // Those that have not told yet come first: whom the time did not suffice for is next.
        specs.sort_by_cached_key(|it| survey.known.status(it).version.is_some());
        survey.probe(desk, specs, Some(PROBE_MAX))?;
    }
    let mut lines = lines(&survey);
    lines.sort_by(|one, other| (one.state, &one.id).cmp(&(other.state, &other.id)));
    match format {
        Format::Json => {
            let agents: Vec<Value> = lines.into_iter().map(|it| it.json).collect();
            let flaws = flaws_json(&survey.known.catalogue);
            document(&desk.out, &json!({ "agents": agents, "flaws": flaws }))
        }
        Format::Quiet => {
            let found = lines.iter().filter(|it| it.state == State::Found);
            found.into_iter().try_for_each(|it| desk.out.line(&it.id))
        }
        Format::Text => print(desk, &lines, &survey.known.catalogue),
    }
}

fn print(desk: &Desk, lines: &[Line], catalogue: &Catalog) -> Result<(), Failure> {
    let mut table = Table::new(&["AGENT", "STATE", "VERSION", "LOGIN", "STARTS", "REMARK"]);
    for line in lines {
        table.row(vec![
            Cell::styled(line.id.clone(), NAME),
            line.state.cell(),
            Cell::new(line.version.clone()),
            Cell::new(line.login.clone()),
            Cell::new(line.starts.clone()),
            Cell::new(line.remark.clone()),
        ]);
    }
    for flaw in catalogue.errors() {
        let name = Path::new(&flaw.file).file_stem().unwrap_or_default().to_string_lossy();
        let mut cells = vec![Cell::styled(name, NAME), Cell::styled("wrong", WARNING)];
        cells.extend(["", "", ""].map(Cell::new));
        cells.push(Cell::new(flaw.to_string()));
        table.row(cells);
    }
    table.print(&desk.out)?;
    let found = lines.iter().filter(|it| it.state == State::Found).count();
    let unasked = lines.iter().any(|it| it.json["probed"] == false && it.state == State::Found);
    let ask = if unasked { "`--probe` asks for version, login and models; " } else { "" };
    let of = count(lines.len(), "agent");
    desk.out.note(&format!("{found} of {of} found; {ask}`jackfield agents show NAME` says more"));
    Ok(())
}

fn lines(survey: &Survey) -> Vec<Line> {
    let configured = survey.settings.agents.iter();
    let commands = configured.filter_map(|(name, it)| Some((name, it.command.as_ref()?)));
    let commands: Vec<Line> =
        commands.map(|(name, command)| of_command(survey, name, command)).collect();
    let taken = |spec: &&AgentSpec| commands.iter().all(|it| it.id != spec.id);
    let specs: Vec<Line> =
        survey.known.catalogue.iter().filter(taken).map(|it| of_spec(survey, it)).collect();
    commands.into_iter().chain(specs).collect()
}

/// An agent that config.toml starts.
fn of_command(survey: &Survey, name: &str, command: &[String]) -> Line {
    let program = command.first().cloned().unwrap_or_default();
    let found = find_program(std::slice::from_ref(&program), None, &survey.known.locations).ok();
    let state = if found.is_some() { State::Found } else { State::Missing };
    let remark = match found {
        Some(_) => String::new(),
        None => format!("`{program}` of [agents.{name}] in config.toml was not found"),
    };
    let json = json!({
        "id": name, "name": name, "state": state.shown(), "program": path_json(found.as_ref()),
        "version": null, "login": "unknown", "starts": { "speaks": "command", "command": command },
        "probed": true, "diagnostics": [],
    });
    let (version, login, starts) = (String::new(), String::new(), command.join(" "));
    Line { id: name.to_owned(), state, version, login, starts, remark, json }
}

fn of_spec(survey: &Survey, spec: &AgentSpec) -> Line {
    let standing = survey.known.status(spec);
    let state = match (standing.chosen, standing.is_usable()) {
        (None, _) => State::Missing,
        (Some(_), false) => State::Broken,
        (Some(_), true) => State::Found,
    };
    let known = standing.is_probed || standing.login_variable.is_some();
    Line {
        id: spec.id.clone(),
        state,
        version: standing.version.clone().unwrap_or_default(),
        login: if known && standing.chosen.is_some() {
            standing.login.name().to_owned()
        } else {
            String::new()
        },
        starts: starts(spec, &standing).map(|it| it.join(" ")).unwrap_or_default(),
        remark: remark(spec, &standing),
        json: to_json(spec, &standing, state),
    }
}

/// The command that would start it, as people know it.
pub(super) fn starts(spec: &AgentSpec, standing: &AgentStatus) -> Option<Vec<String>> {
    let variant = &spec.launch[standing.chosen?];
    if !variant.is_native_acp() {
        return Some(["jackfield", "adapt", &spec.id].map(str::to_owned).into());
    }
    let found = standing.variants[standing.chosen?].as_ref().ok()?;
    let name = found.path.file_name().map(|it| it.to_string_lossy().into_owned());
    Some(name.into_iter().chain(variant.args.iter().cloned()).collect())
}

/// The worst that is known, or how to get it.
fn remark(spec: &AgentSpec, standing: &AgentStatus) -> String {
    let worst = |severity| standing.diagnostics.iter().find(|it| it.severity == severity);
    let Some(worst) =
        worst(DiagnosticSeverity::Error).or_else(|| worst(DiagnosticSeverity::Warning))
    else {
        return String::new();
    };
    match (worst.reason, &spec.install, &spec.docs) {
        (DiagnosticReason::NotOnPath, Some(way), _)
        | (DiagnosticReason::NotOnPath, None, Some(way)) => way.clone(),
        (DiagnosticReason::NotOnPath, None, None) => worst.fix.clone(),
        _ => worst.message.clone(),
    }
}

fn to_json(spec: &AgentSpec, standing: &AgentStatus, state: State) -> Value {
    let variant = standing.chosen.map(|it| &spec.launch[it]);
    let speaks = |acp| if acp { "acp" } else { "adapter" };
    let starts = variant.map(|it| {
        json!({
            "speaks": speaks(it.is_native_acp()), "dialect": it.dialect,
            "command": starts(spec, standing),
        })
    });
    json!({
        "id": spec.id, "name": spec.name, "state": state.shown(),
        "program": path_json(standing.program.as_ref()),
        "version": standing.version, "login": standing.login.name(), "starts": starts,
        "models": { "source": standing.models.source.name(), "count": standing.models.models.len() },
        "install": spec.install, "probed": standing.is_probed,
        "diagnostics": diagnostics_json(&standing.diagnostics),
    })
}

pub(super) fn path_json(found: Option<&FoundProgram>) -> Value {
    found.map_or(Value::Null, |it| json!({ "path": it.path, "via": it.origin.name() }))
}

fn flaws_json(catalogue: &Catalog) -> Vec<Value> {
    let one = |it: &jackfield_catalog::AgentFileError| json!({ "file": it.file, "line": it.error.line, "reason": it.error.reason });
    catalogue.errors().iter().map(one).collect()
}

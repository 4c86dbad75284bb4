//! `jackfield policy check`: the rules of a file as they are understood, or what is wrong with it.

use crate::{
    app::Desk,
    env,
    exit::Exit,
    out::{Cell, DIM, Format, NAME, Table, count, document, paint},
    report::Failure,
};
use clap::Args;
use jackfield_daemon::rulebook::PROJECT_FILE;
use jackfield_policy::{Policy, PolicyError, parse_policy, parse_project_policy};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// List the rules of a file as they are understood, or everything that is wrong with it
///
/// Nothing is run and no daemon is asked. A file with a flaw ends with exit code 2.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield policy check
  $ jackfield policy check .jackfield.toml
  $ jackfield policy check policy.toml --format json | jq '.rules[] | select(.do == \"deny\")'")]
pub(super) struct Check {
    /// The file; policy.toml beside config.toml if it is left out
    file: Option<PathBuf>,

    /// How to print the rules; `quiet` prints nothing if all is well
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

impl Check {
    pub(super) fn run(&self, desk: &Desk) -> Result<(), Failure> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => desk.dial.paths().policy_file(),
        };
        let text = fs::read_to_string(&file).map_err(|source| Failure::Local {
            what: format!("cannot read `{}`", file.display()),
            source: Box::new(source),
            exit: Exit::Usage,
            hint: "give the path of a policy.toml or a .jackfield.toml".to_owned(),
        })?;
        let is_project = file.file_name().is_some_and(|it| it == PROJECT_FILE);
        let read = if is_project { parse_project_policy } else { parse_policy };
        let parsed = read(&text, &file.display().to_string());
        match self.format {
            Format::Json => document(&desk.out, &to_json(&file, &parsed))?,
            Format::Text => to_text(desk, &parsed)?,
            Format::Quiet => {}
        }
        match parsed {
            Ok(_) => Ok(()),
            Err(flaws) => Err(flawed(&file, &flaws)),
        }
    }
}

fn to_text(desk: &Desk, parsed: &Result<Policy, Vec<PolicyError>>) -> Result<(), Failure> {
    let Ok(policy) = parsed else { return Ok(()) };
    if policy.rules.is_empty() {
        desk.out.note(&paint(DIM, "no rules: every ask goes to a person"));
    } else {
        let mut table = Table::new(&["LINE", "NAME", "RULE"]);
        for rule in &policy.rules {
            let line = rule.line.map(|it| it.to_string()).unwrap_or_default();
            let name = rule.name.clone().unwrap_or_else(|| "-".to_owned());
            let cells = [Cell::new(line), Cell::styled(name, NAME), Cell::new(rule.to_string())];
            table.row(cells.to_vec());
        }
        table.print(&desk.out)?;
    }
    if policy.reseed == Some(false) {
        desk.out.note(&paint(DIM, "a lost conversation is not begun anew"));
    }
    Ok(())
}

fn to_json(file: &Path, parsed: &Result<Policy, Vec<PolicyError>>) -> Value {
    let (policy, flaws) = match parsed {
        Ok(policy) => (Some(policy), &[][..]),
        Err(flaws) => (None, flaws.as_slice()),
    };
    let rules = policy.into_iter().flat_map(|it| &it.rules).map(|rule| {
        let mut value = json!(rule);
        value["line"] = json!(rule.line);
        value
    });
    let flaws = flaws.iter().map(|it| json!({ "line": it.line, "reason": it.reason }));
    json!({
        "file": file.display().to_string(),
        "reseed": policy.and_then(|it| it.reseed),
        "rules": rules.collect::<Vec<_>>(),
        "flaws": flaws.collect::<Vec<_>>(),
    })
}

fn flawed(file: &Path, flaws: &[PolicyError]) -> Failure {
    let told: Vec<String> = flaws.iter().map(ToString::to_string).collect();
    Failure::Local {
        what: format!("`{}` has {}", file.display(), count(flaws.len(), "flaw")),
        source: told.join("\n").into(),
        exit: Exit::Usage,
        hint: "correct these lines: until then no rule of the file holds".to_owned(),
    }
}

//! `jackfield trust`: a project's own rules count only when somebody has looked at them.

use crate::{
    app::Desk,
    env,
    exit::Exit,
    out::{DIM, Format, NAME, document, paint},
    report::Failure,
};
use clap::Args;
use jackfield_daemon::rulebook::{self, PROJECT_FILE, RulesError};
use serde_json::json;
use std::{fs, path::PathBuf};

/// Let the rules in a project's .jackfield.toml count, as they stand there now
///
/// A project comes from somewhere else, and its rules could allow anything. They mean nothing until
/// you have trusted them, and when the file changes, the ones you trusted stay until you trust it
/// again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield trust
  $ jackfield trust ~/work/website
  $ jackfield trust --revoke
  $ jackfield trust --list")]
pub(crate) struct Trust {
    /// The folder of the project; this one if it is left out
    project: Option<PathBuf>,

    /// Trust it no longer
    #[arg(long, env = env::REVOKE, hide_env_values = true, value_parser = env::flag())]
    revoke: bool,

    /// List the projects that are trusted
    #[arg(long, env = env::LIST, hide_env_values = true, value_parser = env::flag(), conflicts_with = "revoke")]
    list: bool,

    /// How to print the list
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: Format,
}

impl Trust {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let paths = desk.dial.paths();
        if self.list {
            return self.print(desk);
        }
        desk.dial.require_operator("trust")?;
        let named = self.project.clone().unwrap_or_else(|| PathBuf::from("."));
        let project = fs::canonicalize(&named).map_err(|source| Failure::Local {
            what: format!("cannot use the folder `{}`", named.display()),
            source: Box::new(source),
            exit: Exit::Usage,
            hint: "give the folder of a project".to_owned(),
        })?;
        if self.revoke {
            let was = rulebook::distrust(paths, &project).map_err(failure)?;
            let word = if was { "no longer trusted" } else { "was not trusted" };
            desk.out.note(&format!("{} {word}", project.display()));
            return Ok(());
        }
        let policy = rulebook::trust(paths, &project).map_err(failure)?;
        desk.out.note(&format!("{} is trusted with these rules:", project.display()));
        policy.rules.iter().try_for_each(|it| desk.out.line(&format!("  {it}")))
    }

    fn print(&self, desk: &Desk) -> Result<(), Failure> {
        let trusted = rulebook::trusted(desk.dial.paths()).map_err(failure)?;
        let changed = |project: &PathBuf, text: &String| {
            fs::read_to_string(project.join(PROJECT_FILE)).map_or(true, |it| it != *text)
        };
        let rows: Vec<_> = trusted.iter().map(|(it, text)| (it, changed(it, text))).collect();
        match self.format {
            Format::Json => {
                let row = |it: &(&PathBuf, bool)| json!({ "project": it.0, "changed": it.1 });
                document(&desk.out, &json!({ "trusted": rows.iter().map(row).collect::<Vec<_>>() }))
            }
            Format::Text if rows.is_empty() => {
                desk.out.note("no project is trusted");
                Ok(())
            }
            Format::Text | Format::Quiet => rows.iter().try_for_each(|(project, changed)| {
                let path = paint(NAME, project.display().to_string());
                let note = "  (its file has changed since; `jackfield trust` takes the new one)";
                let note = if *changed { paint(DIM, note.to_owned()) } else { String::new() };
                desk.out.line(&format!("{path}{note}"))
            }),
        }
    }
}

fn failure(error: RulesError) -> Failure {
    let (exit, hint) = match &error {
        RulesError::Unreadable { .. } => {
            (Exit::Usage, format!("rules of a project stand in `{PROJECT_FILE}` in its folder"))
        }
        RulesError::Flawed { .. } => (
            Exit::Usage,
            format!("`jackfield policy check {PROJECT_FILE}` shows each line that is wrong"),
        ),
        RulesError::Unwritable { .. } => (Exit::Failed, String::new()),
    };
    let what = "the project is not trusted".to_owned();
    Failure::Local { what, source: Box::new(error), exit, hint }
}

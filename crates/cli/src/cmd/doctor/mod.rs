//! `jackfield doctor`: checks the installation and shows how to fix problems.
//!
//! Each check is in the file of its group, where a function reads the system and another one judges what was read.

mod agents;
mod check_context;
mod checks;
mod clock;
mod config;
mod daemon;
mod disk;
mod finding;
mod folders;
mod journal;
mod limits;
mod login_session;
mod node;
mod report;
mod sandbox;
mod search_path;
mod terminal;
mod tls;
mod wsl;

use crate::{
    context::CommandContext,
    env,
    out::{DIM, OutputFormat, paint, print_json_document},
    report::CommandError,
};
use check_context::CheckContext;
use checks::{AGENTS, CHECKS, RunCheck, check_names};
use clap::{Args, builder::PossibleValuesParser};
use finding::{CheckVerdict, DoctorFinding, ModeRepair};
use report::format_finding;
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt as _};

/// How often `--fix` changes a mode for one check.
const REPAIRS_MAX: usize = 8;

/// Check this installation and show how to fix problems
///
/// Each check prints `ok`, `warning` or `problem`, and how to fix what it found. The check `agents` starts the installed
/// agents, which takes up to 20 seconds. The exit code is 1 if there is a problem.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield doctor
  $ jackfield doctor state runtime token --fix
  $ jackfield doctor --format json | jq '.checks[] | select(.ok | not)'")]
pub(crate) struct DoctorCommand {
    /// Only these checks [default: all]
    #[arg(value_name = "CHECK", value_parser = PossibleValuesParser::new(check_names()))]
    checks: Vec<String>,

    /// Correct the modes of files and folders of Jackfield
    #[arg(long, env = env::FIX, hide_env_values = true, value_parser = env::flag_parser())]
    fix: bool,

    /// How to print the checks; `quiet` prints problems only
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl DoctorCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let mut checks = CheckContext::new(context);
        let is_chosen =
            |name: &str| self.checks.is_empty() || self.checks.iter().any(|it| it == name);
        let (mut documents, mut problems) = (Vec::new(), 0);
        for (name, run) in CHECKS.iter().filter(|it| is_chosen(it.0)) {
            for finding in self.run_check(name, *run, &mut checks)? {
                problems += usize::from(finding.verdict == CheckVerdict::Problem);
                self.print_finding(context, name, &finding)?;
                documents.push(finding.to_json(name));
            }
        }
        if self.format == OutputFormat::Json {
            print_json_document(&context.output, &json!({ "checks": Value::Array(documents) }))?;
        }
        if problems == 0 { Ok(()) } else { Err(CommandError::ChecksFailed { problems }) }
    }

    /// Runs a check, and again after `--fix` has changed something.
    fn run_check(
        &self,
        name: &str,
        run: RunCheck,
        checks: &mut CheckContext<'_>,
    ) -> Result<Vec<DoctorFinding>, CommandError> {
        if name == AGENTS {
            checks.probe_agents()?;
        }
        let mut findings = run(checks);
        // A check names one file at a time. Some file systems have no modes.
        for _ in 0..REPAIRS_MAX {
            let repair = findings.iter().find_map(|it| it.repair.as_ref());
            let Some(repair) = repair.filter(|_| self.fix) else { break };
            change_mode(checks.command, repair)?;
            findings = run(checks);
        }
        Ok(findings)
    }

    fn print_finding(
        &self,
        context: &CommandContext,
        name: &str,
        finding: &DoctorFinding,
    ) -> Result<(), CommandError> {
        let is_shown = match self.format {
            OutputFormat::Text => true,
            OutputFormat::Quiet => finding.verdict == CheckVerdict::Problem,
            OutputFormat::Json => false,
        };
        if !is_shown {
            return Ok(());
        }
        let name_width = check_names().map(str::len).max().unwrap_or(0);
        let lines = format_finding(name, finding, name_width, context.output.width());
        lines.iter().try_for_each(|it| context.output.print_line(it))
    }
}

/// Changes the mode of a file that the check has found to be ours.
fn change_mode(context: &CommandContext, repair: &ModeRepair) -> Result<(), CommandError> {
    let ModeRepair { path, mode } = repair;
    fs::set_permissions(path, fs::Permissions::from_mode(*mode)).map_err(|source| {
        CommandError::local(format!("cannot change the mode of `{}`", path.display()), source)
    })?;
    let done = format!("changed the mode of {} to {mode:o}", path.display());
    context.output.print_note(&paint(DIM, done));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// docs/doctor.md has a row for each check, in the same order.
    #[test]
    fn documentation_lists_every_check() {
        let page = include_str!("../../../../../docs/doctor.md");
        let table = page.split("\n## ").find(|it| it.starts_with("Checks\n")).unwrap();
        let rows = table.lines().filter_map(|it| it.strip_prefix("| `")?.split_once("` |"));
        let documented: Vec<&str> = rows.map(|it| it.0).collect();
        assert_eq!(documented, check_names().collect::<Vec<_>>());
    }

    #[test]
    fn names_are_unique() {
        assert_eq!(check_names().collect::<BTreeSet<_>>().len(), CHECKS.len());
    }
}

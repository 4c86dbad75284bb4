//! `jackfield policy check`: lists the rules of a file, or its errors.

use crate::{
    context::CommandContext,
    env,
    exit::CliExitCode,
    out::{DIM, NAME, OutputFormat, TableCell, TextTable, paint, print_json_document},
    plain_text::format_count,
    report::CommandError,
};
use clap::Args;
use jackfield_daemon::policy_store::PROJECT_FILE;
use jackfield_policy::{Policy, PolicyError, parse_policy, parse_project_policy};
use jackfield_sandbox::profile::ProfileSet;
use serde_json::{Value, json};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// List the rules of a file as they are parsed, or all errors in it
///
/// It does not use the daemon. The exit code is 2 if the file has errors.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield policy check
  $ jackfield policy check .jackfield.toml
  $ jackfield policy check policy.toml --format json | jq '.rules[] | select(.do == \"deny\")'")]
pub(super) struct CheckPolicyCommand {
    /// The file [default: policy.toml next to config.toml]
    file: Option<PathBuf>,

    /// How to print the rules; `quiet` prints only errors
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl CheckPolicyCommand {
    pub(super) fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => context.daemon.paths().policy_file(),
        };
        let text =
            fs::read_to_string(&file).map_err(|source| self.unreadable_error(&file, source))?;
        let is_project = file.file_name().is_some_and(|it| it == PROJECT_FILE);
        let parse = if is_project { parse_project_policy } else { parse_policy };
        let parsed = parse(&text, &file.display().to_string());
        let parsed = if is_project { parsed } else { check_profiles(&text, parsed) };
        match self.format {
            OutputFormat::Json => print_json_document(&context.output, &to_json(&file, &parsed))?,
            OutputFormat::Text => print_rules(context, &parsed)?,
            OutputFormat::Quiet => {}
        }
        match parsed {
            Ok(_) => Ok(()),
            Err(errors) => Err(invalid_file_error(&file, &errors)),
        }
    }

    fn unreadable_error(&self, file: &Path, source: io::Error) -> CommandError {
        let shown = file.display();
        if self.file.is_none() && source.kind() == io::ErrorKind::NotFound {
            return CommandError::usage(
                format!("no file given, and you have no policy file: `{shown}` does not exist"),
                "name a file: `jackfield policy check FILE`, for example .jackfield.toml",
            );
        }
        CommandError::Local {
            what: format!("cannot read `{shown}`"),
            source: Box::new(source),
            exit: CliExitCode::Usage,
            hint: "pass the path of a policy.toml or a .jackfield.toml".to_owned(),
        }
    }
}

/// Adds the errors of the sandbox profiles, which are in the same file.
fn check_profiles(
    text: &str,
    parsed: Result<Policy, Vec<PolicyError>>,
) -> Result<Policy, Vec<PolicyError>> {
    let Err(errors) = ProfileSet::parse(text) else { return parsed };
    let mut all = parsed.err().unwrap_or_default();
    let known: Vec<usize> = all.iter().map(|it| it.line).collect();
    let errors = errors.into_iter().filter(|it| !known.contains(&it.line));
    all.extend(errors.map(|it| PolicyError { line: it.line, reason: it.reason }));
    all.sort_by_key(|it| it.line);
    Err(all)
}

fn print_rules(
    context: &CommandContext,
    parsed: &Result<Policy, Vec<PolicyError>>,
) -> Result<(), CommandError> {
    let Ok(policy) = parsed else { return Ok(()) };
    if policy.rules.is_empty() {
        context.output.print_note(&paint(DIM, "no rules: you are asked about every request"));
    } else {
        let mut table = TextTable::new(&["LINE", "NAME", "RULE"]);
        for rule in &policy.rules {
            let line = rule.line.map(|it| it.to_string()).unwrap_or_default();
            let name = rule.name.clone().unwrap_or_else(|| "-".to_owned());
            let cells = [
                TableCell::new(line),
                TableCell::styled(name, NAME),
                TableCell::new(rule.to_string()),
            ];
            table.add_row(cells.to_vec());
        }
        table.print(&context.output)?;
    }
    if policy.reseed == Some(false) {
        context
            .output
            .print_note(&paint(DIM, "lost conversations are not restarted from a summary"));
    }
    Ok(())
}

fn to_json(file: &Path, parsed: &Result<Policy, Vec<PolicyError>>) -> Value {
    let (policy, errors) = match parsed {
        Ok(policy) => (Some(policy), &[][..]),
        Err(errors) => (None, errors.as_slice()),
    };
    let rules = policy.into_iter().flat_map(|it| &it.rules).map(|rule| {
        let mut value = json!(rule);
        value["line"] = json!(rule.line);
        value
    });
    let errors = errors.iter().map(|it| json!({ "line": it.line, "reason": it.reason }));
    json!({
        "file": file.display().to_string(),
        "reseed": policy.and_then(|it| it.reseed),
        "rules": rules.collect::<Vec<_>>(),
        "flaws": errors.collect::<Vec<_>>(),
    })
}

fn invalid_file_error(file: &Path, errors: &[PolicyError]) -> CommandError {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    CommandError::Local {
        what: format!("`{}` has {}", file.display(), format_count(errors.len(), "error")),
        source: lines.join("\n").into(),
        exit: CliExitCode::Usage,
        hint: "correct these lines; until then none of its rules apply".to_owned(),
    }
}

//! `jackfield trust`: trusts the policy rules of a project.

use crate::{
    context::CommandContext,
    env,
    exit::CliExitCode,
    out::{DIM, NAME, OutputFormat, paint, print_json_document},
    report::CommandError,
};
use clap::Args;
use jackfield_daemon::policy_store::{self, PROJECT_FILE, PolicyStoreError};
use serde_json::json;
use std::{fs, path::PathBuf};

/// Trust the rules in a project's .jackfield.toml as they are now
///
/// The rules of a project that you did not write could allow anything. They have no effect until you
/// trust them. When the file changes, the trusted rules stay in effect until you trust it again.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield trust
  $ jackfield trust ~/work/website
  $ jackfield trust --revoke
  $ jackfield trust --list")]
pub(crate) struct TrustCommand {
    /// The folder of the project [default: the current one]
    project: Option<PathBuf>,

    /// Stop trusting the project
    #[arg(long, env = env::REVOKE, hide_env_values = true, value_parser = env::flag_parser())]
    revoke: bool,

    /// List the trusted projects
    #[arg(long, env = env::LIST, hide_env_values = true, value_parser = env::flag_parser(), conflicts_with = "revoke")]
    list: bool,

    /// How to print the list
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

impl TrustCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let paths = context.daemon.paths();
        if self.list {
            return self.print_trusted(context);
        }
        context.daemon.require_operator("trust")?;
        let named = self.project.clone().unwrap_or_else(|| PathBuf::from("."));
        let project = fs::canonicalize(&named).map_err(|source| CommandError::Local {
            what: format!("cannot use the folder `{}`", named.display()),
            source: Box::new(source),
            exit: CliExitCode::Usage,
            hint: "pass the folder of a project".to_owned(),
        })?;
        if self.revoke {
            let was_trusted = policy_store::distrust(paths, &project).map_err(trust_error)?;
            let state = if was_trusted { "is no longer trusted" } else { "was not trusted" };
            if self.format == OutputFormat::Json {
                let members = json!({ "project": project, "revoked": was_trusted });
                return print_json_document(&context.output, &members);
            }
            context.output.print_note(&format!("{} {state}", project.display()));
            return Ok(());
        }
        let policy = policy_store::trust(paths, &project).map_err(trust_error)?;
        if self.format == OutputFormat::Json {
            let rules: Vec<String> = policy.rules.iter().map(ToString::to_string).collect();
            let members = json!({ "project": project, "rules": rules, "sandbox": policy.sandbox });
            return print_json_document(&context.output, &members);
        }
        if let Some(profile) = &policy.sandbox {
            let note =
                format!("sessions in {} use the sandbox profile `{profile}`", project.display());
            context.output.print_note(&note);
        }
        let rules = if policy.rules.is_empty() { "no rules" } else { "these rules:" };
        context.output.print_note(&format!("{} is trusted with {rules}", project.display()));
        policy.rules.iter().try_for_each(|it| context.output.print_line(&format!("  {it}")))
    }

    fn print_trusted(&self, context: &CommandContext) -> Result<(), CommandError> {
        let trusted = policy_store::trusted(context.daemon.paths()).map_err(trust_error)?;
        let changed = |project: &PathBuf, text: &String| {
            fs::read_to_string(project.join(PROJECT_FILE)).map_or(true, |it| it != *text)
        };
        let rows: Vec<_> = trusted.iter().map(|(it, text)| (it, changed(it, text))).collect();
        match self.format {
            OutputFormat::Json => {
                let row = |it: &(&PathBuf, bool)| json!({ "project": it.0, "changed": it.1 });
                print_json_document(
                    &context.output,
                    &json!({ "trusted": rows.iter().map(row).collect::<Vec<_>>() }),
                )
            }
            OutputFormat::Text if rows.is_empty() => {
                context.output.print_note("no project is trusted");
                Ok(())
            }
            OutputFormat::Text | OutputFormat::Quiet => {
                rows.iter().try_for_each(|(project, changed)| {
                    let path = paint(NAME, project.display().to_string());
                    let note =
                        "  (the file has changed; `jackfield trust` accepts the new version)";
                    let note = if *changed { paint(DIM, note.to_owned()) } else { String::new() };
                    context.output.print_line(&format!("{path}{note}"))
                })
            }
        }
    }
}

fn trust_error(error: PolicyStoreError) -> CommandError {
    let (exit, hint) = match &error {
        PolicyStoreError::Unreadable { .. } => (
            CliExitCode::Usage,
            format!("the rules of a project are in `{PROJECT_FILE}` in its folder"),
        ),
        PolicyStoreError::Invalid { .. } => (
            CliExitCode::Usage,
            format!("`jackfield policy check {PROJECT_FILE}` shows all errors"),
        ),
        PolicyStoreError::Unwritable { .. } => (CliExitCode::Failed, String::new()),
    };
    let what = "cannot change the trust of the project".to_owned();
    CommandError::Local { what, source: Box::new(error), exit, hint }
}

//! The arguments of `sandbox-run`, the hidden subcommand that starts an agent in a sandbox:
//! `sandbox-run --plan JSON -- PROGRAM [ARG]...`.

use crate::{
    os::{self, RunError},
    plan::SandboxPlan,
};
use std::{error::Error, ffi::OsString, io::Write as _, process::ExitCode};

/// The hidden subcommand of this program.
pub const RUN_SUBCOMMAND: &str = "sandbox-run";

/// The exit code if the sandbox could not be started, as of `docker run` and `env`.
const SANDBOX_FAILED: u8 = 125;

#[derive(Debug, thiserror::Error)]
enum SubcommandError {
    #[error("usage: {RUN_SUBCOMMAND} --plan JSON -- PROGRAM [ARG]...")]
    Usage,
    #[error("invalid plan of a sandbox")]
    Plan(#[source] serde_json::Error),
    #[error(transparent)]
    Run(#[from] RunError),
}

/// The arguments that start `argv` under a plan, without the program itself.
pub fn run_args(plan: &SandboxPlan) -> Vec<String> {
    let plan = serde_json::to_string(plan).expect("a plan has texts and numbers only");
    vec![RUN_SUBCOMMAND.to_owned(), "--plan".to_owned(), plan, "--".to_owned()]
}

/// Runs the subcommand with its arguments.
pub fn run_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    run(args.into_iter()).unwrap_or_else(|error| {
        // Without stderr there is no place for a message.
        let _ = writeln!(std::io::stderr(), "jackfield: {error}");
        let mut cause = error.source();
        while let Some(error) = cause {
            let _ = writeln!(std::io::stderr(), "  caused by: {error}");
            cause = error.source();
        }
        ExitCode::from(SANDBOX_FAILED)
    })
}

fn run(mut args: impl Iterator<Item = OsString>) -> Result<ExitCode, SubcommandError> {
    let is_plan = args.next().is_some_and(|it| it == "--plan");
    let plan = args.next().filter(|_| is_plan).ok_or(SubcommandError::Usage)?;
    let plan = plan.into_string().map_err(|_| SubcommandError::Usage)?;
    let plan: SandboxPlan = serde_json::from_str(&plan).map_err(SubcommandError::Plan)?;
    let is_separated = args.next().is_some_and(|it| it == "--");
    let argv: Vec<OsString> = args.collect();
    if !is_separated || argv.is_empty() {
        return Err(SubcommandError::Usage);
    }
    Ok(os::run(&plan, &argv)?)
}

//! `jackfield sandbox check`: tries to leave the sandbox of a profile.

use super::{check_json, check_text};
use crate::{
    context::CommandContext,
    env,
    exit::CliExitCode,
    hub::load_settings,
    out::{OutputFormat, print_json_document},
    plain_text::format_count,
    report::CommandError,
};
use clap::{Args, ValueEnum};
use jackfield_daemon::{
    CheckScope, CheckedLayer, LayerState, ProfileCheck, ProfileCheckError, check_profile,
};
use jackfield_sandbox::{plan::EnforcementLayer, probes::ProbeVerdict};

const DEFAULT_PROFILE: &str = "workspace";
/// The profile without a sandbox, which is the default of agents.
const OPEN_PROFILE: &str = "open";

/// Try to leave the sandbox of a profile, and show what was refused by which part of it
///
/// A program in the sandbox tries to read planted secrets, to change files outside, to reach other processes, sockets
/// and networks, and to use the kernel. It makes the same attempts without the sandbox: what the machine refuses anyway
/// proves nothing. Nothing of yours is read or changed, and nothing is sent to another machine.
///
/// The exit code is 1 if something has another result than the profile promises.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sandbox check
  $ jackfield sandbox check read-only --layer landlock
  $ jackfield sandbox check --format json | jq '.layers[].probes[] | select(.verdict == \"not-as-promised\")'")]
pub(super) struct CheckSandboxCommand {
    /// The profile [default: the configured one, or `workspace` if that is `open`]
    profile: Option<String>,

    /// Only this layer [default: all that work here]
    #[arg(long, env = env::LAYER, hide_env_values = true, value_enum)]
    layer: Option<LayerChoice>,

    /// How to print the results; `quiet` prints only those that were not promised
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

/// A layer that has probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LayerChoice {
    Bubblewrap,
    Landlock,
}

impl From<LayerChoice> for EnforcementLayer {
    fn from(choice: LayerChoice) -> EnforcementLayer {
        match choice {
            LayerChoice::Bubblewrap => EnforcementLayer::Bubblewrap,
            LayerChoice::Landlock => EnforcementLayer::Landlock,
        }
    }
}

impl CheckSandboxCommand {
    pub(super) fn run(&self, context: &CommandContext) -> Result<(), CommandError> {
        let paths = context.daemon.paths();
        let profile = match self.profile.clone() {
            Some(profile) => Some(profile),
            None => load_settings(paths)?.sandbox.filter(|it| it != OPEN_PROFILE),
        };
        let profile = profile.unwrap_or_else(|| DEFAULT_PROFILE.to_owned());
        let program = std::env::current_exe()
            .map_err(|it| CommandError::local("cannot find this program", it))?;
        let scope = CheckScope { layer: self.layer.map(Into::into), is_short: false };
        let check = check_profile(paths, &program, &profile, scope).map_err(to_command_error)?;
        let output = &context.output;
        match self.format {
            OutputFormat::Json => print_json_document(output, &check_json::format(&check)),
            OutputFormat::Text => check_text::print(output, &check, |_| true),
            OutputFormat::Quiet => {
                check_text::print(output, &check, |it| it.verdict == ProbeVerdict::NotAsPromised)
            }
        }?;
        judge(&check)
    }
}

fn to_command_error(error: ProfileCheckError) -> CommandError {
    match error {
        ProfileCheckError::UnknownProfile { ref known, .. } => {
            let hint = format!("profiles are {}", known.join(", "));
            CommandError::usage(error.to_string(), hint)
        }
        ProfileCheckError::Profiles(message) => {
            CommandError::usage(message, "`jackfield policy check` shows all errors")
        }
        ProfileCheckError::Control(_) => {
            CommandError::local("the sandbox cannot be checked", error)
        }
    }
}

/// Fails if a promise was broken, or if nothing could be checked.
fn judge(check: &ProfileCheck) -> Result<(), CommandError> {
    let broken: usize = check.layers.iter().map(count_broken).sum();
    let failed = |what: String, hint: &str| {
        Err(CommandError::Failed { what, exit: CliExitCode::Failed, hint: hint.to_owned() })
    };
    let profile = &check.profile;
    if 0 < broken {
        let what =
            format!("{} not as profile `{profile}` promises", format_count(broken, "result"));
        return failed(
            what,
            "do not rely on this layer here, and report it (`jackfield bugreport`)",
        );
    }
    let is_checked = |it: &CheckedLayer| matches!(it.state, LayerState::Checked { .. });
    if !check.layers.iter().any(is_checked) {
        let what = format!("profile `{profile}` cannot be enforced on this machine");
        return failed(what, "the reason and the way out are above");
    }
    Ok(())
}

/// A sandbox that could not be started is no result, so it breaks the promise.
fn count_broken(layer: &CheckedLayer) -> usize {
    match &layer.state {
        LayerState::Checked { check, .. } => check.count(ProbeVerdict::NotAsPromised),
        LayerState::Failed(_) => 1,
        LayerState::Unavailable(_) => 0,
    }
}

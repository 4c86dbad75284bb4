//! Problems of an agent on this machine, with their causes and fixes.

use crate::find::{MissingProgram, MissingReason};
use jackfield_catalog::{AgentSpec, InstallAdvice, LaunchVariant};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One problem of an agent on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentDiagnostic {
    pub reason: DiagnosticReason,
    pub severity: DiagnosticSeverity,
    /// What happened and why.
    pub message: String,
    /// How to fix it.
    pub fix: String,
}

/// Stable names that programs may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiagnosticReason {
    NotOnPath,
    NotExecutable,
    ShimBroken,
    ConfiguredBinInvalid,
    VersionProbeFailed,
    AuthMissing,
    AuthUnknown,
    ModelsFallback,
    LaunchVariantFailed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiagnosticSeverity {
    /// The agent cannot be used.
    Error,
    /// The agent may not work.
    Warning,
    /// The agent works, but something is unknown.
    Info,
}

/// The number of searched folders that a message lists.
const FOLDERS_MAX: usize = 24;

/// Describes why the program of an agent cannot be started.
pub fn describe_missing(spec: &AgentSpec, missing: &MissingProgram) -> AgentDiagnostic {
    let bins: Vec<String> = missing.bins.iter().map(|it| format!("`{it}`")).collect();
    let bins = bins.join(" or ");
    let (reason, message, fix) = match &missing.reason {
        MissingReason::NotFound => {
            let message = format!(
                "{bins} was not found on PATH or in the folders of version managers; searched {}",
                list_folders(&missing.searched)
            );
            (DiagnosticReason::NotOnPath, message, describe_install(spec))
        }
        MissingReason::NotExecutable(path) => {
            let message = format!("`{}` exists, but is not executable", path.display());
            (DiagnosticReason::NotExecutable, message, format!("chmod +x {}", path.display()))
        }
        MissingReason::Dangling(path) => {
            let message = format!("`{}` is a link to a file that does not exist", path.display());
            (DiagnosticReason::ShimBroken, message, describe_reinstall(spec))
        }
        MissingReason::BadVariable { name, value, reason } => {
            let message = format!("{name} is `{value}`, which cannot be started: {reason}");
            let fix = format!("set {name} to the full path of the program, or unset it");
            (DiagnosticReason::ConfiguredBinInvalid, message, fix)
        }
    };
    AgentDiagnostic { reason, severity: DiagnosticSeverity::Error, message, fix }
}

fn list_folders(searched: &[PathBuf]) -> String {
    let named: Vec<String> =
        searched.iter().take(FOLDERS_MAX).map(|it| it.display().to_string()).collect();
    let more = searched.len().saturating_sub(FOLDERS_MAX);
    match (named.is_empty(), more) {
        (true, _) => "nothing, because PATH is empty".to_owned(),
        (false, 0) => named.join(", "),
        (false, more) => format!("{} and {more} more", named.join(", ")),
    }
}

fn describe_install(spec: &AgentSpec) -> String {
    let variable = spec.bin_env.as_ref().map(|it| format!("set {it} to its full path"));
    let own = own_install_command(spec);
    let ways: Vec<String> = own.into_iter().chain(spec.install.clone()).chain(variable).collect();
    match (&spec.docs, ways.is_empty()) {
        (Some(docs), true) => format!("install it: {docs}"),
        (None, true) => "install it, or put its folder on PATH".to_owned(),
        (_, false) => ways.join(", or "),
    }
}

/// The command of Jackfield that installs the agent, if there is one.
fn own_install_command(spec: &AgentSpec) -> Option<String> {
    match spec.install_advice() {
        InstallAdvice::Command(command) => Some(command),
        InstallAdvice::Vendor { .. } | InstallAdvice::Included => None,
    }
}

fn describe_reinstall(spec: &AgentSpec) -> String {
    let way = own_install_command(spec).or(spec.install.clone()).or(spec.docs.clone());
    way.map_or_else(|| "install it again".to_owned(), |it| format!("install it again: {it}"))
}

/// Why a program failed to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartProblem {
    /// Its interpreter or the target of a link does not exist.
    Broken,
    NotExecutable,
}

/// Describes a program that failed to start, by the system's error or the shell's exit code for it.
pub(super) fn describe_start_problem(
    spec: &AgentSpec,
    program: &Path,
    problem: StartProblem,
) -> AgentDiagnostic {
    let program = program.display();
    let (reason, message, fix) = if problem == StartProblem::Broken {
        let message =
            format!("`{program}` cannot start: its interpreter or link target does not exist");
        (DiagnosticReason::ShimBroken, message, describe_reinstall(spec))
    } else {
        let message = format!("`{program}` is not executable");
        (DiagnosticReason::NotExecutable, message, format!("chmod +x {program}"))
    };
    AgentDiagnostic { reason, severity: DiagnosticSeverity::Error, message, fix }
}

/// Describes a launch variant that does not work. `instead` is the one that is used.
pub(super) fn describe_failed_variant(
    spec: &AgentSpec,
    variant: &LaunchVariant,
    why: &str,
    instead: Option<&LaunchVariant>,
) -> AgentDiagnostic {
    let mode = if variant.is_native_acp() { "its ACP mode" } else { "it" };
    let message =
        format!("launch variant `{}` failed, so {mode} cannot be used: {why}", variant.name);
    let update = match own_install_command(spec).or(spec.install.clone()) {
        Some(install) => format!("update it: {install}"),
        None => "update it".to_owned(),
    };
    let (severity, fix) = match instead {
        Some(instead) => (
            DiagnosticSeverity::Warning,
            format!("{update}; launch variant `{}` is used until then", instead.name),
        ),
        None => (
            DiagnosticSeverity::Error,
            format!("{update}, or run it in a terminal: it may want a login or settings first"),
        ),
    };
    AgentDiagnostic { reason: DiagnosticReason::LaunchVariantFailed, severity, message, fix }
}

pub(super) fn describe_missing_version(command: &str, why: &str) -> AgentDiagnostic {
    let message = format!("`{command}` printed no version: {why}");
    let fix = format!("run `{command}` yourself to see more");
    AgentDiagnostic {
        reason: DiagnosticReason::VersionProbeFailed,
        severity: DiagnosticSeverity::Warning,
        message,
        fix,
    }
}

pub(super) fn describe_missing_login(spec: &AgentSpec) -> AgentDiagnostic {
    let program = spec.bins.first().map_or("", String::as_str);
    let message = format!("{} is not logged in", spec.name);
    let fix = match list_login_variables(spec) {
        Some(variables) => format!("log in with `{program}` itself, or set {variables}"),
        None => format!("log in with `{program}` itself"),
    };
    AgentDiagnostic {
        reason: DiagnosticReason::AuthMissing,
        severity: DiagnosticSeverity::Warning,
        message,
        fix,
    }
}

pub(super) fn describe_unknown_login(spec: &AgentSpec, why: &str) -> AgentDiagnostic {
    let message = format!("the login state of {} is unknown: {why}", spec.name);
    let fix = match list_login_variables(spec) {
        Some(variables) => format!("if it needs a login, log in with it, or set {variables}"),
        None => "if it needs a login, log in with it".to_owned(),
    };
    AgentDiagnostic {
        reason: DiagnosticReason::AuthUnknown,
        severity: DiagnosticSeverity::Info,
        message,
        fix,
    }
}

fn list_login_variables(spec: &AgentSpec) -> Option<String> {
    let names = &spec.auth.as_ref()?.env;
    (!names.is_empty()).then(|| names.join(" or "))
}

/// Describes why the list of models does not come from the program, and how to fix it.
pub(super) fn describe_fallback_models(
    spec: &AgentSpec,
    why: &str,
    fix: impl Into<String>,
) -> AgentDiagnostic {
    let what = match (spec.models.fallback.is_empty(), spec.models.custom) {
        (true, _) => "only `default` is offered",
        (false, true) => "a built-in list is shown; other ids work, too",
        (false, false) => "a built-in list is shown",
    };
    let message = format!("its models could not be queried, so {what}: {why}");
    let fix = fix.into();
    AgentDiagnostic {
        reason: DiagnosticReason::ModelsFallback,
        severity: DiagnosticSeverity::Info,
        message,
        fix,
    }
}

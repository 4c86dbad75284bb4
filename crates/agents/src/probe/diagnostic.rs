//! What keeps an agent from working, why, and the way out.

use crate::find::{Missing, Why};
use jackfield_catalogue::Spec;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// One thing to know about an agent on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    pub reason: Reason,
    pub severity: Severity,
    /// What happened and why.
    pub message: String,
    /// The way out.
    pub fix: String,
}

/// Stable names: programs read them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    NotOnPath,
    NotExecutable,
    ShimBroken,
    ConfiguredBinInvalid,
    VersionProbeFailed,
    AuthMissing,
    AuthUnknown,
    ModelsFallback,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It cannot be used.
    Error,
    /// It may not work.
    Warning,
    /// It works; something is not known.
    Info,
}

/// So many folders of a search are named.
const FOLDERS_MAX: usize = 24;

/// Why there is no program.
pub fn missing(spec: &Spec, missing: &Missing) -> Diagnostic {
    let bins: Vec<String> = missing.bins.iter().map(|it| format!("`{it}`")).collect();
    let bins = bins.join(" or ");
    let (reason, message, fix) = match &missing.why {
        Why::Nowhere => {
            let message = format!(
                "{bins} was not found on PATH nor where version managers put programs; searched {}",
                folders(&missing.searched)
            );
            (Reason::NotOnPath, message, install(spec))
        }
        Why::NotExecutable(path) => {
            let message = format!("`{}` is there, but may not be run", path.display());
            (Reason::NotExecutable, message, format!("chmod +x {}", path.display()))
        }
        Why::Dangling(path) => {
            let message = format!("`{}` is a link to a file that is gone", path.display());
            (Reason::ShimBroken, message, reinstall(spec))
        }
        Why::BadVariable { name, value, why } => {
            let message = format!("{name} is `{value}`, which cannot be started: {why}");
            let fix = format!("set {name} to the full path of the program, or unset it");
            (Reason::ConfiguredBinInvalid, message, fix)
        }
    };
    Diagnostic { reason, severity: Severity::Error, message, fix }
}

fn folders(searched: &[PathBuf]) -> String {
    let named: Vec<String> =
        searched.iter().take(FOLDERS_MAX).map(|it| it.display().to_string()).collect();
    let more = searched.len().saturating_sub(FOLDERS_MAX);
    match (named.is_empty(), more) {
        (true, _) => "nothing: PATH is empty".to_owned(),
        (false, 0) => named.join(", "),
        (false, more) => format!("{} and {more} more", named.join(", ")),
    }
}

fn install(spec: &Spec) -> String {
    let variable = spec.bin_env.as_ref().map(|it| format!("set {it} to its full path"));
    let ways: Vec<String> = spec.install.iter().cloned().chain(variable).collect();
    match (&spec.docs, ways.is_empty()) {
        (Some(docs), true) => format!("install it: {docs}"),
        (None, true) => "install it, or put its folder on PATH".to_owned(),
        (_, false) => ways.join(", or "),
    }
}

fn reinstall(spec: &Spec) -> String {
    let way = spec.install.as_ref().or(spec.docs.as_ref());
    way.map_or_else(|| "install it again".to_owned(), |it| format!("install it again: {it}"))
}

/// What a start of the program showed: the system's own error, or the shell's exit codes for it.
pub(super) fn unstartable(spec: &Spec, program: &Path, broken: bool) -> Diagnostic {
    let program = program.display();
    let (reason, message, fix) = if broken {
        let message =
            format!("`{program}` cannot start: its interpreter or what it leads to is missing");
        (Reason::ShimBroken, message, reinstall(spec))
    } else {
        let message = format!("`{program}` may not be run");
        (Reason::NotExecutable, message, format!("chmod +x {program}"))
    };
    Diagnostic { reason, severity: Severity::Error, message, fix }
}

pub(super) fn version_failed(command: &str, why: &str) -> Diagnostic {
    let message = format!("`{command}` told no version: {why}");
    let fix = format!("run `{command}` yourself: it may say more");
    Diagnostic { reason: Reason::VersionProbeFailed, severity: Severity::Warning, message, fix }
}

pub(super) fn no_login(spec: &Spec) -> Diagnostic {
    let program = spec.bins.first().map_or("", String::as_str);
    let message = format!("{} says that it has no login", spec.name);
    let fix = match variables(spec) {
        Some(variables) => format!("log in with `{program}` itself, or set {variables}"),
        None => format!("log in with `{program}` itself"),
    };
    Diagnostic { reason: Reason::AuthMissing, severity: Severity::Warning, message, fix }
}

pub(super) fn unknown_login(spec: &Spec, why: &str) -> Diagnostic {
    let message = format!("whether {} has a login is not known: {why}", spec.name);
    let fix = match variables(spec) {
        Some(variables) => format!("if it asks for one: log in with it, or set {variables}"),
        None => "if it asks for one: log in with it".to_owned(),
    };
    Diagnostic { reason: Reason::AuthUnknown, severity: Severity::Info, message, fix }
}

fn variables(spec: &Spec) -> Option<String> {
    let names = &spec.auth.as_ref()?.env;
    (!names.is_empty()).then(|| names.join(" or "))
}

/// Why the list of models is not the program's own, and what may help.
pub(super) fn fallback_models(spec: &Spec, why: &str, fix: impl Into<String>) -> Diagnostic {
    let what = match (spec.models.fallback.is_empty(), spec.models.custom) {
        (true, _) => "only `default` is offered",
        (false, true) => "a list of our own is shown; other ids work too",
        (false, false) => "a list of our own is shown",
    };
    let message = format!("its models could not be asked for, so {what}: {why}");
    let fix = fix.into();
    Diagnostic { reason: Reason::ModelsFallback, severity: Severity::Info, message, fix }
}

//! Why an agent cannot be installed, and what its user can do.

use crate::installed::StoreError;
use std::io;

/// Why an agent cannot be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error("Jackfield does not install `{agent}`: {reason}")]
    NotOffered { agent: String, reason: String, hint: String },

    #[error("`{version}` is not a version: use one such as `1.2.3`, or a tag such as `latest`")]
    InvalidVersion { version: String },

    #[error("the file of `{agent}` has the archive of version {offered}, not of {version}")]
    OtherVersion { agent: String, version: String, offered: String },

    #[error("`{tool}` was not found, and {agent} is a package that needs it")]
    MissingTool { tool: String, agent: String, hint: String },

    #[error("{tool} {actual} is too old: `{package}` needs {required}")]
    OldTool { tool: &'static str, actual: String, package: String, required: String, hint: String },

    #[error("`{command}` failed")]
    CommandFailed {
        command: String,
        #[source]
        failure: CommandFailure,
    },

    #[error("the registry's answer about `{package}` cannot be used: {reason}")]
    UnusableAnswer { package: String, reason: String },

    #[error("`{package}` was not installed as announced: expected {expected}, found {actual}")]
    NotAsAnnounced { package: String, expected: String, actual: String },

    #[error("the archive `{url}` cannot be used")]
    UnusableArchive {
        url: String,
        #[source]
        source: io::Error,
    },

    #[error("the packages of `{agent}` have no usable program `{bin}`: {reason}")]
    UnusableProgram { agent: String, bin: String, reason: String },

    #[error("{agent} {version} does not start: {reason}")]
    DoesNotStart { agent: String, version: String, reason: String },

    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How a package manager failed, and the last lines that it printed.
#[derive(Debug, thiserror::Error)]
#[error("{reason}{}", format_lines(.lines))]
pub struct CommandFailure {
    pub(super) reason: String,
    pub(super) lines: Vec<String>,
}

fn format_lines(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!(": {}", lines.join(" / ")) }
}

impl InstallError {
    /// What the user can do; empty if the message says it.
    pub fn hint(&self) -> String {
        let hint = match self {
            InstallError::NotOffered { hint, .. }
            | InstallError::MissingTool { hint, .. }
            | InstallError::OldTool { hint, .. } => hint,
            InstallError::CommandFailed { .. } => {
                "nothing was changed; check the network and the version, then try again"
            }
            InstallError::UnusableAnswer { .. } => {
                "nothing was changed; check the version and the registry that your package manager uses"
            }
            InstallError::NotAsAnnounced { .. } => {
                "nothing was changed; do not trust this registry until the difference is explained"
            }
            InstallError::OtherVersion { .. } => {
                "omit the version, or change the version, addresses and checksums in the agent's file"
            }
            InstallError::UnusableArchive { .. } => {
                "nothing was changed; do not install this archive by hand either"
            }
            InstallError::UnusableProgram { .. } | InstallError::DoesNotStart { .. } => {
                "nothing was changed; name an earlier version, as in `jackfield agents install NAME@1.2.3`"
            }
            InstallError::Store(StoreError::NotInstalled { .. }) => {
                "`jackfield agents` shows which agents are installed, and from where"
            }
            InstallError::Store(StoreError::NoPrevious { .. }) => {
                "name a version: `jackfield agents install NAME@1.2.3`"
            }
            InstallError::InvalidVersion { .. } | InstallError::Store(_) => "",
        };
        hint.to_owned()
    }
}

//! Runs package managers, with an environment that contains no keys of agents.

use super::{InstallError, error::CommandFailure};
use crate::{
    find::{FoundProgram, MissingProgram, ProgramLocations, find_program},
    probe::command::{CommandResult, ProbeCommand, run_command},
};
use jackfield_catalog::EnvRules;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// How long a registry may take to answer.
pub(super) const QUERY_MAX: Duration = Duration::from_mins(1);
/// How long a package manager may take to download and unpack an agent on a slow line.
pub(super) const INSTALL_MAX: Duration = Duration::from_mins(20);
/// The number of lines of a failed command that an error contains.
const ERROR_LINES_MAX: usize = 4;

/// Variables of package managers that are passed to them: registries, proxies, certificates, tokens for registries.
const PASSED: &[&str] = &[
    "npm_config_*",
    "NPM_CONFIG_*",
    "NPM_TOKEN",
    "NODE_AUTH_TOKEN",
    "PIP_*",
    "REQUESTS_CA_BUNDLE",
];
/// Of these, variables that would move the installation to another place, or make it global.
const REMOVED: &[&str] = &[
    "npm_config_prefix",
    "npm_config_global",
    "npm_config_location",
    "npm_config_package_lock_only",
    "npm_config_dry_run",
    "NPM_CONFIG_PREFIX",
    "NPM_CONFIG_GLOBAL",
    "NPM_CONFIG_LOCATION",
    "NPM_CONFIG_PACKAGE_LOCK_ONLY",
    "NPM_CONFIG_DRY_RUN",
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_PYTHON",
    "PIP_DRY_RUN",
    "PIP_REPORT",
];

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallCommand {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
}

impl InstallCommand {
    pub(super) fn new(program: &Path, args: &[&str]) -> InstallCommand {
        let args = args.iter().map(|it| (*it).to_owned()).collect();
        InstallCommand { program: program.to_owned(), args }
    }

    /// The command line as a shell reads it.
    pub fn command_line(&self) -> String {
        let program = self.program.to_string_lossy().into_owned();
        let parts = std::iter::once(&program).chain(&self.args).map(|it| quote_word(it));
        parts.collect::<Vec<_>>().join(" ")
    }
}

/// Quotes a word for a shell if it contains anything but plain characters.
fn quote_word(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "@%+=:,./_-".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Finds and runs package managers.
pub(super) struct PackageTools<'a> {
    locations: &'a ProgramLocations,
    env: Vec<(String, String)>,
}

impl PackageTools<'_> {
    pub(super) fn new(locations: &ProgramLocations) -> PackageTools<'_> {
        let own = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect();
        let rules = EnvRules { pass: own(PASSED), remove: own(REMOVED), ..EnvRules::default() };
        let mut env = rules.compose_environment(locations.env());
        env.retain(|(name, _)| name != "PATH");
        env.push(("PATH".to_owned(), locations.search_path()));
        PackageTools { locations, env }
    }

    pub(super) fn find(&self, name: &str) -> Result<FoundProgram, MissingProgram> {
        find_program(&[name.to_owned()], None, self.locations)
    }

    /// Runs a command in a folder and returns its stdout.
    pub(super) async fn run(
        &self,
        command: &InstallCommand,
        cwd: &Path,
        limit: Duration,
    ) -> Result<String, InstallError> {
        let InstallCommand { program, args } = command;
        let failed = |reason: String, output: &str| InstallError::CommandFailed {
            command: command.command_line(),
            failure: CommandFailure { reason, lines: error_lines(output) },
        };
        let running = ProbeCommand { program, args, env: &self.env, cwd };
        match run_command(running, limit).await {
            CommandResult::Ended { status, stdout, .. } if status.success() => Ok(stdout),
            CommandResult::Ended { status, stdout, stderr } => {
                let output = if stderr.trim().is_empty() { &stdout } else { &stderr };
                Err(failed(status.to_string(), output))
            }
            CommandResult::TimedOut => {
                Err(failed(format!("it did not end within {} s", limit.as_secs()), ""))
            }
            CommandResult::NotStarted(error) => Err(failed(error.to_string(), "")),
        }
    }
}

/// The first lines that are not blank, which name the cause; both package managers print details after it.
fn error_lines(output: &str) -> Vec<String> {
    let is_useful = |it: &&str| !it.is_empty() && !it.contains("A complete log of this run");
    let lines = output.lines().map(str::trim).filter(is_useful).take(ERROR_LINES_MAX);
    lines.map(|it| it.chars().filter(|it| !it.is_control()).take(300).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_can_be_pasted_into_a_shell() {
        let command = InstallCommand::new(
            Path::new("/opt/my tools/npm"),
            &["install", "--prefix", "/home/it's", "@scope/name@1.2.3", "hermes[acp]==1"],
        );
        assert_eq!(
            command.command_line(),
            r"'/opt/my tools/npm' install --prefix '/home/it'\''s' @scope/name@1.2.3 'hermes[acp]==1'"
        );
    }

    #[test]
    fn package_managers_get_no_keys_and_no_global_prefix() {
        let env = [
            ("PATH", "/bin"),
            ("HOME", "/h"),
            ("ANTHROPIC_API_KEY", "k"),
            ("JACKFIELD_TOKEN", "t"),
            ("npm_config_registry", "http://127.0.0.1:1"),
            ("npm_config_prefix", "/usr"),
            ("NPM_CONFIG_GLOBAL", "true"),
            ("PIP_INDEX_URL", "http://127.0.0.1:1"),
            ("PIP_TARGET", "/usr/lib"),
            ("PYTHONPATH", "/x"),
        ];
        let env = env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let locations = ProgramLocations::new(env.into_iter());
        let tools = PackageTools::new(&locations);
        let names: Vec<&str> = tools.env.iter().map(|it| it.0.as_str()).collect();
        assert_eq!(names, ["HOME", "PIP_INDEX_URL", "npm_config_registry", "PATH"]);
    }
}

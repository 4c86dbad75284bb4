//! Starts cargo, and other programs that may start cargo, from a task that cargo itself started.

use anyhow::{Context as _, Result, ensure};
use std::{path::PathBuf, process::Command};

/// Variables that `cargo run` sets for this program. Some build scripts read them, so a build that inherits them
/// differs from one that does not, and each would rebuild what the other built.
const RUN_VARIABLES: [&str; 3] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];

/// Runs cargo to its end, with more variables in its environment.
pub(crate) fn cargo(arguments: &[&str], env: &[(&str, String)]) -> Result<()> {
    let mut command = Command::new("cargo");
    remove_run_variables(&mut command);
    command.args(arguments).envs(env.iter().map(|(name, value)| (name, value)));
    let status = command.status().context("failed to start cargo")?;
    ensure!(status.success(), "`cargo {}` failed: {status}", arguments.join(" "));
    Ok(())
}

/// How the programs and the test of a long end-to-end run are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// As the tests of both tiers, so that nothing is compiled again.
    Test,
    Release,
}

/// Runs one end-to-end test, whatever time it takes: the test runner would end it after minutes.
///
/// The whole workspace is named in every command. A part of it has other features of its dependencies, and would
/// compile most of them once more.
pub(crate) fn run_end_to_end_test(test: &str, env: &[(&str, String)], build: Build) -> Result<()> {
    let profile = match build {
        Build::Test => "test",
        Build::Release => "release",
    };
    // The tests of both tiers were built with the features of all targets; other targets alone would
    // compile most crates once more.
    let targets = if build == Build::Test { "--all-targets" } else { "--bins" };
    cargo(&["build", "--workspace", targets, "--profile", profile], env)?;
    let run = ["test", "--workspace", "--test", "main", "--profile", profile, "--"];
    let run = [&run[..], &["--exact", "--nocapture", "--include-ignored", test]].concat();
    cargo(&run, env)
}

/// Gives a program the environment that it would have without `cargo run` around this one.
pub(crate) fn remove_run_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|it| RUN_VARIABLES.iter().any(|set| it.starts_with(set))) {
            command.env_remove(&name);
        }
    }
}

/// The folder that cargo builds into.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from)
}

//! Cargo, started by a chore that cargo started.

use anyhow::{Context as _, Result, ensure};
use std::process::Command;

/// What `cargo run` says of us is not for the builds that we start: some build scripts look at it, and
/// what depends on them would be built again, each time the other way round.
const OURS: [&str; 3] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"];

/// Runs it to its end, with more in its environment.
pub(crate) fn cargo(arguments: &[&str], env: &[(&str, String)]) -> Result<()> {
    let mut command = Command::new("cargo");
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|it| OURS.iter().any(|ours| it.starts_with(ours))) {
            command.env_remove(&name);
        }
    }
    command.args(arguments).envs(env.iter().map(|(name, value)| (name, value)));
    let status = command.status().context("cargo does not start")?;
    ensure!(status.success(), "`cargo {}` failed: {status}", arguments.join(" "));
    Ok(())
}

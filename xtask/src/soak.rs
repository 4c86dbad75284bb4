//! `cargo xtask soak`: the end-to-end soak of the bus for as long as one likes, with release builds.

use anyhow::{Context as _, Result, ensure};
use std::process::Command;

const TEST: &str = "traffic::soak::nothing_is_lost_or_said_twice_and_nothing_grows";

/// `None` for words that mean nothing.
pub(crate) fn run(words: &[&str]) -> Option<Result<()>> {
    let seconds: u64 = match words {
        [] => 600,
        ["--seconds", number] => number.parse().ok()?,
        _ => return None,
    };
    Some(start(seconds))
}

/// Not by nextest, which ends tests that take minutes.
fn start(seconds: u64) -> Result<()> {
    let programs = ["-p", "jackfield", "-p", "jackfield-testkit", "--bins"];
    cargo(&[&["build", "--release"], &programs[..]].concat(), seconds)?;
    let test = ["test", "--release", "-p", "jackfield-e2e", "--test", "main", "--"];
    cargo(&[&test[..], &["--exact", "--nocapture", TEST]].concat(), seconds)
}

fn cargo(arguments: &[&str], seconds: u64) -> Result<()> {
    let mut command = Command::new("cargo");
    let status = command.args(arguments).env("SOAK_SECONDS", seconds.to_string()).status();
    let status = status.context("cargo does not start")?;
    ensure!(status.success(), "`cargo {}` failed: {status}", arguments.join(" "));
    Ok(())
}

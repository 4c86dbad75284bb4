//! `cargo xtask bench`: builds the release programs and measures them with `crates/bench`.

use crate::cargo::{cargo, target_folder};
use anyhow::{Context as _, Result, ensure};
use std::process::Command;

/// The measured programs, and the one that measures.
const PACKAGES: [&str; 6] = [
    "--package",
    "jackfield",
    "--package",
    "jackfield-test-support",
    "--package",
    "jackfield-bench",
];

pub(crate) fn run(words: &[&str]) -> Result<()> {
    cargo(&[&["build", "--release", "--bins"], &PACKAGES[..]].concat(), &[])?;
    let program = std::path::absolute(target_folder())?.join("release/jackfield-bench");
    let status = Command::new(program).args(words).status().context("failed to start it")?;
    ensure!(status.success(), "the benchmark failed: {status}");
    Ok(())
}

//! `cargo xtask bench`: builds the release programs and measures them with `crates/bench`.

use crate::cargo::{cargo, release_folder};
use anyhow::{Context as _, Result, ensure};
use std::process::Command;

/// The measured programs, and the one that measures.
const PACKAGES: [&str; 6] =
    ["--package", "jackfield", "--package", "jackfield-testkit", "--package", "jackfield-bench"];

pub(crate) fn run(words: &[&str]) -> Result<()> {
    cargo(&[&["build", "--release", "--bins"], &PACKAGES[..]].concat(), &[])?;
    let program = release_folder()?.join("jackfield-bench");
    let status = Command::new(program).args(words).status().context("failed to start it")?;
    ensure!(status.success(), "the benchmark failed: {status}");
    Ok(())
}

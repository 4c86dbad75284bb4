//! `cargo xtask deny`: checks bans, licenses and sources of dependencies with `cargo deny`.
//!
//! The result depends only on the manifests, `Cargo.lock` and `deny.toml`. A passed check records their hashes in
//! [`RECORD`]; `--changed` checks again only if one of them differs, because building `cargo-deny` takes longer
//! than most checks of a change.

use crate::{cargo::cargo, tools};
use anyhow::{Context as _, Result, ensure};
use std::{fs, process::Command};

const RECORD: &str = ".config/deny-checked";

/// The files that decide the result, as git patterns.
const INPUTS: [&str; 3] = ["deny.toml", "Cargo.lock", "*Cargo.toml"];

pub(crate) fn run(only_if_changed: bool) -> Result<()> {
    let hashes = hash_inputs()?;
    if only_if_changed && fs::read_to_string(RECORD).is_ok_and(|it| it == hashes) {
        println!("deny: no manifest has changed since the last check ({RECORD})");
        return Ok(());
    }
    tools::ensure(&["deny"])?;
    cargo(&["deny", "--locked", "check", "bans", "licenses", "sources"], &[])?;
    fs::write(RECORD, hashes).with_context(|| format!("failed to write {RECORD}"))?;
    println!("deny: passed; commit {RECORD}, so that the next run can skip this check");
    Ok(())
}

/// One line per input: hash and path.
fn hash_inputs() -> Result<String> {
    let files = git(&[&["ls-files", "--cached", "--others", "--exclude-standard"], &INPUTS[..]])?;
    let files: Vec<&str> = files.lines().collect();
    let hashes = git(&[&["hash-object"], &files[..]])?;
    let rows = hashes.lines().zip(files).map(|(hash, file)| format!("{hash} {file}\n"));
    Ok(rows.collect())
}

fn git(arguments: &[&[&str]]) -> Result<String> {
    let arguments = arguments.concat();
    let output = Command::new("git").args(&arguments).output().context("failed to start git")?;
    ensure!(output.status.success(), "`git {}` failed: {}", arguments[0], output.status);
    String::from_utf8(output.stdout).context("git printed text that is not UTF-8")
}

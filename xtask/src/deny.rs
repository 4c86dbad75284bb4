//! `cargo xtask deny`: checks bans, licenses and sources of dependencies with `cargo deny`.
//!
//! The result depends only on the manifests, `Cargo.lock` and `deny.toml`. A passed check records their hashes in
//! [`RECORD`]; `--changed` checks again only if one of them differs, because building `cargo-deny` takes longer
//! than most checks of a change.
//!
//! `--advisories` checks for known defects of dependencies. It needs the advisory database from the network, and is
//! skipped where that cannot be reached.

use crate::{
    cargo::{cargo, remove_run_variables},
    tools,
};
use anyhow::{Context as _, Result, bail, ensure};
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

/// What `cargo deny` says if the advisory database cannot be had.
const NOT_FETCHED: &str = "failed to fetch advisory database";

pub(crate) fn check_advisories() -> Result<()> {
    tools::ensure(&["deny"])?;
    let mut command = Command::new("cargo");
    remove_run_variables(&mut command);
    command.args(["deny", "--locked", "--color", "never", "check", "advisories"]);
    let output = command.output().context("failed to start cargo")?;
    let text = String::from_utf8_lossy(&output.stderr);
    eprint!("{text}");
    match judge(output.status.success(), &text) {
        Advisories::Checked => println!("deny: no advisory concerns a dependency"),
        Advisories::Skipped => {
            println!(
                "deny: SKIPPED: advisories were not checked, because their database cannot be reached"
            );
        }
        Advisories::Failed => bail!("`cargo deny check advisories` failed: {}", output.status),
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Advisories {
    Checked,
    Skipped,
    Failed,
}

fn judge(is_success: bool, text: &str) -> Advisories {
    match is_success {
        true => Advisories::Checked,
        false if text.contains(NOT_FETCHED) => Advisories::Skipped,
        false => Advisories::Failed,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_database_that_cannot_be_reached_skips_the_check() {
        let unreachable =
            "[ERROR] failed to fetch advisory database https://example.org/advisories";
        assert_eq!(judge(false, unreachable), Advisories::Skipped);
        assert_eq!(judge(false, "error[vulnerability]: use after free"), Advisories::Failed);
        assert_eq!(judge(false, ""), Advisories::Failed);
        assert_eq!(judge(true, "advisories ok"), Advisories::Checked);
    }
}

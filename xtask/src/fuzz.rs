//! Every fuzz target for a few seconds, on the toolchain that builds the rest.
//!
//! What the committed corpus does not hold yet is collected under `target/`: a run never changes
//! the checkout, and a crash is printed with the command that replays it.

use crate::tools;
use anyhow::{Result, ensure};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A target that needs more has found an input that costs too much.
const MEGABYTES_MAX: u32 = 512;

/// Runs these targets, or all of them, for this many seconds each.
pub(crate) fn run(seconds: u32, names: &[&str]) -> Result<()> {
    tools::ensure(&["fuzz"])?;
    let mut targets = targets(Path::new("fuzz/fuzz_targets"));
    targets.retain(|it| names.is_empty() || names.contains(&it.as_str()));
    ensure!(!targets.is_empty(), "no fuzz target is called `{}`", names.join("`, `"));
    let mut failed = Vec::new();
    for target in &targets {
        println!("fuzz: {target}, {seconds} s");
        if !run_one(target, seconds) {
            failed.push(target.as_str());
        }
    }
    println!("fuzz: {} targets, {} failed {}", targets.len(), failed.len(), failed.join(" "));
    ensure!(failed.is_empty(), "fuzzing found failures in: {}", failed.join(", "));
    Ok(())
}

/// The names of the targets, one file each.
fn targets(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
    let rust = files.filter(|it| it.extension().is_some_and(|it| it == "rs"));
    let mut names: Vec<String> =
        rust.filter_map(|it| Some(it.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names
}

fn run_one(target: &str, seconds: u32) -> bool {
    // libFuzzer writes to the first folder and reads all of them.
    let found = format!("target/fuzz-corpus/{target}");
    let committed = format!("fuzz/corpus/{target}");
    if let Err(error) = fs::create_dir_all(&found) {
        eprintln!("fuzz: {found}: {error}");
        return false;
    }
    let mut cargo = Command::new("cargo");
    // What we fuzz has no `unsafe`. Without a sanitizer a stable compiler will do, the build takes
    // half as long and a second holds five times as many runs.
    cargo.args(["fuzz", "run", "--sanitizer", "none", target, &found]);
    if Path::new(&committed).is_dir() {
        cargo.arg(&committed);
    }
    cargo.args(recordings(target));
    // One seed unless told otherwise: a change is not refused for what chance finds elsewhere.
    let seed = std::env::var("FUZZ_SEED").unwrap_or_else(|_| "1".to_owned());
    cargo.arg("--").arg(format!("-max_total_time={seconds}")).arg("-print_final_stats=1");
    cargo.arg(format!("-seed={seed}")).arg(format!("-rss_limit_mb={MEGABYTES_MAX}"));
    cargo.status().is_ok_and(|it| it.success())
}

/// What real programs printed is where fuzzing a dialect begins.
fn recordings(target: &str) -> Vec<PathBuf> {
    let Some(dialect) = target.strip_prefix("dialect_") else { return Vec::new() };
    let cli = dialect.split('_').next().unwrap_or(dialect);
    let versions = fs::read_dir(Path::new("crates/adapters/fixtures").join(cli));
    versions.into_iter().flatten().flatten().map(|it| it.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkout_without_targets_has_nothing_to_fuzz() {
        assert!(targets(Path::new("no/such/folder")).is_empty());
    }

    #[test]
    fn targets_are_rust_files_in_order() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/fuzz_targets");
        let names = targets(&folder);
        assert!(names.is_sorted() && names.iter().any(|it| it == "frame"), "{names:?}");
    }
}

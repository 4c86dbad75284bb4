//! `cargo xtask soak`: the end-to-end soak of the bus for as long as one likes, with release builds.

use crate::cargo::cargo;
use anyhow::Result;

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
    let env = [("SOAK_SECONDS", seconds.to_string())];
    let programs = ["-p", "jackfield", "-p", "jackfield-testkit", "--bins"];
    cargo(&[&["build", "--release"], &programs[..]].concat(), &env)?;
    let test = ["test", "--release", "-p", "jackfield-e2e", "--test", "main", "--"];
    cargo(&[&test[..], &["--exact", "--nocapture", "--include-ignored", TEST]].concat(), &env)
}

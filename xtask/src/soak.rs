//! `cargo xtask soak`: the end-to-end soak of the bus for as long as one likes, with release builds.

use crate::cargo::{Build, run_end_to_end_test};
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

fn start(seconds: u64) -> Result<()> {
    let env = [("SOAK_SECONDS", seconds.to_string())];
    run_end_to_end_test(TEST, &env, Build::Release)
}

//! `cargo xtask load`: the end-to-end load test at its full size, with release builds.

use crate::cargo::{Build, run_end_to_end_test};
use anyhow::Result;

const TEST: &str = "load::every_reader_of_every_session_hears_everything_in_time";

/// What the test reads from its environment, and what it is at full size.
const SIZES: [(&str, &str, u64); 5] = [
    ("--sessions", "LOAD_SESSIONS", 100),
    ("--readers", "LOAD_READERS", 1_000),
    ("--seconds", "LOAD_SECONDS", 20),
    ("--requests", "LOAD_REQUESTS", 2_000),
    ("--p99-ms", "LOAD_P99_MS", 50),
];

/// `None` for words that mean nothing.
pub(crate) fn run(words: &[&str]) -> Option<Result<()>> {
    let mut sizes = SIZES.map(|(_, variable, size)| (variable, size));
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let at = SIZES.iter().position(|(flag, ..)| flag == word)?;
        sizes[at].1 = words.next()?.parse().ok()?;
    }
    Some(start(&sizes))
}

fn start(sizes: &[(&str, u64)]) -> Result<()> {
    let env: Vec<_> = sizes.iter().map(|(name, size)| (*name, size.to_string())).collect();
    run_end_to_end_test(TEST, &env, Build::Release)
}

//! `cargo xtask chaos`: the end-to-end chaos for as long as one likes, under one seed.

use crate::cargo::cargo;
use anyhow::Result;
use std::time::{SystemTime, UNIX_EPOCH};

const TEST: &str =
    "chaos::whoever_is_killed_and_whenever_nothing_leaks_and_everything_has_one_outcome";

/// What the test reads from its environment.
#[derive(Debug)]
struct Options {
    seed: u64,
    seconds: u64,
    sessions: u64,
}

/// `None` for words that mean nothing.
pub(crate) fn run(words: &[&str]) -> Option<Result<()>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut options = Options { seed: now.as_secs(), seconds: 600, sessions: 200 };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let number = words.next()?.parse().ok()?;
        match *word {
            "--seed" => options.seed = number,
            "--seconds" => options.seconds = number,
            "--minutes" => options.seconds = number.checked_mul(60)?,
            "--sessions" => options.sessions = number,
            _ => return None,
        }
    }
    Some(start(&options))
}

/// Not by nextest, which ends tests that take minutes.
fn start(options: &Options) -> Result<()> {
    println!("{options:?}");
    let env = [
        ("CHAOS_SEED", options.seed.to_string()),
        ("CHAOS_SECONDS", options.seconds.to_string()),
        ("CHAOS_SESSIONS", options.sessions.to_string()),
    ];
    cargo(&["build", "--workspace", "--bins"], &env)?;
    cargo(
        &["test", "-p", "jackfield-e2e", "--test", "main", "--", "--exact", "--nocapture", TEST],
        &env,
    )
}

//! `cargo xtask chaos`: the end-to-end chaos for as long as one likes, under one seed; of a daemon, or of a
//! fleet.

use crate::cargo::{Build, run_end_to_end_test};
use anyhow::Result;
use std::time::{SystemTime, UNIX_EPOCH};

const DAEMON: &str =
    "chaos::whoever_is_killed_and_whenever_nothing_leaks_and_everything_has_one_outcome";
const FLEET: &str = "fleet::storm::repeated_faults_interrupt_only_running_turns";

/// `None` for words that mean nothing.
pub(crate) fn run(words: &[&str]) -> Option<Result<()>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    match words {
        ["--fleet", rest @ ..] => of_fleet(rest, now.as_secs()),
        _ => of_daemon(words, now.as_secs()),
    }
}

fn of_daemon(words: &[&str], mut seed: u64) -> Option<Result<()>> {
    let (mut seconds, mut sessions) = (600_u64, 200_u64);
    for (word, number) in pairs(words)? {
        match word {
            "--seed" => seed = number,
            "--seconds" => seconds = number,
            "--minutes" => seconds = number.checked_mul(60)?,
            "--sessions" => sessions = number,
            _ => return None,
        }
    }
    let env = [("CHAOS_SEED", seed), ("CHAOS_SECONDS", seconds), ("CHAOS_SESSIONS", sessions)];
    Some(start(DAEMON, &env))
}

fn of_fleet(words: &[&str], mut seed: u64) -> Option<Result<()>> {
    let mut rounds = 30;
    for (word, number) in pairs(words)? {
        match word {
            "--seed" => seed = number,
            "--rounds" => rounds = number,
            _ => return None,
        }
    }
    Some(start(FLEET, &[("FLEET_SEED", seed), ("FLEET_ROUNDS", rounds)]))
}

/// Flags, each with its number.
fn pairs<'a>(words: &[&'a str]) -> Option<Vec<(&'a str, u64)>> {
    let (pairs, rest) = words.as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[flag, number]| Some((*flag, number.parse().ok()?))).collect()
}

fn start(test: &str, numbers: &[(&str, u64)]) -> Result<()> {
    println!("{numbers:?}");
    let env: Vec<_> = numbers.iter().map(|(name, number)| (*name, number.to_string())).collect();
    run_end_to_end_test(test, &env, Build::Test)
}

//! Plants bugs and checks that the simulator finds each: `cargo xtask plant`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use jackfield_sim::planted_bugs::{PLANTED_BUGS, PlantedBug};
use std::process::ExitCode;

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let unknown = names.iter().find(|name| PLANTED_BUGS.iter().all(|it| it.name != **name));
    if let Some(unknown) = unknown {
        let known: Vec<&str> = PLANTED_BUGS.iter().map(|it| it.name).collect();
        eprintln!("unknown bug `{unknown}`; known bugs: {}", known.join(", "));
        return ExitCode::from(2);
    }
    let is_wanted = |it: &&PlantedBug| names.is_empty() || names.iter().any(|name| name == it.name);
    find_and_print(&PLANTED_BUGS.iter().filter(is_wanted).copied().collect::<Vec<_>>())
}

#[cfg(not(planted_bugs))]
fn find_and_print(_bugs: &[PlantedBug]) -> ExitCode {
    eprintln!("this build has no planted bugs; run `cargo xtask plant`");
    ExitCode::from(2)
}

/// Prints a table of what found each bug, and fails if one was not found.
#[cfg(planted_bugs)]
fn find_and_print(bugs: &[PlantedBug]) -> ExitCode {
    use jackfield_sim::worlds::WORLDS;

    /// A bug that is not found within this many seeds is not covered.
    const SEEDS_MAX: u64 = 20_000;
    /// The number of seeds that must pass without a bug.
    const CONTROL_SEEDS: u64 = 300;

    // A failed assertion is one way in which a bug is found.
    std::panic::set_hook(Box::new(|_| {}));
    for world in WORLDS {
        if let Err(it) = world.run_seeds(0..CONTROL_SEEDS, world.steps) {
            let replay = world.replay_command(it.seed, it.steps);
            eprintln!("without a bug, seed {} violates `{}`: {replay}", it.seed, it.invariant);
            return ExitCode::FAILURE;
        }
    }
    let failures = jackfield_sim::planted_bugs::find_bugs(bugs, SEEDS_MAX);
    println!("| world | bug | what it breaks | found by | seeds until found |");
    println!("|---|---|---|---|---|");
    let mut missed = 0;
    for (PlantedBug { name, world, breaks }, failure) in bugs.iter().zip(&failures) {
        let (invariant, seeds) = match failure {
            Some(it) => (format!("`{}`", it.invariant), (it.seed + 1).to_string()),
            None => ("**nothing**".to_owned(), format!("not in {SEEDS_MAX}")),
        };
        missed += usize::from(failure.is_none());
        println!("| {world} | {name} | {breaks} | {invariant} | {seeds} |");
    }
    println!("\n{} planted, {missed} not found", bugs.len());
    ExitCode::from(u8::from(0 < missed))
}

//! Runs the simulated worlds over many seeds, or one seed with a trace: `cargo xtask sim`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use jackfield_sim::{
    hub_sim::RunTally,
    worlds::{SeedFailure, WORLDS, WorldKind},
};
use std::{
    process::ExitCode,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

const USAGE: &str =
    "usage: cargo xtask sim [--world hub|bus|gateway] [--seed N | --first N | --fresh] [--steps N] [--trace]
  runs SIM_SEEDS seeds (default 2000) starting at --first (default 0), or one seed; --fresh starts at the current time";

/// The number of lines printed from the end of a trace, unless `--trace` is given.
const TRACE_LINES: usize = 60;

/// Seeds per world if neither `--seed` nor `SIM_SEEDS` is given.
const SEEDS: u64 = 2_000;

#[derive(Debug, Clone, Copy)]
struct SimOptions {
    /// All worlds if `None`.
    world: Option<WorldKind>,
    seed: Option<u64>,
    /// The first seed of a run over many.
    first: u64,
    steps: Option<u32>,
    trace: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(options) = parse_options(&words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // The panic of a violated invariant is caught and printed below.
    std::panic::set_hook(Box::new(|_| {}));
    let chosen = options.world.map_or(WORLDS.to_vec(), |it| vec![it]);
    let passed = chosen.into_iter().all(|world| {
        let steps = options.steps.unwrap_or(world.steps);
        let outcome = match options.seed {
            Some(seed) => run_one_seed(world, seed, steps),
            None => run_many_seeds(world, options.first, steps),
        };
        outcome.map_err(|failure| print_failure(world, &failure, options.trace)).is_ok()
    });
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_one_seed(world: WorldKind, seed: u64, steps: u32) -> Result<(), SeedFailure> {
    print_tally(&(world.run)(seed, steps)?);
    println!("{}, seed {seed}: {steps} steps, all invariants hold\n", world.name);
    Ok(())
}

fn run_many_seeds(world: WorldKind, first: u64, steps: u32) -> Result<(), SeedFailure> {
    let seeds = std::env::var("SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(SEEDS);
    let start = Instant::now();
    print_tally(&world.run_seeds(first..first.saturating_add(seeds), steps)?);
    let seconds = start.elapsed().as_secs_f64();
    let rate = f64::from(u32::try_from(seeds).unwrap_or(u32::MAX)) / seconds;
    println!(
        "{}: {seeds} seeds from {first} of {steps} steps in {seconds:.1} s ({rate:.0}/s): all invariants hold\n",
        world.name
    );
    Ok(())
}

fn parse_options(words: &[&str]) -> Option<SimOptions> {
    let mut options = SimOptions { world: None, seed: None, first: 0, steps: None, trace: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--seed" => options.seed = Some(words.next()?.parse().ok()?),
            "--fresh" => options.first = seconds_since_1970(),
            "--first" => options.first = words.next()?.parse().ok()?,
            "--steps" => options.steps = Some(words.next()?.parse().ok()?),
            "--world" => {
                let name = words.next()?;
                options.world = Some(*WORLDS.iter().find(|it| it.name == *name)?);
            }
            "--trace" => options.trace = true,
            _ => return None,
        }
    }
    Some(options)
}

/// Seeds that no earlier run has used.
fn seconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs())
}

fn print_tally(tally: &RunTally) {
    for (name, count) in tally.iter() {
        println!("{count:>10} {name}");
    }
}

fn print_failure(world: WorldKind, failure: &SeedFailure, is_full: bool) {
    let SeedFailure { seed, steps, invariant, detail, trace } = failure;
    let skipped = if is_full { 0 } else { trace.len().saturating_sub(TRACE_LINES) };
    if 0 < skipped {
        println!("… {skipped} lines omitted; pass --trace to print all");
    }
    for line in &trace[skipped..] {
        println!("{line}");
    }
    println!("\nseed {seed} violates `{invariant}`:\n  {detail}\n");
    println!("replay: {}", world.replay_command(*seed, *steps));
}

//! Runs the simulated worlds over many seeds, or one seed with a trace of what happened: `cargo xtask sim`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use jackfield_sim::{
    hub_sim::Tally,
    worlds::{Failure, WORLDS, World},
};
use std::{
    process::ExitCode,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

const USAGE: &str =
    "usage: cargo xtask sim [--world hub|bus|gateway] [--seed N | --first N | --fresh] [--steps N] [--trace]
  runs SIM_SEEDS seeds (2000) from the first one (0) on, or one seed; --fresh begins at the current time";

/// Printed from the end of a trace, unless `--trace` asks for all of it.
const TRACE_LINES: usize = 60;

/// Seeds per world if neither `--seed` nor `SIM_SEEDS` is given.
const SEEDS: u64 = 2_000;

#[derive(Debug, Clone, Copy)]
struct Options {
    /// All of them, if none is named.
    world: Option<World>,
    seed: Option<u64>,
    /// Where a run of many seeds begins.
    first: u64,
    steps: Option<u32>,
    trace: bool,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let Some(options) = parse(&words) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    // The panic of a broken invariant is caught and printed below.
    std::panic::set_hook(Box::new(|_| {}));
    let chosen = options.world.map_or(WORLDS.to_vec(), |it| vec![it]);
    let good = chosen.into_iter().all(|world| {
        let steps = options.steps.unwrap_or(world.steps);
        let outcome = match options.seed {
            Some(seed) => one(world, seed, steps),
            None => many(world, options.first, steps),
        };
        outcome.map_err(|failure| explain(world, &failure, options.trace)).is_ok()
    });
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn one(world: World, seed: u64, steps: u32) -> Result<(), Failure> {
    show(&(world.run)(seed, steps)?);
    println!("{}, seed {seed}: {steps} steps, everything holds\n", world.name);
    Ok(())
}

fn many(world: World, first: u64, steps: u32) -> Result<(), Failure> {
    let seeds = std::env::var("SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(SEEDS);
    let start = Instant::now();
    show(&world.run_seeds(first..first.saturating_add(seeds), steps)?);
    let seconds = start.elapsed().as_secs_f64();
    let rate = f64::from(u32::try_from(seeds).unwrap_or(u32::MAX)) / seconds;
    println!(
        "{}: {seeds} seeds from {first} on of {steps} steps in {seconds:.1} s ({rate:.0}/s): everything holds\n",
        world.name
    );
    Ok(())
}

fn parse(words: &[&str]) -> Option<Options> {
    let mut options = Options { world: None, seed: None, first: 0, steps: None, trace: false };
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

fn show(tally: &Tally) {
    for (what, count) in tally.iter() {
        println!("{count:>10} {what}");
    }
}

fn explain(world: World, failure: &Failure, whole: bool) {
    let Failure { seed, steps, invariant, detail, trace } = failure;
    let skipped = if whole { 0 } else { trace.len().saturating_sub(TRACE_LINES) };
    if 0 < skipped {
        println!("… {skipped} lines left out, see --trace");
    }
    for line in &trace[skipped..] {
        println!("{line}");
    }
    println!("\nseed {seed} breaks `{invariant}`:\n  {detail}\n");
    println!("replay: {}", world.replay_command(*seed, *steps));
}

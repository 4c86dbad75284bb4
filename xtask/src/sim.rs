//! `cargo xtask sim`: the simulated worlds over many seeds, or one seed with an account of what happened.

use jackfield_testkit::{
    sim::Tally,
    worlds::{Failure, WORLDS, World},
};
use std::{
    process::ExitCode,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

/// How much of a trace is shown unless all of it is asked for.
const TRACE_LINES: usize = 60;

/// Seeds when neither `--seed` nor `SIM_SEEDS` says otherwise.
const SEEDS: u64 = 2_000;

#[derive(Debug, Clone, Copy)]
struct Options {
    /// All of them, if none is named.
    world: Option<World>,
    seed: Option<u64>,
    steps: Option<u32>,
    trace: bool,
}

pub(crate) fn run(words: &[&str]) -> ExitCode {
    let Some(options) = parse(words) else { return crate::usage() };
    // What a broken invariant throws is caught and shown below.
    std::panic::set_hook(Box::new(|_| {}));
    let chosen = options.world.map_or(WORLDS.to_vec(), |it| vec![it]);
    let good = chosen.into_iter().all(|world| {
        let steps = options.steps.unwrap_or(world.steps);
        let outcome = match options.seed {
            Some(seed) => one(world, seed, steps),
            None => many(world, steps),
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

fn many(world: World, steps: u32) -> Result<(), Failure> {
    let seeds = std::env::var("SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(SEEDS);
    let start = Instant::now();
    show(&sweep(world, seeds, steps)?);
    let seconds = start.elapsed().as_secs_f64();
    let rate = f64::from(u32::try_from(seeds).unwrap_or(u32::MAX)) / seconds;
    println!(
        "{}: {seeds} seeds of {steps} steps in {seconds:.1} s ({rate:.0}/s): everything holds\n",
        world.name
    );
    Ok(())
}

/// Runs seeds until one fails; the lowest that failed is reported.
fn sweep(world: World, seeds: u64, steps: u32) -> Result<Tally, Failure> {
    let next = AtomicU64::new(0);
    let found: Mutex<(Tally, Option<Failure>)> = Mutex::default();
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut tally = Tally::default();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seeds <= seed {
                        break;
                    }
                    match (world.run)(seed, steps) {
                        Ok(counts) => tally.add(&counts),
                        Err(failure) => {
                            next.fetch_max(seeds, Ordering::Relaxed);
                            let mut found = found.lock().expect("nobody panics while holding it");
                            if found.1.as_ref().is_none_or(|it| seed < it.seed) {
                                found.1 = Some(failure);
                            }
                        }
                    }
                }
                found.lock().expect("nobody panics while holding it").0.add(&tally);
            });
        }
    });
    let (tally, failure) = found.into_inner().expect("nobody panics while holding it");
    failure.map_or(Ok(tally), Err)
}

fn parse(words: &[&str]) -> Option<Options> {
    let mut options = Options { world: None, seed: None, steps: None, trace: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--seed" => options.seed = Some(words.next()?.parse().ok()?),
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
    let name = world.name;
    println!("replay: cargo xtask sim --world {name} --seed {seed} --steps {steps} --trace");
}

//! `cargo xtask sim`: the simulator over many seeds, or one seed with an account of what happened.

use jackfield_testkit::sim::{self, Failure, Tally};
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
    seed: Option<u64>,
    steps: u32,
    trace: bool,
}

pub(crate) fn run(words: &[&str]) -> ExitCode {
    let Some(options) = parse(words) else { return crate::usage() };
    // What a broken invariant throws is caught and shown below.
    std::panic::set_hook(Box::new(|_| {}));
    if let Some(seed) = options.seed {
        return match sim::run_traced(seed, options.steps) {
            Ok(tally) => {
                show(&tally);
                println!("seed {seed}: {} steps, everything holds", options.steps);
                ExitCode::SUCCESS
            }
            Err(failure) => explain(&failure, options),
        };
    }
    let seeds = std::env::var("SIM_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(SEEDS);
    let start = Instant::now();
    let (tally, failure) = sweep(seeds, options.steps);
    if let Some(failure) = failure {
        let traced = sim::run_traced(failure.seed, failure.steps).err().unwrap_or(failure);
        return explain(&traced, options);
    }
    show(&tally);
    let seconds = start.elapsed().as_secs_f64();
    let rate = f64::from(u32::try_from(seeds).unwrap_or(u32::MAX)) / seconds;
    println!(
        "{seeds} seeds of {} steps in {seconds:.1} s ({rate:.0}/s): everything holds",
        options.steps
    );
    ExitCode::SUCCESS
}

/// Runs seeds until one fails; the lowest that failed is reported.
pub(crate) fn sweep(seeds: u64, steps: u32) -> (Tally, Option<Failure>) {
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
                    match sim::run(seed, steps) {
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
    found.into_inner().expect("nobody panics while holding it")
}

fn parse(words: &[&str]) -> Option<Options> {
    let mut options = Options { seed: None, steps: sim::STEPS, trace: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--seed" => options.seed = Some(words.next()?.parse().ok()?),
            "--steps" => options.steps = words.next()?.parse().ok()?,
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

fn explain(failure: &Failure, options: Options) -> ExitCode {
    let Failure { seed, steps, invariant, detail, trace } = failure;
    let skipped = if options.trace { 0 } else { trace.len().saturating_sub(TRACE_LINES) };
    if 0 < skipped {
        println!("… {skipped} lines left out, see --trace");
    }
    for line in &trace[skipped..] {
        println!("{line}");
    }
    println!("\nseed {seed} breaks `{invariant}`:\n  {detail}\n");
    println!("replay: cargo xtask sim --seed {seed} --steps {steps} --trace");
    ExitCode::FAILURE
}

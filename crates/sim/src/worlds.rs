//! The simulated worlds around the hub, the bus and the gateway, and how one seed of any of them is run.

use crate::{
    bus_sim, gateway_sim,
    hub_sim::{self, InvariantViolation, RunTally},
};
use std::{
    any::Any,
    ops::Range,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

/// A kind of world by its name.
#[derive(Debug, Clone, Copy)]
pub struct WorldKind {
    pub name: &'static str,
    /// The number of steps of a run, unless another is given.
    pub steps: u32,
    /// Runs one seed to its end and returns the counters.
    pub run: fn(u64, u32) -> Result<RunTally, SeedFailure>,
}

pub const WORLDS: [WorldKind; 3] = [
    WorldKind { name: "hub", steps: hub_sim::STEPS, run: hub_sim::run },
    WorldKind { name: "bus", steps: bus_sim::STEPS, run: bus_sim::run },
    WorldKind { name: "gateway", steps: gateway_sim::STEPS, run: gateway_sim::run },
];

impl WorldKind {
    /// The command that runs one seed of this world again and prints its trace.
    pub fn replay_command(&self, seed: u64, steps: u32) -> String {
        format!("cargo xtask sim --world {} --seed {seed} --steps {steps} --trace", self.name)
    }

    /// Runs all seeds on every core and adds up the counters. Stops at the first failure; of the seeds that failed until
    /// then, the lowest is returned.
    pub fn run_seeds(&self, seeds: Range<u64>, steps: u32) -> Result<RunTally, SeedFailure> {
        let next = AtomicU64::new(seeds.start);
        let totals: Mutex<(RunTally, Option<SeedFailure>)> = Mutex::default();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut tally = RunTally::default();
                    let mut failure = None;
                    while failure.is_none() {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seeds.end <= seed {
                            break;
                        }
                        match (self.run)(seed, steps) {
                            Ok(counts) => tally.add(&counts),
                            Err(it) => failure = Some(it),
                        }
                    }
                    if failure.is_some() {
                        next.fetch_max(seeds.end, Ordering::Relaxed);
                    }
                    let mut totals =
                        totals.lock().expect("no thread panics while it holds the lock");
                    totals.0.add(&tally);
                    let lowest =
                        totals.1.take().into_iter().chain(failure).min_by_key(|it| it.seed);
                    totals.1 = lowest;
                });
            }
        });
        let (tally, failure) =
            totals.into_inner().expect("no thread panics while it holds the lock");
        failure.map_or(Ok(tally), Err)
    }
}

/// A seed whose run violated an invariant or failed an assertion.
#[derive(Debug)]
pub struct SeedFailure {
    pub seed: u64,
    pub steps: u32,
    /// The name of the invariant.
    pub invariant: String,
    pub detail: String,
    /// The trace of the run.
    pub trace: Vec<String>,
}

/// A world that can be run.
pub(crate) trait Simulation: Sized {
    /// The name that is reported if an assertion fails.
    const ASSERTION_NAME: &'static str;

    /// `traced` records the run, which costs time.
    fn create(seed: u64, traced: bool) -> Self;
    fn advance(&mut self);
    /// Stops all faults and checks that the world settles.
    fn conclude(&mut self);
    fn into_report(self) -> (RunTally, Vec<String>);
}

pub(crate) fn run<W: Simulation>(seed: u64, steps: u32) -> Result<RunTally, SeedFailure> {
    // A failed run is repeated with a trace.
    run_once::<W>(seed, steps, false).or_else(|_| run_once::<W>(seed, steps, true))
}

fn run_once<W: Simulation>(seed: u64, steps: u32, traced: bool) -> Result<RunTally, SeedFailure> {
    let mut world = W::create(seed, traced);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for _ in 0..steps {
            world.advance();
        }
        world.conclude();
    }));
    let (tally, trace) = world.into_report();
    let Err(thrown) = outcome else { return Ok(tally) };
    let (invariant, detail) = match thrown.downcast::<InvariantViolation>() {
        Ok(it) => (it.invariant.to_owned(), it.detail),
        Err(thrown) => (W::ASSERTION_NAME.to_owned(), panic_message(&*thrown)),
    };
    Err(SeedFailure { seed, steps, invariant, detail, trace })
}

fn panic_message(thrown: &(dyn Any + Send)) -> String {
    if let Some(text) = thrown.downcast_ref::<String>() {
        return text.clone();
    }
    thrown.downcast_ref::<&str>().map_or_else(|| "a panic".to_owned(), |it| (*it).to_owned())
}

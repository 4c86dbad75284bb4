//! The simulated worlds, around the hub, the bus and the gateway, and how one seed of any of them is run.

use crate::{
    bus_sim, gateway_sim,
    hub_sim::{self, Broken, Tally},
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

/// A world by its name.
#[derive(Debug, Clone, Copy)]
pub struct World {
    pub name: &'static str,
    /// How many steps a run has unless it is told.
    pub steps: u32,
    /// Runs one seed to its end and counts what happened.
    pub run: fn(u64, u32) -> Result<Tally, Failure>,
}

pub const WORLDS: [World; 3] = [
    World { name: "hub", steps: hub_sim::STEPS, run: hub_sim::run },
    World { name: "bus", steps: bus_sim::STEPS, run: bus_sim::run },
    World { name: "gateway", steps: gateway_sim::STEPS, run: gateway_sim::run },
];

impl World {
    /// The command that runs one seed of this world again and prints everything that happened.
    pub fn replay_command(&self, seed: u64, steps: u32) -> String {
        format!("cargo xtask sim --world {} --seed {seed} --steps {steps} --trace", self.name)
    }

    /// Runs all seeds on every core, and adds up what happened. Stops at the first failure; of the seeds that
    /// failed until then, the lowest is returned.
    pub fn run_seeds(&self, seeds: Range<u64>, steps: u32) -> Result<Tally, Failure> {
        let next = AtomicU64::new(seeds.start);
        let totals: Mutex<(Tally, Option<Failure>)> = Mutex::default();
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut tally = Tally::default();
                    let mut failure = None;
                    while failure.is_none() {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seeds.end <= seed {
                            break;
                        }
                        match (self.run)(seed, steps) {
                            Ok(counts) => tally.add(&counts),
                            Err(broken) => failure = Some(broken),
                        }
                    }
                    if failure.is_some() {
                        next.fetch_max(seeds.end, Ordering::Relaxed);
                    }
                    let mut totals = totals.lock().expect("no thread panics while it holds this");
                    totals.0.add(&tally);
                    let lowest =
                        totals.1.take().into_iter().chain(failure).min_by_key(|it| it.seed);
                    totals.1 = lowest;
                });
            }
        });
        let (tally, failure) = totals.into_inner().expect("no thread panics while it holds this");
        failure.map_or(Ok(tally), Err)
    }
}

/// A seed whose world broke an invariant, or the assertions of what lives in it.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub steps: u32,
    /// The name of the invariant.
    pub invariant: String,
    pub detail: String,
    /// What happened.
    pub trace: Vec<String>,
}

/// What can be run.
pub(crate) trait Simulated: Sized {
    /// The invariant that an assertion stands for.
    const ASSERTED: &'static str;

    /// With an account of what happens, if it is wanted: that costs time.
    fn create(seed: u64, traced: bool) -> Self;
    fn advance(&mut self);
    /// Trouble stops, and everything must come to its end.
    fn conclude(&mut self);
    fn account(self) -> (Tally, Vec<String>);
}

pub(crate) fn run<W: Simulated>(seed: u64, steps: u32) -> Result<Tally, Failure> {
    // The same happens again, now with an account.
    attempt::<W>(seed, steps, false).or_else(|_| attempt::<W>(seed, steps, true))
}

fn attempt<W: Simulated>(seed: u64, steps: u32, traced: bool) -> Result<Tally, Failure> {
    let mut world = W::create(seed, traced);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for _ in 0..steps {
            world.advance();
        }
        world.conclude();
    }));
    let (tally, trace) = world.account();
    let Err(thrown) = outcome else { return Ok(tally) };
    let (invariant, detail) = match thrown.downcast::<Broken>() {
        Ok(broken) => (broken.invariant.to_owned(), broken.detail),
        Err(thrown) => (W::ASSERTED.to_owned(), message(&*thrown)),
    };
    Err(Failure { seed, steps, invariant, detail, trace })
}

fn message(thrown: &(dyn Any + Send)) -> String {
    if let Some(text) = thrown.downcast_ref::<String>() {
        return text.clone();
    }
    thrown.downcast_ref::<&str>().map_or_else(|| "a panic".to_owned(), |it| (*it).to_owned())
}

//! A deterministic world: one seed decides every interleaving, loss and crash.
//!
//! Read in this order: `world` (what can happen), `client` and `agent` (who lives there), `disk`
//! (what survives), `feed` and `told` (what goes into the hub and comes out), `fleet` (sessions that
//! leave and come back), `tenants` (who may know of what), `check` (what must hold), `settle` (the end of a run).
//!
//! The world is crueller than the real one. Where the real loop must do something in a certain way,
//! this one does it in that way: one append of a session in flight, what was collected is thrown
//! away when an append fails, inputs of one source stay in order.

mod agent;
mod answer;
mod check;
mod client;
mod copy;
mod disk;
mod feed;
mod fleet;
mod habits;
mod peek;
mod request;
mod rng;
mod settle;
mod tally;
mod temper;
mod tenants;
mod told;
mod trace;
mod waiting;
mod world;

pub use rng::Rng;
pub use tally::Tally;

use std::panic::{AssertUnwindSafe, catch_unwind};
use world::World;

/// How many steps a run has unless it is told.
pub const STEPS: u32 = 400;

/// A seed whose world broke an invariant, or the hub's own assertions.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub steps: u32,
    /// The name of the invariant.
    pub invariant: String,
    pub detail: String,
    /// Everything that happened, if it was asked for.
    pub trace: Vec<String>,
}

/// Runs one seed to its end and counts what happened.
pub fn run(seed: u64, steps: u32) -> Result<Tally, Failure> {
    attempt(seed, steps, false)
}

/// The same with a full account, which costs time.
pub fn run_traced(seed: u64, steps: u32) -> Result<Tally, Failure> {
    attempt(seed, steps, true)
}

fn attempt(seed: u64, steps: u32, traced: bool) -> Result<Tally, Failure> {
    let mut world = World::new(seed, traced);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for _ in 0..steps {
            world.step();
        }
        world.settle();
    }));
    let Err(thrown) = outcome else { return Ok(world.tally) };
    let (invariant, detail) = match thrown.downcast::<check::Broken>() {
        Ok(broken) => (broken.invariant.to_owned(), broken.detail),
        Err(thrown) => ("the_hub_asserts".to_owned(), message(&*thrown)),
    };
    Err(Failure { seed, steps, invariant, detail, trace: world.trace.into_lines() })
}

pub(crate) fn message(thrown: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = thrown.downcast_ref::<String>() {
        return text.clone();
    }
    thrown.downcast_ref::<&str>().map_or_else(|| "a panic".to_owned(), |it| (*it).to_owned())
}

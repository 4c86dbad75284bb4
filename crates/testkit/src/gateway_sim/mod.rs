//! A deterministic world around the gateway: clients that stall and leave, hosts that die and come
//! back, legs that end between any two frames, sessions that move; one seed decides all of it.
//!
//! Read in this order: `world` (what can happen), `log` (what the fleet remembers), `host` (hubs, as
//! far as a gateway can tell), `client` (who lives on the other side), `feed` (what goes into the
//! gateway, what comes out, and what must be true of it).

mod client;
mod feed;
mod host;
mod log;
mod world;

use crate::sim::Tally;
use std::panic::{AssertUnwindSafe, catch_unwind};
use world::World;

/// How many steps a run has unless it is told.
pub const STEPS: u32 = 600;

/// A seed whose world broke an invariant, or the gateway's own assertions.
#[derive(Debug)]
pub struct Failure {
    pub seed: u64,
    pub detail: String,
    /// The last things that happened.
    pub trace: Vec<String>,
}

/// Runs one seed to its end and counts what happened.
pub fn run(seed: u64, steps: u32) -> Result<Tally, Failure> {
    attempt(seed, steps, false).or_else(|_| attempt(seed, steps, true))
}

/// With an account of what happened, which costs time.
fn attempt(seed: u64, steps: u32, traced: bool) -> Result<Tally, Failure> {
    let mut world = World::new(seed, traced);
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        for _ in 0..steps {
            world.step();
        }
        world.settle();
    }));
    let Err(thrown) = outcome else { return Ok(world.tally) };
    let detail = crate::sim::message(&*thrown);
    Err(Failure { seed, detail, trace: world.trace.into() })
}

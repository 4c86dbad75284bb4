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
mod settle;
mod tally;
mod temper;
mod tenants;
mod told;
mod trace;
mod waiting;
mod world;

pub(crate) use check::Broken;
pub use tally::Tally;

use crate::worlds::{self, Failure, Simulated};
use world::World;

/// How many steps a run has unless it is told.
pub const STEPS: u32 = 400;

/// Runs one seed to its end and counts what happened.
pub fn run(seed: u64, steps: u32) -> Result<Tally, Failure> {
    worlds::run::<World>(seed, steps)
}

impl Simulated for World {
    const ASSERTED: &'static str = "the_hub_asserts";

    fn create(seed: u64, traced: bool) -> World {
        World::new(seed, traced)
    }

    fn advance(&mut self) {
        self.step();
    }

    fn conclude(&mut self) {
        self.settle();
    }

    fn account(self) -> (Tally, Vec<String>) {
        (self.tally, self.trace.into_lines())
    }
}

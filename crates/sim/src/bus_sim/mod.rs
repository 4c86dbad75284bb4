//! A deterministic world around the bus: clients that flood, stall and leave, workers that answer
//! late, ask back and die, a configuration that changes; one seed decides all of it.
//!
//! Read in this order: `world` (what can happen), `client` and `worker` (who lives there), `feed` (what goes into the bus and comes out),
//! `book` (what must follow from what was said, kept apart from the bus).

mod book;
mod client;
mod feed;
mod worker;
mod world;

use crate::{
    hub_sim::Tally,
    worlds::{self, Failure, Simulated},
};
use world::World;

/// How many steps a run has unless it is told.
pub const STEPS: u32 = 600;

/// Runs one seed to its end and counts what happened.
pub fn run(seed: u64, steps: u32) -> Result<Tally, Failure> {
    worlds::run::<World>(seed, steps)
}

impl Simulated for World {
    const ASSERTED: &'static str = "the_bus_keeps_its_word";

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
        (self.tally, self.trace.into())
    }
}

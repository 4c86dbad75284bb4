//! A deterministic world around the bus: clients that flood, stall and disconnect, workers that answer late, send
//! requests and exit, and a configuration that changes. One seed decides all of it.
//!
//! Read in this order: `world` (the steps of a run), `client` and `worker` (the participants), `feed` (inputs and outputs
//! of the bus), `expectations` (the expected behavior).

mod client;
mod expectations;
mod feed;
mod worker;
mod world;

use crate::{
    hub_sim::RunTally,
    worlds::{self, SeedFailure, Simulation},
};
use world::BusWorld;

/// The number of steps of a run, unless another is given.
pub const STEPS: u32 = 600;

/// Runs one seed to its end and returns the counters.
pub fn run(seed: u64, steps: u32) -> Result<RunTally, SeedFailure> {
    worlds::run::<BusWorld>(seed, steps)
}

impl Simulation for BusWorld {
    const ASSERTION_NAME: &'static str = "bus_assertion_failed";

    fn create(seed: u64, traced: bool) -> BusWorld {
        BusWorld::new(seed, traced)
    }

    fn advance(&mut self) {
        self.step();
    }

    fn conclude(&mut self) {
        self.settle();
    }

    fn into_report(self) -> (RunTally, Vec<String>) {
        (self.tally, self.trace.into())
    }
}

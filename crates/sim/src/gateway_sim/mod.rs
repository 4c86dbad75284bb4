//! A deterministic world around the gateway: clients that stall and leave, hosts that die and come
//! back, host connections that end between any two frames, sessions that move; one seed decides all of it.
//!
//! Read in this order: `world` (what can happen), `log` (what the fleet remembers), `host` (hubs, as
//! far as a gateway can tell), `client` (who lives on the other side), `feed` (what goes into the
//! gateway, what comes out, and what must be true of it).

mod client;
mod feed;
mod host;
mod log;
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
    const ASSERTED: &'static str = "the_gateway_keeps_its_word";

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

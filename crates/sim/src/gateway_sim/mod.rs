//! A deterministic world around the gateway: clients that stall and disconnect, hosts that exit and restart, host
//! connections that end between any two frames, sessions that move. One seed decides all of it.
//!
//! Read in this order: `world` (the steps of a run), `log` (durable state), `host` (hosts as a gateway sees them),
//! `client` (clients), `feed` (inputs and outputs of the gateway, and the checks).

mod client;
mod feed;
mod host;
mod log;
mod world;

use crate::{
    hub_sim::RunTally,
    worlds::{self, SeedFailure, Simulation},
};
use world::GatewayWorld;

/// The number of steps of a run, unless another is given.
pub const STEPS: u32 = 600;

/// Runs one seed to its end and returns the counters.
pub fn run(seed: u64, steps: u32) -> Result<RunTally, SeedFailure> {
    worlds::run::<GatewayWorld>(seed, steps)
}

impl Simulation for GatewayWorld {
    const ASSERTION_NAME: &'static str = "gateway_assertion_failed";

    fn create(seed: u64, traced: bool) -> GatewayWorld {
        GatewayWorld::new(seed, traced)
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

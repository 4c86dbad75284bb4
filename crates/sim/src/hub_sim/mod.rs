//! A deterministic world around the hub: one seed decides every interleaving, loss and crash.
//!
//! Read in this order: `world` (the steps of a run), `client` and `agent` (the participants), `disk` (durable state),
//! `feed` and `client_output` (inputs and outputs of the hub), `session_moves` (sessions that change their host),
//! `tenants` (who may access which session), `check` (the invariants), `settle` (the end of a run).
//!
//! The world is harsher than the real one. Where the real loop guarantees an order, this one guarantees the same: one
//! append per session in flight, collected events are discarded when an append fails, inputs of one source stay in
//! order.

mod agent;
mod agent_messages;
mod agent_turn;
mod answer;
mod check;
mod client;
mod client_output;
mod copy;
mod disk;
mod fault_rates;
mod feed;
mod hub_settings;
mod input_sources;
mod markers;
mod queue_actions;
mod request;
mod session_moves;
mod settle;
mod tally;
mod tenants;
mod trace;
mod world;

pub(crate) use check::InvariantViolation;
pub use tally::RunTally;

use crate::worlds::{self, SeedFailure, Simulation};
use world::HubWorld;

/// The number of steps of a run, unless another is given.
pub const STEPS: u32 = 400;

/// Runs one seed to its end and returns the counters.
pub fn run(seed: u64, steps: u32) -> Result<RunTally, SeedFailure> {
    worlds::run::<HubWorld>(seed, steps)
}

impl Simulation for HubWorld {
    const ASSERTION_NAME: &'static str = "hub_assertion_failed";

    fn create(seed: u64, traced: bool) -> HubWorld {
        HubWorld::new(seed, traced)
    }

    fn advance(&mut self) {
        self.step();
    }

    fn conclude(&mut self) {
        self.settle();
    }

    fn into_report(self) -> (RunTally, Vec<String>) {
        (self.tally, self.trace.into_lines())
    }
}

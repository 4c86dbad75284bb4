//! Simulated worlds, scenarios, recordings, and the programs that tests of other crates start.

mod fake_agent;
mod fake_model;
mod kit;
mod nats;
mod recorded;

//! Ways to drive the hub without the real world: a seeded simulator, Markdown scenarios, and programs
//! that play the agent or the model.

pub mod bench_worker;
pub mod bus_sim;
pub mod everything;
pub mod fake_agent;
pub mod fake_model;
pub mod flood;
pub mod line_client;
mod loopback;
pub mod scripted_model;
pub mod sim;
pub mod spec;

//! Ways to drive the hub without the real world: a seeded simulator, Markdown scenarios, and programs
//! that play the agent or the model; and pieces of the real world, NATS servers that may be hurt and S3.

pub mod bench_worker;
pub mod bus_sim;
pub mod everything;
pub mod fake_agent;
pub mod fake_model;
pub mod flood;
pub mod gateway_sim;
pub mod line_client;
mod loopback;
pub mod nats;
pub mod netns;
pub mod s3;
pub mod scripted_model;
pub mod sim;
pub mod small_disk;
pub mod spec;
mod sweeper;
pub mod wait;
pub mod worlds;

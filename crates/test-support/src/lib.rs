//! What tests of several crates need: programs that act as an agent or a model, NATS servers that can be killed,
//! cut off and starved of disk space, S3, network namespaces, a seeded random number generator and bounded waiting.
//! No crate of ours is used here, so a test that uses this one compiles nothing else.

pub mod bench_worker;
pub mod everything;
pub mod fake_agent;
pub mod fake_model;
pub mod flood;
pub mod line_client;
mod loopback;
pub mod nats;
pub mod netns;
pub mod rng;
pub mod s3;
pub mod scripted_model;
pub mod small_disk;
mod sweeper;
pub mod wait;

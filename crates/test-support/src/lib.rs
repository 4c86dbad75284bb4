//! Shared test tools: programs that act as an agent or a model, NATS servers that can be killed, cut off and starved of
//! disk space, S3, network namespaces, a seeded random number generator and bounded waiting. This crate depends on no
//! other crate of the workspace, so a test that uses it compiles nothing else.

pub mod bench_worker;
mod cleanup;
pub mod fake_agent;
pub mod fake_model;
pub mod file_server;
pub mod flood;
pub mod line_client;
mod loopback;
pub mod nats;
pub mod netns;
pub mod reference_mcp_server;
pub mod rng;
pub mod s3;
pub mod scripted_model;
pub mod small_disk;
pub mod wait;

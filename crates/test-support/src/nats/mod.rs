//! Real NATS servers for tests: processes on loopback, each with its own store.
//!
//! Read in this order: [`Cluster`] (what a test starts, breaks and queries), [`Server`] (one server), `monitor` (its
//! monitoring endpoint).
//!
//! There is no NATS client here; a test that needs one brings its own.

mod cluster;
mod deployed;
mod monitor;
mod server;

pub use cluster::Cluster;
pub use deployed::{deployed_configuration, without_routes};
pub use server::{Server, program};

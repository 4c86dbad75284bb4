//! Real NATS servers for tests: processes on loopback, with a store of their own.
//!
//! Read in this order: [`Cluster`] (what a test starts, hurts and asks), [`Server`] (one of them),
//! `monitor` (what a server says about itself).
//!
//! There is no NATS client here. Whoever tests one brings it along.

mod cluster;
mod deployed;
mod monitor;
mod server;

pub use cluster::Cluster;
pub use deployed::{deployed_configuration, without_routes};
pub use server::{Server, program};

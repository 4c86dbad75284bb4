//! Fleets on real NATS servers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod credentials;
mod fleet;

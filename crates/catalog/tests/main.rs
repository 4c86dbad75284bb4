//! The catalog of agents, against the public interface of the crate.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod argv;
mod builtin;
mod errors;
mod models;
mod registry;
mod registry_manifests;

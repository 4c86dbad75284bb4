//! The journal as other crates and other processes use it: file format, crashes, NATS servers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
mod format;
mod leaders;
mod owners;
mod retain;

//! Real processes: what agents do to us, and what we must never do to anyone.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod exits;
mod frames;
mod harness;
mod killed_daemon;
mod proc;
mod tree;

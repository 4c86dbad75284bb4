//! Real processes: what agents do to us, and what we must never do to anyone.
//!
//! These tests look at processes through `/proc`. What holds on every system is tested in
//! `src/os/conformance` and in `tests/supervision.rs`.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod exits;
mod frames;
mod harness;
mod killed_daemon;
mod proc;
mod tree;

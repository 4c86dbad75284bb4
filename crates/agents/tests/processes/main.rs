//! Real processes: what agents do to us, and what we must never do to anyone.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod endings;
mod leftovers;
mod proc;
mod talk;
mod tree;
mod world;

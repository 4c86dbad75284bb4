//! Properties that must hold for every input of a parser or an adapter.
//!
//! `fuzz/` searches for inputs that break them, for minutes or hours. The tests of this crate try the inputs that
//! were found so far, what real programs printed, and a bounded number of mutations of both, with every change.

pub mod dialect;
pub mod frame;
pub mod line;
pub mod policy_command;
pub mod policy_input;
pub mod policy_rules;
pub mod splice;
pub mod sse;
pub mod sse_read;

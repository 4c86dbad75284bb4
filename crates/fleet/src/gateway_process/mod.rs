//! The process around [`crate::gateway`]: client connections, host connections, and lookups in the
//! journal.
//!
//! Read in this order: [`GatewayProcess`] (`main_loop.rs`, the loop), `effects.rs` (the connections),
//! `session_locator.rs` (finds the owner of a session, lists sessions), `takeover.rs` (which hosts may
//! take over a session).
//!
//! **Invariant:** nothing here decides where a frame goes, and the loop never waits: each lookup is a
//! task, and its result is an input.

mod clock;
mod effects;

mod main_loop;
mod session_locator;
mod takeover;

pub use main_loop::{GatewayProcess, GaugesRequest, to_gateway_host};
pub use takeover::placement_needs;

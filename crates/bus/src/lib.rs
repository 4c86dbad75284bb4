//! The process around the bus: NDJSON between clients and pools of workers, nothing written down.
//!
//! Read in this order: [`config`] (what it is told), `door` (where clients come in), `serve` (from start
//! to end), `main_loop` (one input at a time), `effects` (carrying out what the bus asks), `metrics` and
//! `observe` (what people are told).
//!
//! - **Invariant:** one thread owns the bus and all its sockets and pipes.
//! - **Invariant:** the loop never waits for anything but its mailboxes, and these are small: whoever
//!   floods one waits in line with everyone else.
//! - **Invariant:** after the start nothing propagates as an error: it becomes an input.

mod clock;
pub mod config;
mod door;
mod effects;
mod main_loop;
mod metrics;
mod observe;
pub mod routing;
mod serve;

pub use config::{ConfigError, Flaw, Loaded, Source};
pub use door::Transport;
pub use serve::{Options, Ready, ServeError, serve};

//! The bus process: relays NDJSON between clients and pools of workers, and stores nothing.
//!
//! Read in this order: [`config`] (the configuration file), [`routing`] (the state machine), `listener`
//! (accepting clients), `serve` (from start to end), `main_loop` (one input at a time), `effects`
//! (carrying out the outputs), `metrics` and `observe` (metrics and log).
//!
//! - **Invariant:** one thread owns the bus and all its sockets and pipes.
//! - **Invariant:** the loop waits only for its channels, and these are small, so that a peer that sends
//!   a flood cannot delay the others.
//! - **Invariant:** after the start no error is returned: it becomes an input.

mod clock;
pub mod config;

mod effects;
mod listener;
mod main_loop;
mod metrics;
mod observe;
mod poll_window;
pub mod routing;
mod serve;
mod serve_error;

pub use config::{BusConfigError, ConfigProblem, ConfigSource, LoadedConfig};
pub use listener::BusTransport;
pub use serve::{BusOptions, BusReady, serve};
pub use serve_error::ServeError;

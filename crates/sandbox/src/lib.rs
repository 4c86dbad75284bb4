//! Limits what an agent process can reach.
//!
//! Read in this order: [`profile`] is what agents may reach, as data that users can change. [`plan`] is
//! what one process may do; [`planning`] makes it from a profile and the facts of one launch. [`os`]
//! enforces it, in a process that [`subcommand`] describes. [`explanation`] says what a plan refuses. [`probes`] are
//! attempts to leave a sandbox, and [`check`] makes them.

pub mod check;
pub mod explanation;
pub mod os;
pub mod plan;
pub mod planning;
pub mod probes;
pub mod profile;
pub mod subcommand;

pub use os::{init_main, probes::main as probe_main};
pub use subcommand::run_main;

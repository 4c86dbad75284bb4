//! Views of a session's log, made of its facts as JSON. No I/O, no clock.
//!
//! [`archive`] is the file that a session is exported to and imported from, [`veil`] is the same log
//! without secrets, [`usage`] is what the turns have cost, [`options`] is what a session lets its user
//! choose.
//!
//! **Invariant:** a view knows no more than the log: what an agent has not said stays unknown.

pub mod archive;
pub mod options;
pub mod usage;
pub mod veil;

pub use archive::{Archive, Entry, Flaw, Reader};
pub use usage::Usage;
pub use veil::Veil;

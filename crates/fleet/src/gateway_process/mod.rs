//! The process around [`crate::gateway`]: clients on one side, host connections to hosts on the other, and the
//! journal to look up whose a session is.
//!
//! Read in this order: [`Front`] (`main_loop.rs`, the loop), `effects.rs` (the edges), `seek.rs` (who owns a
//! session, and which are there), `heirs.rs` (who could).
//!
//! **Invariant:** nothing here decides where a frame goes, and nothing in the loop waits: looking up is a
//! task, and its outcome an input.

mod clock;
mod effects;
mod heirs;
mod main_loop;
mod seek;

pub use heirs::needs_of;
pub use main_loop::{Front, Scrape, host_of};

//! Limits what an agent process can reach.
//!
//! Read in this order: [`plan`] is what one process may do, as data. It is made from a profile and the
//! facts of one launch, and enforced by the operating system.

pub mod plan;

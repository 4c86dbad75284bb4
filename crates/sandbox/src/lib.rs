//! Limits what an agent process can reach.
//!
//! Read in this order: [`profile`] is what agents may reach, as data that users can change. [`plan`] is
//! what one process may do. It is made from a profile and the facts of one launch, and enforced by the
//! operating system.

pub mod os;
pub mod plan;
pub mod planning;
pub mod profile;

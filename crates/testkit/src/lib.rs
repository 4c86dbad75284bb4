//! Under construction.

pub mod fake_agent;
pub mod fake_model;

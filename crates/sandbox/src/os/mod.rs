//! Enforcement by the operating system, and the only place of this crate that tests for one or has
//! `unsafe` code.

#[cfg(target_os = "linux")]
pub mod linux;

//! Enforcement on Linux.

pub mod seccomp;

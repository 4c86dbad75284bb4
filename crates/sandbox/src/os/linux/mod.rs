//! Enforcement on Linux.

pub mod landlock;
pub mod seccomp;

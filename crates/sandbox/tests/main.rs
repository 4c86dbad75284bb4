//! Programs in a real sandbox, and attacks on it with the real kernel.

#![cfg_attr(target_os = "linux", expect(clippy::unwrap_used, reason = "a test fails by panicking"))]

#[cfg(target_os = "linux")]
mod bubblewrap;
#[cfg(target_os = "linux")]
mod fixture;
#[cfg(target_os = "linux")]
mod landlock;
#[cfg(target_os = "linux")]
mod probes;

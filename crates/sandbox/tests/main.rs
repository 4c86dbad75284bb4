//! Programs in a real sandbox, and attacks on it with the real kernel.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bubblewrap;
mod fixture;
mod landlock;

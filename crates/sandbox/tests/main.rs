//! Programs in a real sandbox.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bubblewrap;
mod fixture;

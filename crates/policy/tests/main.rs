//! Rules, shell commands and recorded tool calls, against the public interface of the crate.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(target_os = "linux")]
mod bash;
mod bounds;
mod commands;
mod corpus;
mod decide;
mod flaws;
mod inputs;
mod learn;
mod recorded;
mod splitter;

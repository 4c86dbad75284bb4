//! Rules, shell commands and recorded tool calls, against the public interface of the crate.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[cfg(target_os = "linux")]
mod bash;
mod commands;
mod corpus;
mod evaluate;
mod hostile_lines;
mod inputs;
mod learn;
mod odd_paths;
mod parse_errors;
mod properties;
mod recorded;

//! Adapters driven by recorded and by generated program output.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adapter;
mod claude_lines;
mod codex_app_server;
mod codex_lines;
mod foreign_lines;
mod support;
mod transcripts;

//! Tests of the public interface with real sockets.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod auth;
mod close;
mod connection;
mod dial;
mod harness;
mod listen;
mod outgoing;
mod relay;
mod tls;

//! Tests of the public interface with real sockets.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod auth;
mod close;
mod connection;
mod dial;
mod harness;
mod http;
mod http_client;
mod listen;
mod outgoing;
mod relay;
mod resume;
mod tls;
mod web_front;
mod websocket;

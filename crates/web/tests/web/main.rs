//! Tests of ACP over WebSocket and HTTP with real sockets.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod http;
mod http_client;
mod resume;
mod support;
mod web_server;
mod websocket;

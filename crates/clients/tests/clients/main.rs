//! Real sockets, one binary: each module is one part of the crate seen from outside.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod auth;
mod conn;
mod desk;
mod dial;
mod end;
mod front;
mod http;
mod listen;
mod outbox;
mod relay;
mod resume;
mod secure;
mod surf;
mod ws;

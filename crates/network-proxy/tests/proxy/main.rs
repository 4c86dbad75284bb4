//! The proxy on real sockets: a process on a Unix socket, hosts on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod addresses;
mod injection;
mod latency;
mod limits;
mod plain_http;
mod questions;
mod smuggling;
mod test_host;
mod test_proxy;
mod tunnels;

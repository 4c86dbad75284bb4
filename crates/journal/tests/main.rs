//! Tests of the public interface: the file format, killed writers and NATS servers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod file_format;
mod killed_writer;
mod ownership;
mod retention;
mod server_failures;

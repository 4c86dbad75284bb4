//! The programs and servers that tests of other crates start.

mod fake_agent;
mod fake_model;
mod nats;

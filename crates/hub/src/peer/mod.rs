//! Clients: who is connected, what each asked, and how each is answered.

mod client;
mod conn;
mod control;
mod handshake;
mod operator;
mod tenant_access;
#[cfg(test)]
mod tests;

pub(crate) use conn::{
    ClientConnection, Clients, IssuedRequest, RequestRoute, error_frame, outcome_frame,
};
pub use handshake::wants_notices;
pub(crate) use handshake::{agent_hello, check_setup, with_seq};

//! Client connections: what each client may do, its pending requests, and the requests that it was sent.

mod conn;
mod connect;
mod direct_requests;
mod handshake;
mod operator;
mod tenant_access;
#[cfg(test)]
mod tests;

pub(crate) use conn::{
    ClientConnection, Clients, IssuedRequest, RequestRoute, error_frame, outcome_frame,
};
pub(crate) use connect::on_listen_request;
pub use handshake::wants_notices;
pub(crate) use handshake::{PROTOCOL_VERSION, check_setup, with_seq};
pub(crate) use operator::{is_for_operator, refusal_reason};
pub(crate) use tenant_access::check_imported_dirs;

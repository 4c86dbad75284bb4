//! Relays a client to the hub so that it survives the end of a daemon: sessions, positions and pending requests.
//!
//! [`ClientRelay`] is the relay of one client on one connection. The gateway of a fleet has its own, because its clients
//! have connections to several hosts; both use [`ReplayPosition`] and [`RequestKeys`].

mod client_relay;
mod frame_fields;
mod hub_meta;
mod pending_requests;
mod replay_position;
mod request_keys;
#[cfg(test)]
mod tests;

pub use client_relay::{ClientRelay, RelayOutput};
pub use frame_fields::{event_seq, jackfield_meta, log_head, replays_history};
pub use replay_position::ReplayPosition;
pub use request_keys::RequestKeys;

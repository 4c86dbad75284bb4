//! The client of the hub: requests with their responses, notifications, the log of a session.
//!
//! Read in this order: [`HubMessage`] is a line of the hub, [`PendingRequests`] assigns ids to
//! requests and matches responses, [`ErrorResponse`] is a refusal. [`SessionReplay`] reads the log
//! of a session as [`EventLine`]s; [`EventDecoder`] restores events from the notifications that an
//! attached client gets. [`ClientRelay`] relays a client across lost connections. None of these does
//! any I/O, so a blocking client can use them, too.
//! [`HubConnection`] and [`EventLog`] combine them with a connection of `jackfield-transport`.
//!
//! **Invariant:** a response is delivered once, and only if its request is pending.
//!
//! **Invariant:** the events of a log are delivered in order and without gaps; a missing event is an
//! error.

mod connection;
mod error;
mod event_decoder;
mod event_line;
mod event_log;
#[cfg(test)]
mod fake_hub;
mod initialize;
mod message;
mod pending_requests;
mod relay;
mod session_list;
mod session_replay;

pub use connection::HubConnection;
pub use error::{ErrorResponse, HubClientError};
pub use event_decoder::{EventDecoder, parse_event};
pub use event_line::EventLine;
pub use event_log::{EventLog, LogEntry};
pub use initialize::{ClientProtocol, initialize_params};
pub use message::{HubMessage, HubResponse};
pub use pending_requests::PendingRequests;
pub use relay::{
    ClientRelay, RelayOutput, ReplayPosition, RequestKeys, event_seq, jackfield_meta, log_head,
    replays_history,
};
pub use session_list::parse_session_list;
pub use session_replay::{SessionReplay, attach_params};

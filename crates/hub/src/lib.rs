//! The hub: a state machine of sessions, clients and agents. Inputs go in, outputs come out, nothing else happens.
//!
//! Read in this order: [`input`], [`output`], [`hub`], then [`log`] (what is appended, and when it may be delivered),
//! `session` (turns, requests to the user, opening, restoring, delivery), `fanout` (subscribers and the messages that
//! events become), `peer` (clients and their requests), `agent` (processes and their messages), `tenant` (quotas and rate
//! limits).
//!
//! - **Invariant:** no I/O, no clock, no randomness, no hash order, no log lines: the same inputs
//!   give the same outputs.
//! - **Invariant:** one input, then drain [`Hub::poll_output`] to `None`, then the next input.
//! - **Invariant:** nothing is delivered that is not durable ([`log::DurabilityGate`]).
//! - **Invariant:** a client of a tenant sees and changes sessions of that tenant only.
//! - **Invariant:** [`Hub::handle`] cannot fail. Errors of a peer are answered to that peer, failures of the
//!   environment are inputs, errors of the hub are assertions.

mod agent;
pub mod budget;
mod config;
mod context;
mod fanout;
mod gauges;
pub mod hub;
mod id;
pub mod input;
mod key_index;
pub mod limits;
pub mod log;
pub mod output;
mod patience;
mod peer;
mod peer_process;
pub mod restart;
mod session;
mod session_name;
mod storage;
mod tenant;
pub mod timer;
mod unique_json;

pub use budget::ByteLimits;
pub use config::{AgentPool, AskRule, Config, Liveness, Sleep, Unanswered};
pub use fanout::{Rendering, cancel_notice};
pub use gauges::{Gauges, Process};
pub use hub::{Hub, Recovered};
pub use id::{AgentId, ConnId};
pub use input::{AppendFailure, Exit, Input};
pub use jackfield_events::{Seq, SessionId, Time};
pub use jackfield_policy::PolicySet;
pub use limits::Limits;
pub use output::{Environment, Launch, Note, Output, TERMINAL_PREFIX};
pub use patience::Patience;
pub use peer::wants_notices;
pub use peer_process::{PeerPlace, PeerProcess};
pub use session::{SHELL, rfc3339};
pub use session_name::{is_known_to, tenant_of};
pub use storage::StorageFault;
pub use tenant::{TENANT_NAME_RULE, Tenant, Usage, is_tenant_name, quota_fault};

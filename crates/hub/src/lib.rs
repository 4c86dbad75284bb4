//! The hub as a value: inputs go in, outputs come out, nothing else happens.
//!
//! Read in this order: [`input`], [`output`], [`hub`], then [`log`] (what is written down, and what
//! may be heard when), `session` (turns, asks, opening and restoring), `fanout` (who hears what),
//! `peer` (clients and their requests), `agent` (processes and their answers), `tenant` (whose a session
//! is, and who knows of it).
//!
//! - **Invariant:** no I/O, no clock, no randomness, no hash order, no log lines: the same inputs
//!   give the same outputs.
//! - **Invariant:** one input, then drain [`Hub::poll_output`] to `None`, then the next input.
//! - **Invariant:** nothing is heard that is not durable ([`log::Gate`]).
//! - **Invariant:** a client that is bound to a tenant hears and touches sessions of that tenant only.
//! - **Invariant:** [`Hub::handle`] cannot fail. What a peer got wrong is answered to that peer, what
//!   the world got wrong is an input, what we got wrong is an assertion.

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

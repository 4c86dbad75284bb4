//! The hub: a state machine of sessions, clients and agents. Inputs go in, outputs come out, nothing else happens.
//!
//! Read in this order: [`input`], [`output`], [`hub`] and `client_messages` (which dispatch), `sessions` (what concerns
//! several sessions), `session` (turns, requests to the user, opening, restoring, delivery), [`log`] (what is appended, and
//! when it may be delivered), `fanout` (subscribers and the messages that events become), `peer` (clients), `agent`
//! (processes), `tenant` (quotas and rate limits). A module uses only modules that come later in this list.
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
mod client_messages;
mod config;
mod context;
mod fallback;
mod fanout;
pub mod hub;
mod id;
pub mod input;
mod key_index;
pub mod limits;
pub mod log;
mod message;
pub mod output;
mod parts;
mod peer;
mod peer_process;
pub mod restart;
mod session;
mod session_name;
mod sessions;
mod storage;
mod tenant;
#[cfg(test)]
mod test_hub;
pub mod timer;
mod unique_json;

pub use budget::ByteLimits;
pub use config::{AgentPool, AskRule, Config, Liveness, McpConfig, Sleep, Unanswered};
pub use fanout::{Rendering, cancel_notice};
pub use hub::{Hub, Recovered, SandboxedSession};
pub use id::{AgentId, ConnId};
pub use input::{AppendFailure, Exit, Input, PageReadFailure};
pub use jackfield_events::{Seq, SessionId, Time};
pub use jackfield_policy::PolicySet;
pub use jackfield_protocol::rfc3339;
pub use limits::Limits;
pub use output::{
    Environment, Launch, ListenerChange, Note, Output, SandboxRequest, TERMINAL_PREFIX,
    VariantChoice,
};
pub use peer::wants_notices;
pub use peer_process::{PeerPlace, PeerProcess};
pub use session::SHELL;
pub use session_name::{is_known_to, tenant_of};
pub use sessions::{Gauges, Process};
pub use storage::StorageFault;
pub use tenant::{TENANT_NAME_RULE, Tenant, Usage, is_tenant_name, quota_fault};

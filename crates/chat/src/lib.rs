//! Our own agent: any model that is served over Chat Completions, as an agent on stdio.
//!
//! It is also how we would show somebody to write an agent, so it is built on the official SDK and
//! meant to be read. In this order: `settings` says where the model is, `agent` is the connection and
//! its methods, `session` is one conversation, `turn` is one prompt from its first word to its stop.
//! A turn asks the `model`, which streams; what it wants done is a `tool` of ours or one of an `mcp`
//! server; what was said is the `history`, and the `store` keeps it.
//!
//! ```text
//!  client ──prompt──► agent ──► session ──► turn ◄──deltas── model ◄──SSE── any Chat Completions server
//!    ▲                            │          │ ▲
//!    └──────── updates ───────────┼──────────┘ └──outcomes── tool, mcp ──► files, commands, servers
//!                                 ▼
//!                              history ──► store (SQLite)
//! ```
//!
//! **Invariant:** stdout is the protocol and nothing else; what people should know goes to stderr.
//!
//! **Invariant:** what the store holds of a session is always a prefix of its conversation, and a
//! request made of it is one that every server accepts: no two messages of the user in a row, no call
//! without its result.
//!
//! **Invariant:** every prompt can be cancelled at any moment, and the next one knows nothing of it.

mod agent;
mod commands;
mod content;
mod history;
mod http;
mod mcp;
mod model;
mod options;
mod probe;
mod process;
mod session;
mod sessions;
mod settings;
mod store;
mod system;
mod tool;
mod turn;

pub use agent::serve;
pub use probe::{Calls, Fitness, Flaw, Probed, probe};
pub use settings::Settings;

use jackfield_agents::GuardCommand;
use std::path::PathBuf;

/// What the agent needs of this machine.
#[derive(Debug, Clone)]
pub struct Host {
    pub settings: Settings,
    /// What commands and servers run under, so that none is left behind.
    pub guard: GuardCommand,
    /// Where sessions are kept: a file.
    pub store: PathBuf,
    /// Where it stands which processes are ours: a directory.
    pub ledger: PathBuf,
}

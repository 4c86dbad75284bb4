//! Our own agent: it speaks ACP on stdio and uses any model that is served over Chat Completions.
//!
//! It also serves as an example of how to write an agent, so it is built on the official SDK and
//! meant to be read. In this order: `settings` has the model server and its parameters,
//! `client_lines` the forms of requests that clients send, `agent` the connection and its methods, `session` one conversation, `turn` the run of one prompt. A turn
//! sends requests to the `model`, which streams responses. The tool calls of a response are run by
//! a `tool` of ours or by an `mcp` server. The conversation is the `history`, which the `store`
//! persists.
//!
//! ```text
//!  client ──prompt──► agent ──► session ──► turn ◄──deltas── model ◄──SSE── any Chat Completions server
//!    ▲                            │          │ ▲
//!    └──────── updates ───────────┼──────────┘ └──outcomes── tool, mcp ──► files, commands, servers
//!                                 ▼
//!                              history ──► store (SQLite)
//! ```
//!
//! **Invariant:** stdout carries the protocol and nothing else; messages for users go to stderr.
//!
//! **Invariant:** the stored history of a session is always a prefix of its conversation, and every
//! server accepts a request made from it: no two user messages in a row, no call without its
//! result.
//!
//! **Invariant:** every prompt can be canceled at any time, and has no effect on the next one.

mod agent;
mod bridge;
mod client_lines;
mod commands;
mod content;
mod history;
mod http;
mod mcp;
mod model;
mod mutex;
mod options;
mod probe;
mod process;
mod session;
mod session_registry;
mod settings;
mod spawn_context;
mod store;
mod system_prompt;
mod tool;
mod turn;

pub use agent::serve_agent;
pub use bridge::AgentProfile;
pub use client_lines::line_transport;
pub use probe::{ModelFitness, ProbeFinding, ProbeReport, ToolCallSupport, probe_model_server};
pub use settings::ChatSettings;

use jackfield_agents::GuardCommand;
use std::path::PathBuf;

/// The configuration of the agent on this machine.
#[derive(Debug, Clone)]
pub struct ChatAgentConfig {
    pub settings: ChatSettings,
    pub profile: AgentProfile,
    /// Runs commands and MCP servers, so that none of their processes is left behind.
    pub guard: GuardCommand,
    /// The file of the session store. A bridge does not use it.
    pub store_path: PathBuf,
    /// The directory in which running processes are recorded.
    pub ledger_dir: PathBuf,
}

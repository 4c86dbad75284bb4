//! Adapters that turn foreign agent CLIs into ACP agents. The output of a program becomes
//! `session/update` notifications; requests of the client become its arguments and its stdin.
//!
//! ```text
//!  client ──frames──► adapter ──argv, stdin──► program     adapter: sessions, turns, settings
//!         ◄─frames─── adapter ◄──lines, exit── program     dialect: the meaning of its lines
//! ```
//!
//! Read in this order: [`Dialect`] is the part that differs between programs, [`AdapterTurn`] is what a
//! dialect reports to, [`Adapter`] is the agent that a client connects to. All of them are values
//! without I/O; [`host`] runs an adapter on stdio as `jackfield adapt NAME`.
//!
//! **Invariant:** a turn has one outcome, and every tool call that was created in it is closed.
//!
//! **Invariant:** no text is sent twice and none is lost. A valid line that a dialect cannot map is
//! forwarded as `_meta`, and text between the lines of a JSON dialect as a notice; nothing is dropped
//! silently.

mod adapter;
mod claude;
mod codex;
mod colors;
mod copilot;
mod cursor;
mod dialect;
mod dialects;
mod failure;
mod gemini;
mod grok;
pub mod host;
mod kimi;
mod known_tools;
mod mcp;
mod opencode;
mod outcome;
mod pi;
mod plain;
mod program_capabilities;
mod prompt;
mod provider;
mod streamed_text;
mod tool_calls;
mod tool_update;
mod turn;
mod turn_effect;
mod unparsed_lines;
mod usage_total;

pub use adapter::{
    Adapter, AdapterOutput, AdapterSettings, ProgramId, SessionRecord, SessionStore,
};
pub use dialect::ProgramLifetime;
pub use dialect::{Dialect, PermissionAnswer, PrivateFile, ProgramSetting, StartContext};
pub use dialects::{DialectFactory, dialect_names, find_dialect};
pub use failure::{FailureCause, TurnFailure};
pub use outcome::{StopReason, TurnUsage};
pub use program_capabilities::ProgramCapabilities;
pub use prompt::{PromptBlock, PromptInput};
pub use streamed_text::StreamedText;
pub use tool_update::{ToolKind, ToolStatus, ToolUpdate};
pub use turn::AdapterTurn;
pub use turn_effect::{PermissionOption, PlanEntry};

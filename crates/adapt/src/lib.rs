//! Foreign CLIs as ACP agents: what they print becomes `session/update`, what a client asks becomes
//! their argv and stdin.
//!
//! ```text
//!  client ──frames──► adapter ──argv, stdin──► program          adapter: sessions, turns, settings
//!         ◄─frames─── adapter ◄──lines, end─── program          dialect: what one program's lines mean
//! ```
//!
//! Read in this order: [`Dialect`] is what differs between programs, [`Turn`] what they may say,
//! [`Adapter`] the agent that a client talks to. All of these are values without I/O; [`host`] runs
//! one on stdio as `jackfield adapt NAME`.
//!
//! **Invariant:** a turn has one outcome, and every tool call that was opened in it is closed.
//!
//! **Invariant:** no text is said twice and none is lost; a valid line that means nothing to us is
//! kept as `_meta`, never dropped in silence.

mod adapter;
mod calls;
mod claude;
mod codex;
mod copilot;
mod cursor;
mod dialect;
mod dialects;
mod failure;
mod gemini;
mod grok;
pub mod host;
mod kimi;
mod kinds;
mod opencode;
mod outcome;
mod pi;
mod plain;
mod prompt;
mod provider;
mod said;
mod tally;
mod tool;
mod turn;

pub use adapter::{Adapter, Memory, Note, Output, Program, Settings};
pub use dialect::{Answer, Can, Dialect, Handover, Life, Setting, Start};
pub use dialects::{dialect, names};
pub use failure::{Cause, Failure};
pub use outcome::{Stop, Usage};
pub use prompt::{Block, Prompt};
pub use said::Said;
pub use tool::{Kind, Status, Tool};
pub use turn::{AskOption, Entry, Turn};

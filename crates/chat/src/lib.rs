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

#![allow(dead_code, unused_imports, reason = "for the time of building")]

mod content;
mod history;
mod mcp;
mod model;
mod options;
mod process;
mod settings;
mod store;
mod tool;

pub use settings::Settings;

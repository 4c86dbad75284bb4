//! The left edge: agents as processes. Knows frames, never sessions.
//!
//! Read in this order: [`Launch`] says what to start, [`spawn`] starts it under a guard, `tend`
//! follows its life, `pump` turns its stdout into frames, `outbox` writes its stdin, [`guard`] is the
//! other process and ends the tree, [`Ledger`] remembers what runs, for the next daemon and for the
//! `ledger_watcher`, and `trees` which processes are below a guard. `os` is all that differs between systems. Before any of that: [`find`]
//! looks for an agent's program and [`probe`] asks it what it is.
//!
//! ```text
//!  daemon ──── socket: stop! / started, exited, swept ──── guard (subreaper)
//!    │                                                       │ parent
//!    └── stdin, stdout, stderr: straight, no hop ─────────── agent ── its tools, wherever they went
//! ```
//!
//! **Invariant:** a tree ends with its agent, with a stop, and with the daemon, however that died.
//! Nobody is signalled who is not proved to be ours at that moment.
//!
//! **Invariant:** the end of an agent is told at once, after everything it said; nothing that it left
//! behind can delay the news.
//!
//! **Invariant:** nothing grows without limit: a full channel stops the reading, a full backlog
//! refuses, long lines are dropped and counted.

mod agent_env;
mod chunk;
mod event;
pub mod find;
pub mod guard;
mod handle;
mod ledger;
mod ledger_watcher;
mod os;
mod outbox;
mod plain;
pub mod probe;
mod pump;
mod shortage;
mod spawn;
mod spec;
mod stderr;
mod stop;
mod sweep;
mod tend;
mod trees;

pub use event::{AgentEvent, Exit, Noise};
pub use handle::AgentHandle;
pub use ledger::{Ledger, Reaped};
pub use os::{
    MARK_VARIABLE, release_free_memory, resident_bytes, take_passed_socket, tree_resident_bytes,
};
pub use outbox::Full;
pub use spawn::{SpawnError, spawn, spawn_with};
pub use spec::{GuardCommand, Launch, Limits, Speaks};
pub use stop::{Graces, Stop};
pub use trees::{PeerLookup, ProcessPlace};

//! Runs agents as processes. This crate knows frames, but not sessions.
//!
//! Read in this order: [`LaunchCommand`] describes what to start, [`spawn_agent`] starts it under a
//! guard, `supervisor` follows the process, `stdout_reader` turns its stdout into frames,
//! `stdin_writer` writes its stdin, [`guard`] is the process that ends the agent's process tree,
//! [`ProcessLedger`] records the running processes for the next daemon and for the
//! `ledger_watcher`, and `agent_trees` knows which processes are below a guard. `os` contains all
//! that differs between operating systems. Before an agent is started, [`find`] searches its
//! program and [`probe`] queries the program's version, login and models. [`install`] installs agents
//! into folders of our own, which [`installed`] describes.
//!
//! ```text
//!  daemon ──── socket: stop! / started, exited, swept ──── guard
//!    │                                                       │ parent
//!    └── stdin, stdout, stderr: directly, no relay ───────── agent ── its tools
//! ```
//!
//! **Invariant:** a process tree ends with its agent, with a stop request, and with the daemon,
//! even if the daemon is killed. A process is signaled only if it is proved at that moment to
//! belong to one of our trees.
//!
//! **Invariant:** the exit of an agent is reported at once, after all its output. Processes that it
//! left behind cannot delay the report.
//!
//! **Invariant:** nothing grows without limit: a full channel stops the reading, a full backlog
//! refuses frames, and long lines are dropped and counted.

mod agent_env;
mod agent_trees;
mod event;
pub mod find;
pub mod guard;
mod handle;
pub mod install;
pub mod installed;
mod launch_command;
mod ledger;
mod ledger_watcher;
mod os;
mod output_tail;
mod pipe_reader;
pub mod probe;
mod shortage;
mod spawn;
mod stderr_reader;
mod stdin_writer;
mod stdout_reader;
mod stop;
mod supervisor;
mod sweep;
mod terminal_escapes;
mod tree_tracker;
mod watcher_handle;

pub use agent_trees::{PeerLookup, ProcessPlace};
pub use event::{AgentExit, AgentProcessEvent, StdoutNoise};
pub use handle::AgentHandle;
pub use launch_command::{GuardCommand, LaunchCommand, ProcessLimits, StdoutFormat};
pub use ledger::{ProcessLedger, ReapReport};
pub use os::{
    KillTimer, MARK_VARIABLE, ProcessPin, Signal, holds_lock, release_free_memory, resident_bytes,
    take_passed_socket, time_since_boot, tree_resident_bytes,
};
pub use spawn::{SpawnError, spawn_agent, spawn_agent_with_limits};
pub use stdin_writer::BacklogFull;
pub use stop::{GracePeriods, StopUrgency};

//! Everything that differs between operating systems, and the only place with `unsafe` code in the
//! project. No other code may test for an operating system, except for the system calls of sockets
//! in `transport/src/socket_system.rs`; `cargo xtask tidy` checks this.
//!
//! `linux` and `macos` have the same names with the same meaning. The files beside them need
//! nothing but Unix, or build on these names. `conformance` tests every promise below on the system
//! it runs on, so a new system needs a folder with these names, and has to pass that suite.
//!
//! | name | promise |
//! |---|---|
//! | [`ProcessTable`] | the rows, children, environments, executables and memory of processes |
//! | [`ProcessIdentity`] | distinguishes a process from a later one with the same pid |
//! | [`ProcessPin`] | notices the exit of any process of this user, and signals only this process |
//! | [`PeerPin`] | the same for the process at the other end of a socket |
//! | [`SignalReader`] | signals, and the forks of followed processes, as a readable descriptor |
//! | [`reap`] | the exit statuses of children |
//! | [`launch`] | becomes a guard; starts an agent that does not outlive its guard for long |
//! | [`fd_passing`] | passes an open file to another process, which does not inherit it further |
//! | [`pipe_capacity`] | the number of bytes that a full pipe holds |
//! | [`NO_SIGNAL`], [`suppress_sigpipe`] | a write to a closed socket fails and sends no signal |
//! | [`current_start_time`], [`start_time_span`] | the clock of start times |
//! | [`time_since_boot`] | a clock that also counts while the machine sleeps |
//! | [`boot_id`] | differs for each boot |
//! | [`holds_lock`] | whether a process holds the lock of a file |
//! | [`take_passed_socket`] | takes over a socket from a service manager |
//! | [`release_free_memory`] | returns freed memory to the system |
//!
//! What a system may lack, and says so:
//!
//! | name | Linux | macOS |
//! |---|---|---|
//! | [`ORPHAN_PARENT`] | the guard (subreaper) | launchd: `TreeTracker` follows the tree instead |
//! | an agent dies with its guard | parent-death signal | the daemon, the watcher or the next daemon ends it |
//! | [`cgroup`] | if delegated to this user | none |
//! | [`KillTimer`] | a kernel timer | refused, and with it membership in a fleet |
//! | environments of other processes | all of this user | not of programs that the system protects |

#[cfg(test)]
mod conformance;
pub(crate) mod fd_passing;
pub(crate) mod launch;
#[cfg(target_os = "linux")]
mod linux;
// The pure parts are tested on every system.
#[cfg(any(target_os = "macos", test))]
mod macos;
mod memory;
mod passed_socket;
mod process_identity;
mod process_pin;
mod process_search;
mod reap;
mod signal_set;

#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("this system is not supported: add a folder for it to `crates/agents/src/os`");

pub use memory::release_free_memory;
pub use passed_socket::take_passed_socket;
pub(crate) use process_identity::{ProcessIdentity, signal_if};
pub use process_pin::ProcessPin;
pub(crate) use process_search::ProcessRow;
pub(crate) use reap::{ReapResult, reap};
pub use rustix::process::Signal;
pub use system::{KillTimer, holds_lock, time_since_boot};
pub(crate) use system::{
    NO_SIGNAL, ORPHAN_PARENT, PeerPin, ProcessTable, SignalReader, boot_id, cgroup,
    current_start_time, pipe_capacity, start_time_span, suppress_sigpipe,
};

/// The environment variable that marks every process that an agent starts.
pub const MARK_VARIABLE: &str = "JACKFIELD_AGENT_MARK";

/// The process that becomes the parent of a process whose parent has exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrphanParent {
    /// The guard above it: the tree of an agent is complete.
    Guard,
    /// The first process of the system: orphans must be recognized by other means.
    Init,
}

/// The resident memory of a process without its descendants; 0 if it has exited.
pub fn resident_bytes(pid: u32) -> u64 {
    ProcessTable::system().resident_bytes(pid).unwrap_or(0)
}

/// The resident memory of a process and all its descendants. Shared pages count for each of them.
pub fn tree_resident_bytes(pid: u32) -> u64 {
    let table = ProcessTable::system();
    let below = table.descendants(&[pid]).into_iter().map(|it| it.pid);
    below.chain([pid]).filter_map(|it| table.resident_bytes(it)).sum()
}

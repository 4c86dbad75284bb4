//! Everything that differs between operating systems, and the only place with `unsafe` code in the
//! project.
//!
//! A port to another system needs: to distinguish a process from a later one with the same pid and
//! to signal it ([`ProcessIdentity`]), to list descendants and marked processes
//! ([`ProcessTable`]), to be notified of exited children and of signals ([`SignalReader`],
//! [`reap`]), to start an agent that dies with its guard ([`launch`]), to pass an open file to
//! another process ([`fd_passing`]), to pin the process at the other end of a socket ([`PeerPin`]),
//! to take over a socket from a service manager ([`take_passed_socket`]), and to return memory to
//! the system ([`release_free_memory`]). Control groups ([`cgroup`]) are optional.

#[cfg(not(target_os = "linux"))]
compile_error!("the guard supports only Linux: `os/` must be ported to this system");

pub(crate) mod cgroup;
pub(crate) mod fd_passing;
pub(crate) mod launch;
mod memory;
mod passed_socket;
mod peer_pin;
mod process_identity;
mod process_table;
mod reap;
mod signals;
pub(crate) mod ticks;

pub use memory::release_free_memory;
pub use passed_socket::take_passed_socket;
pub(crate) use peer_pin::PeerPin;
pub(crate) use process_identity::ProcessIdentity;
pub(crate) use process_identity::signal_if;
pub(crate) use process_table::{ProcessRow, ProcessTable};
pub(crate) use reap::{ReapResult, reap};
pub(crate) use rustix::process::Signal;
pub(crate) use signals::SignalReader;

/// The environment variable that marks every process that an agent starts.
pub const MARK_VARIABLE: &str = "JACKFIELD_AGENT_MARK";

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

/// An id that differs for each boot, so that pids and start times of earlier boots can be ignored.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

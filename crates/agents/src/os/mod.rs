//! Everything that differs between operating systems, and the only home of `unsafe` in the project.
//!
//! Another system needs these things: to tell a process from a later one with the same number
//! and to signal it ([`Process`]), to list descendants and marked processes ([`Table`]), to hear of
//! ended children and signals ([`Signals`], [`reap`]), to start an agent that dies with its guard
//! ([`launch`]), to hand an open file to another process ([`handover`]), to hold the process at the
//! other end of a socket ([`PeerPin`]), to take over a socket that was passed ([`take_passed_socket`]), and to
//! give memory back ([`release_free_memory`]). A group that nobody leaves ([`cgroup`]) is a bonus.

#[cfg(not(target_os = "linux"))]
compile_error!("the guard knows only Linux so far: `os/` needs a sibling for this system");

pub(crate) mod cgroup;
pub(crate) mod handover;
pub(crate) mod launch;
mod memory;
mod passed;
mod peer;
mod process;
mod reap;
mod signals;
mod table;
pub(crate) mod ticks;

pub use memory::release_free_memory;
pub use passed::take_passed_socket;
pub(crate) use peer::PeerPin;
pub(crate) use process::Process;
pub(crate) use process::signal_if;
pub(crate) use reap::{Reap, reap};
pub(crate) use rustix::process::Signal;
pub(crate) use signals::Signals;
pub(crate) use table::{Row, Table};

/// The name of the variable that marks everything an agent starts, wherever it went.
pub const MARK_VARIABLE: &str = "JACKFIELD_AGENT_MARK";

/// What a process has in memory, without its descendants; 0 if it is gone.
pub fn resident_bytes(pid: u32) -> u64 {
    Table::system().resident_bytes(pid).unwrap_or(0)
}

/// What a process and all its descendants have in memory, pages that they share counted for each.
pub fn tree_resident_bytes(pid: u32) -> u64 {
    let table = Table::system();
    let below = table.descendants(&[pid]).into_iter().map(|it| it.pid);
    below.chain([pid]).filter_map(|it| table.resident_bytes(it)).sum()
}

/// Different after every boot, so that a pid and a start time of an earlier boot prove nothing.
pub(crate) fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

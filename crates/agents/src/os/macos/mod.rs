//! macOS: `libproc`, `sysctl` and kqueue. There are no subreapers, no parent-death signals, no
//! control groups and no timers that kill.

mod kernel_records;

#[cfg(target_os = "macos")]
pub(crate) mod cgroup;
#[cfg(target_os = "macos")]
mod clock;
#[cfg(target_os = "macos")]
mod file_lock;
#[cfg(target_os = "macos")]
mod kernel_calls;
#[cfg(target_os = "macos")]
mod kill_timer;
#[cfg(target_os = "macos")]
pub(super) mod launch;
#[cfg(target_os = "macos")]
mod peer_pin;
#[cfg(target_os = "macos")]
pub(super) mod process_pin;
#[cfg(target_os = "macos")]
mod process_table;
#[cfg(target_os = "macos")]
mod signals;
#[cfg(target_os = "macos")]
mod sockets;

#[cfg(target_os = "macos")]
mod names {
    pub use super::clock::time_since_boot;
    pub(crate) use super::clock::{boot_id, current_start_time, start_time_span};
    pub use super::file_lock::holds_lock;
    pub use super::kill_timer::KillTimer;
    pub(in crate::os) use super::launch::OPEN_DESCRIPTORS;
    pub(crate) use super::launch::ORPHAN_PARENT;
    pub(crate) use super::peer_pin::PeerPin;
    pub(crate) use super::process_table::ProcessTable;
    pub(crate) use super::signals::SignalReader;
    pub(in crate::os) use super::sockets::RECEIVE_FILE;
    pub(crate) use super::sockets::{NO_SIGNAL, pipe_capacity, suppress_sigpipe};
}

#[cfg(target_os = "macos")]
pub use names::*;

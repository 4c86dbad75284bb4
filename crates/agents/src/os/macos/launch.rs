//! What keeps a tree of processes together on macOS: little. The guard follows the tree itself.

use crate::os::OrphanParent;
use rustix::io::Errno;
use rustix::process as sys;
use std::ffi::CStr;
use std::io;

/// Orphans become children of launchd.
pub(crate) const ORPHAN_PARENT: OrphanParent = OrphanParent::Init;

/// The directory that lists the open descriptors of this process.
pub(in crate::os) const OPEN_DESCRIPTORS: &str = "/dev/fd";

/// Does nothing: see [`ORPHAN_PARENT`].
#[expect(clippy::unnecessary_wraps, reason = "it can fail on other systems")]
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(())
}

/// Does nothing: a process cannot change its name.
pub(crate) fn set_process_name(_name: &CStr) {}

/// Fails if the parent has already exited. To be called between fork and exec. If the parent exits
/// later, the daemon, the ledger watcher or the next daemon ends this process.
pub(crate) fn end_with_parent(parent: sys::Pid) -> io::Result<()> {
    if sys::getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
}

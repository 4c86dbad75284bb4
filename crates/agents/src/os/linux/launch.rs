//! What Linux offers to keep a tree of processes together: a subreaper and parent-death signals.

use rustix::io::Errno;
use rustix::process as sys;
use std::ffi::CStr;
use std::io;

/// Makes this process the parent of its orphaned descendants.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(sys::set_child_subreaper(Some(sys::getpid()))?)
}

/// Sets the name of this process in `ps -c` and for `killall`. If that fails, only the protection
/// from a kill by name is missing.
pub(crate) fn set_process_name(name: &CStr) {
    let _kept = rustix::thread::set_name(name);
}

/// Lets the kernel kill this process when its parent exits. To be called between fork and exec;
/// fails if the parent has already exited.
pub(crate) fn end_with_parent(parent: sys::Pid) -> io::Result<()> {
    sys::set_parent_process_death_signal(Some(sys::Signal::KILL))?;
    // The parent may have exited just before, and then the signal would never be sent.
    if sys::getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH.into()) }
}

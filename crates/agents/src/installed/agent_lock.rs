//! The lock of an agent's folder: one command at a time changes it.

use jackfield_private_files as private_files;
use rustix::{
    fs::{FlockOperation, flock},
    io::{Errno, FdFlags, fcntl_setfd, retry_on_intr},
};
use std::{
    fs::{File, OpenOptions},
    io,
    path::Path,
};

/// Held until it is dropped, and by the package manager that was started with [`AgentLock::share_with_children`]: if the
/// command is killed, its package manager may still be writing into the folder.
#[derive(Debug)]
pub struct AgentLock {
    file: File,
}

impl AgentLock {
    /// Acquires the lock; `None` if another process holds it.
    pub(super) fn try_acquire(path: &Path) -> io::Result<Option<AgentLock>> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let file = private_files::open_file(path, &mut options)?;
        match retry_on_intr(|| flock(&file, FlockOperation::NonBlockingLockExclusive)) {
            Ok(()) => Ok(Some(AgentLock { file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether processes that are started from now on keep the lock until they have exited.
    pub(crate) fn share_with_children(&self, is_shared: bool) -> io::Result<()> {
        let flags = if is_shared { FdFlags::empty() } else { FdFlags::CLOEXEC };
        Ok(fcntl_setfd(&self.file, flags)?)
    }
}

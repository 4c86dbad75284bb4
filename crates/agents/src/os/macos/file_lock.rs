//! Who holds a lock of `flock`. The kernel does not tell, so it is the process that has the file
//! open while the file is locked.

use super::kernel_calls::{descriptor_list, vnode_info};
use super::kernel_records::{parse_file_descriptors, parse_file_identity};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Whether this process has the file open, and the file is locked. A process that has ended does
/// not. The caller read the pid from the file, into which only a holder writes.
pub fn holds_lock(pid: u32, file: &Path) -> bool {
    let Ok(lock) = File::open(file) else { return false };
    let Ok(metadata) = lock.metadata() else { return false };
    let descriptors = descriptor_list(pid).unwrap_or_default();
    let is_lock = |descriptor: i32| {
        let identity = vnode_info(pid, descriptor).and_then(|it| parse_file_identity(&it));
        identity.is_some_and(|(device, inode)| {
            (u64::from(device), inode) == (metadata.dev(), metadata.ino())
        })
    };
    let is_open = parse_file_descriptors(&descriptors).into_iter().any(is_lock);
    let shared = || flock(&lock, FlockOperation::NonBlockingLockShared);
    is_open && retry_on_intr(shared) == Err(Errno::WOULDBLOCK)
}

//! Parses the records of the kernel of macOS. Pure, and therefore tested on every system.
//!
//! The layouts are those of `sys/proc_info.h` and of the `sysctl` `KERN_PROCARGS2`, which are part of
//! the system's interface. Numbers have the byte order of the machine, and both processors that
//! macOS runs on are little-endian.

use crate::os::{ProcessIdentity, ProcessRow};
use std::ops::Range;

/// The length of `struct proc_bsdinfo`.
pub(super) const BSD_INFO_BYTES: usize = 136;
/// The length of `struct proc_bsdshortinfo`.
pub(super) const SHORT_BSD_INFO_BYTES: usize = 64;
/// The length of `struct proc_taskinfo`.
pub(super) const TASK_INFO_BYTES: usize = 96;
/// The length of `struct vnode_fdinfo`: `proc_fileinfo` (24 bytes) and `vnode_info` (152 bytes).
pub(super) const VNODE_FD_INFO_BYTES: usize = 176;
/// The length of `struct proc_fdinfo`.
pub(super) const FD_INFO_BYTES: usize = 8;

/// The value of `pbi_status` for a process that has exited and was not reaped.
const STATUS_ZOMBIE: u32 = 5;
/// The value of `proc_fdtype` for a file.
const FD_TYPE_VNODE: u32 = 1;

/// Parses `struct proc_bsdinfo`. The start time is in microseconds since the epoch.
pub(super) fn parse_bsd_info(record: &[u8]) -> Option<ProcessRow> {
    if record.len() < BSD_INFO_BYTES {
        return None;
    }
    let (seconds, micros) = (read_u64(record, 120)?, read_u64(record, 128)?);
    let start = seconds.checked_mul(1_000_000)?.checked_add(micros)?;
    Some(ProcessRow {
        process: ProcessIdentity { pid: read_u32(record, 12)?, start },
        parent: read_u32(record, 16)?,
        group: read_u32(record, 100)?,
        zombie: read_u32(record, 4)? == STATUS_ZOMBIE,
    })
}

/// Parses `struct proc_bsdshortinfo`, which the kernel gives for processes of every user and which
/// has no start time: it is 0.
pub(super) fn parse_short_bsd_info(record: &[u8]) -> Option<ProcessRow> {
    if record.len() < SHORT_BSD_INFO_BYTES {
        return None;
    }
    Some(ProcessRow {
        process: ProcessIdentity { pid: read_u32(record, 0)?, start: 0 },
        parent: read_u32(record, 4)?,
        group: read_u32(record, 8)?,
        zombie: read_u32(record, 12)? == STATUS_ZOMBIE,
    })
}

/// The resident memory in `struct proc_taskinfo`.
pub(super) fn parse_resident_bytes(record: &[u8]) -> Option<u64> {
    (TASK_INFO_BYTES <= record.len()).then(|| read_u64(record, 8)).flatten()
}

/// The pids in a list of `proc_listpids`, which has zeros for unused places.
pub(super) fn parse_pids(list: &[u8]) -> Vec<u32> {
    let numbers = list.as_chunks().0.iter().map(|it| i32::from_ne_bytes(*it));
    numbers.filter_map(|it| u32::try_from(it).ok()).filter(|it| *it != 0).collect()
}

/// The descriptors that are files, in a list of `struct proc_fdinfo`.
pub(super) fn parse_file_descriptors(list: &[u8]) -> Vec<i32> {
    let records = list.chunks_exact(FD_INFO_BYTES);
    let files = records.filter(|it| read_u32(it, 4) == Some(FD_TYPE_VNODE));
    files.filter_map(|it| read_u32(it, 0)).map(u32::cast_signed).collect()
}

/// Device and inode in `struct vnode_fdinfo`.
pub(super) fn parse_file_identity(record: &[u8]) -> Option<(u32, u64)> {
    // After `proc_fileinfo`: `vst_dev` (4), `vst_mode` (2), `vst_nlink` (2), `vst_ino` (8).
    (VNODE_FD_INFO_BYTES <= record.len())
        .then(|| Some((read_u32(record, 24)?, read_u64(record, 32)?)))
        .flatten()
}

/// The environment in a buffer of `KERN_PROCARGS2`: the number of arguments, the executable, zeros,
/// the arguments, and then the variables until an empty one. `None` if the buffer is cut off before
/// the variables; empty if the system hides them.
pub(super) fn find_environment(buffer: &[u8]) -> Option<Range<usize>> {
    let (count, rest) = buffer.split_first_chunk()?;
    let arguments = usize::try_from(i32::from_ne_bytes(*count)).ok()?;
    let find_zero = |from: usize| Some(from + buffer[from..].iter().position(|it| *it == 0)?);
    let executable_end = find_zero(buffer.len() - rest.len())?;
    let padding = buffer[executable_end..].iter().position(|it| *it != 0);
    let mut start = padding.map_or(buffer.len(), |it| executable_end + it);
    for _ in 0..arguments {
        start = find_zero(start)? + 1;
    }
    let mut end = start;
    while let Some(zero) = find_zero(end) {
        if zero == end {
            return Some(start..end);
        }
        end = zero + 1;
    }
    // The last variable may be cut off.
    Some(start..buffer.len())
}

fn read_u32(record: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*record.get(offset..)?.first_chunk()?))
}

fn read_u64(record: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*record.get(offset..)?.first_chunk()?))
}

#[cfg(test)]
mod tests;

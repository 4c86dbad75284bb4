//! Calls of `libproc` and `sysctl` that return records of bytes.
#![expect(unsafe_code, reason = "the calls have no safe interface")]

use super::kernel_records::{
    BSD_INFO_BYTES, FD_INFO_BYTES, SHORT_BSD_INFO_BYTES, TASK_INFO_BYTES, VNODE_FD_INFO_BYTES,
    parse_pids,
};
use std::ffi::CStr;
use std::mem::{offset_of, size_of};

// The parser counts offsets; they must be those of the system's headers.
const _: () = {
    assert!(size_of::<libc::proc_bsdinfo>() == BSD_INFO_BYTES);
    assert!(offset_of!(libc::proc_bsdinfo, pbi_status) == 4);
    assert!(offset_of!(libc::proc_bsdinfo, pbi_pid) == 12);
    assert!(offset_of!(libc::proc_bsdinfo, pbi_ppid) == 16);
    assert!(offset_of!(libc::proc_bsdinfo, pbi_pgid) == 100);
    assert!(offset_of!(libc::proc_bsdinfo, pbi_start_tvsec) == 120);
    assert!(offset_of!(libc::proc_bsdinfo, pbi_start_tvusec) == 128);
    assert!(size_of::<libc::proc_bsdshortinfo>() == SHORT_BSD_INFO_BYTES);
    assert!(offset_of!(libc::proc_bsdshortinfo, pbsi_ppid) == 4);
    assert!(offset_of!(libc::proc_bsdshortinfo, pbsi_pgid) == 8);
    assert!(offset_of!(libc::proc_bsdshortinfo, pbsi_status) == 12);
    assert!(size_of::<libc::proc_taskinfo>() == TASK_INFO_BYTES);
    assert!(offset_of!(libc::proc_taskinfo, pti_resident_size) == 8);
    assert!(size_of::<libc::proc_fdinfo>() == FD_INFO_BYTES);
    assert!(24 + size_of::<libc::vnode_info>() == VNODE_FD_INFO_BYTES);
    assert!(offset_of!(libc::vinfo_stat, vst_ino) == 8);
    assert!(libc::SZOMB == 5);
};

/// The kinds of `proc_listpids`, from `sys/proc_info.h`.
const ALL_PIDS: u32 = 1;
const CHILDREN: u32 = 6;
/// The kind of `proc_pidfdinfo` for files.
const FD_VNODE_INFO: libc::c_int = 1;
/// `proc_pidinfo` then also finds processes that have exited and were not reaped.
const WITH_ZOMBIES: u64 = 1;
/// Room for processes that start between the two calls.
const SPARE_PLACES: usize = 64;

/// All pids of the machine.
pub(super) fn all_pids() -> Vec<u32> {
    list_pids(ALL_PIDS, 0)
}

pub(super) fn child_pids(parent: u32) -> Vec<u32> {
    list_pids(CHILDREN, parent)
}

fn list_pids(kind: u32, of: u32) -> Vec<u32> {
    // SAFETY: a null buffer of length 0 asks for the number of bytes.
    let needed = unsafe { libc::proc_listpids(kind, of, std::ptr::null_mut(), 0) };
    let needed = usize::try_from(needed).unwrap_or(0);
    let mut list = vec![0_u8; needed + SPARE_PLACES * size_of::<libc::pid_t>()];
    let length = to_length(list.len());
    // SAFETY: the buffer has this length and outlives the call; any bytes are valid for it.
    let written = unsafe { libc::proc_listpids(kind, of, list.as_mut_ptr().cast(), length) };
    list.truncate(usize::try_from(written).unwrap_or(0));
    parse_pids(&list)
}

/// `struct proc_bsdinfo`; `None` if there is no such process, or if it belongs to another user.
pub(super) fn bsd_info(pid: u32) -> Option<[u8; BSD_INFO_BYTES]> {
    let mut record = [0; BSD_INFO_BYTES];
    let filled = pid_info(pid, libc::PROC_PIDTBSDINFO, WITH_ZOMBIES, &mut record)?;
    (filled == BSD_INFO_BYTES).then_some(record)
}

/// `struct proc_bsdshortinfo`; `None` if there is no such process.
pub(super) fn short_bsd_info(pid: u32) -> Option<[u8; SHORT_BSD_INFO_BYTES]> {
    let mut record = [0; SHORT_BSD_INFO_BYTES];
    let filled = pid_info(pid, libc::PROC_PIDT_SHORTBSDINFO, WITH_ZOMBIES, &mut record)?;
    (filled == SHORT_BSD_INFO_BYTES).then_some(record)
}

/// `struct proc_taskinfo`; `None` if the process has exited or belongs to another user.
pub(super) fn task_info(pid: u32) -> Option<[u8; TASK_INFO_BYTES]> {
    let mut record = [0; TASK_INFO_BYTES];
    let filled = pid_info(pid, libc::PROC_PIDTASKINFO, 0, &mut record)?;
    (filled == TASK_INFO_BYTES).then_some(record)
}

/// A list of `struct proc_fdinfo`.
pub(super) fn descriptor_list(pid: u32) -> Option<Vec<u8>> {
    // SAFETY: a null buffer of length 0 asks for the number of bytes.
    let needed = unsafe {
        libc::proc_pidinfo(to_pid(pid)?, libc::PROC_PIDLISTFDS, 0, std::ptr::null_mut(), 0)
    };
    let needed = usize::try_from(needed).ok()?;
    let mut list = vec![0; needed + SPARE_PLACES * FD_INFO_BYTES];
    let filled = pid_info(pid, libc::PROC_PIDLISTFDS, 0, &mut list)?;
    list.truncate(filled);
    Some(list)
}

/// `struct vnode_fdinfo` of an open file of a process.
pub(super) fn vnode_info(pid: u32, descriptor: i32) -> Option<[u8; VNODE_FD_INFO_BYTES]> {
    let mut record = [0_u8; VNODE_FD_INFO_BYTES];
    let length = to_length(record.len());
    // SAFETY: the buffer has this length and outlives the call; any bytes are valid for it.
    let filled = unsafe {
        libc::proc_pidfdinfo(
            to_pid(pid)?,
            descriptor,
            FD_VNODE_INFO,
            record.as_mut_ptr().cast(),
            length,
        )
    };
    (usize::try_from(filled) == Ok(VNODE_FD_INFO_BYTES)).then_some(record)
}

fn pid_info(pid: u32, kind: libc::c_int, argument: u64, record: &mut [u8]) -> Option<usize> {
    let length = to_length(record.len());
    // SAFETY: the buffer has this length and outlives the call; any bytes are valid for it.
    let filled = unsafe {
        libc::proc_pidinfo(to_pid(pid)?, kind, argument, record.as_mut_ptr().cast(), length)
    };
    usize::try_from(filled).ok().filter(|it| 0 < *it)
}

/// The path of the executable of a process.
pub(super) fn executable_path(pid: u32) -> Option<Vec<u8>> {
    let mut path = vec![0_u8; libc::PROC_PIDPATHINFO_MAXSIZE.unsigned_abs() as usize];
    let length = u32::try_from(path.len()).ok()?;
    // SAFETY: the buffer has this length and outlives the call; any bytes are valid for it.
    let written = unsafe { libc::proc_pidpath(to_pid(pid)?, path.as_mut_ptr().cast(), length) };
    path.truncate(usize::try_from(written).ok().filter(|it| 0 < *it)?);
    Some(path)
}

/// The arguments and the environment of a process of this user, as `KERN_PROCARGS2` returns them.
pub(super) fn read_arguments(pid: u32, buffer: &mut Vec<u8>) -> Option<()> {
    let mut name = [libc::CTL_KERN, libc::KERN_PROCARGS2, to_pid(pid)?];
    buffer.resize(argument_bytes_max(), 0);
    let mut length = buffer.len();
    // SAFETY: name and buffer have the given lengths and outlive the call, which writes at most
    // `length` bytes and changes no setting.
    let status = unsafe {
        libc::sysctl(
            name.as_mut_ptr(),
            3,
            buffer.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    buffer.truncate(length);
    (status == 0).then_some(())
}

/// The kernel's limit of arguments and environment together; a larger buffer is refused.
fn argument_bytes_max() -> usize {
    const ARGUMENT_BYTES: usize = 1 << 20;
    // SAFETY: it takes no pointer.
    let limit = unsafe { libc::sysconf(libc::_SC_ARG_MAX) };
    usize::try_from(limit).unwrap_or(ARGUMENT_BYTES)
}

/// A setting of the kernel that is text.
pub(super) fn kernel_text(name: &CStr) -> Option<String> {
    let mut text = vec![0_u8; 256];
    let mut length = text.len();
    // SAFETY: the name ends with a zero byte; the buffer has this length and outlives the call,
    // which changes no setting.
    let status = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            text.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    text.truncate(length);
    let text = (status == 0).then(|| CStr::from_bytes_until_nul(&text).ok()).flatten()?;
    text.to_str().ok().map(str::to_owned)
}

fn to_pid(pid: u32) -> Option<libc::pid_t> {
    pid.try_into().ok()
}

fn to_length(bytes: usize) -> libc::c_int {
    bytes.try_into().unwrap_or(libc::c_int::MAX)
}

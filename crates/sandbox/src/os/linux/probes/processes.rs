//! Attempts on other processes.
#![expect(unsafe_code, reason = "calls without a safe form")]

use super::attempt_error::{AttemptError, AttemptResult, check, check_descriptor};
use super::files::{find_secret, read_secret};
use crate::probes::{OutsideTargets, ProbeTargets};
use std::{
    fs::{self, File},
    io,
    os::{fd::AsRawFd as _, unix::fs::FileExt as _},
    path::Path,
};

pub(super) fn attempt(name: &str, targets: &ProbeTargets) -> Option<AttemptResult> {
    let outside = &targets.outside;
    let pid = outside.process;
    let file = |name: &str| format!("/proc/{pid}/{name}");
    Some(match name {
        "see-processes" => fs::metadata(file("stat")).map(drop).map_err(Into::into),
        "read-environment" => read_secret(Path::new(&file("environ")), targets),
        "read-memory-file" => read_memory_file(&file("mem"), outside),
        "read-process-root" => {
            let key = targets.resolve("~/.ssh/id_ed25519");
            let key = key.strip_prefix("/").unwrap_or(&key).to_owned();
            read_secret(&Path::new(&file("root")).join(key), targets)
        }
        "trace-process" => trace(pid),
        "read-memory-call" => read_memory(outside),
        "signal-process" => signal(pid),
        "signal-pidfd" => signal_by_descriptor(pid),
        "limit-process" => limit(pid),
        "read-shared-memory" => read_shared_memory(targets),
        _ => return None,
    })
}

fn read_memory_file(path: &str, outside: &OutsideTargets) -> AttemptResult {
    File::open(path)?.read_exact_at(&mut [0; 8], outside.process_memory)?;
    Ok(())
}

fn read_memory(outside: &OutsideTargets) -> AttemptResult {
    let mut bytes = [0_u8; 8];
    let address = usize::try_from(outside.process_memory)
        .map_err(|it| AttemptError::Failed(it.to_string()))?;
    let local = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let remote =
        libc::iovec { iov_base: std::ptr::without_provenance_mut(address), iov_len: bytes.len() };
    // SAFETY: the local memory has this length; the remote address is one of the other process.
    let status = unsafe {
        libc::process_vm_readv(outside.process, &raw const local, 1, &raw const remote, 1, 0)
    };
    check(status as i64)?;
    Ok(())
}

/// The kernel ends the tracing when this process ends.
fn trace(pid: i32) -> AttemptResult {
    // SAFETY: the call takes numbers.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0) })?;
    Ok(())
}

/// The signal 0 changes nothing, and needs the permission of others.
fn signal(pid: i32) -> AttemptResult {
    // SAFETY: the call takes numbers.
    check(unsafe { libc::kill(pid, 0) })?;
    Ok(())
}

fn signal_by_descriptor(pid: i32) -> AttemptResult {
    // SAFETY: the calls take numbers, and no information about the signal.
    unsafe {
        let descriptor = check_descriptor(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
        check(libc::syscall(libc::SYS_pidfd_send_signal, descriptor.as_raw_fd(), 0, 0, 0))?;
    }
    Ok(())
}

/// Sets the limit that the process already has.
fn limit(pid: i32) -> AttemptResult {
    // SAFETY: the structure consists of numbers, and both calls get a pointer to it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::prlimit(pid, libc::RLIMIT_CORE, std::ptr::null(), &raw mut limit))?;
        let none = std::ptr::null_mut();
        check(libc::prlimit(pid, libc::RLIMIT_CORE, &raw const limit, none))?;
    }
    Ok(())
}

fn read_shared_memory(targets: &ProbeTargets) -> AttemptResult {
    let flags = libc::SHM_RDONLY;
    // SAFETY: the kernel chooses the address.
    let memory = unsafe { libc::shmat(targets.outside.shared_memory, std::ptr::null(), flags) };
    if memory.addr() == usize::MAX {
        return Err(io::Error::last_os_error().into());
    }
    // SAFETY: the segment has a page, which is at least as long as the secret.
    let bytes = unsafe { std::slice::from_raw_parts(memory.cast::<u8>(), targets.secret.len()) };
    find_secret(bytes, targets)
}

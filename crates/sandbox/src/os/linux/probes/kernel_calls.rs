//! Attempts on the kernel, and to gain rights.
#![expect(unsafe_code, reason = "calls without a safe form")]

use super::attempt_error::{AttemptError, AttemptResult, check, check_descriptor};
use crate::probes::ProbeTargets;
use rustix::fs::{CWD, FileType, Mode};
use std::{
    ffi::CString,
    fs::OpenOptions,
    io,
    os::{
        fd::AsRawFd as _,
        unix::{ffi::OsStrExt as _, fs::OpenOptionsExt as _},
    },
};

pub(super) fn attempt(name: &str, targets: &ProbeTargets) -> Option<AttemptResult> {
    Some(match name {
        "new-namespace" => create_namespace(libc::CLONE_NEWUSER),
        "mount-folder" => mount_folder(targets),
        "gain-rights" => check_new_privileges(),
        "create-device" => create_device(),
        "write-kernel-setting" => OpenOptions::new()
            .write(true)
            .open("/proc/sys/kernel/core_pattern")
            .map(drop)
            .map_err(Into::into),
        "load-module" => load_module(),
        "use-bpf" => create_map(),
        "use-io-uring" => set_up_ring(),
        "read-keys" => find_keyring(),
        "open-by-handle" => name_handle(targets),
        "type-into-terminal" => type_into_terminal(),
        _ => return None,
    })
}

fn create_namespace(flags: i32) -> AttemptResult {
    // SAFETY: the call takes a number, and this process has one thread.
    check(unsafe { libc::unshare(flags) })?;
    Ok(())
}

/// Mounts an empty file system over the project, in a namespace of this process if it gets one.
fn mount_folder(targets: &ProbeTargets) -> AttemptResult {
    // Without one, the mount itself is refused.
    let _own = create_namespace(libc::CLONE_NEWUSER | libc::CLONE_NEWNS);
    let folder = CString::new(targets.project.as_os_str().as_bytes())
        .map_err(|it| AttemptError::Failed(it.to_string()))?;
    // SAFETY: the texts end with a zero, and there is no data.
    unsafe {
        let (source, kind) = (c"none".as_ptr(), c"tmpfs".as_ptr());
        check(libc::mount(source, folder.as_ptr(), kind, 0, std::ptr::null()))?;
        check(libc::umount2(folder.as_ptr(), libc::MNT_DETACH))?;
    }
    Ok(())
}

/// Whether a setuid program would get the rights of its owner.
fn check_new_privileges() -> AttemptResult {
    // SAFETY: the call takes numbers.
    let is_forbidden = check(unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) })?;
    if is_forbidden == 0 { Ok(()) } else { Err(AttemptError::nothing_found()) }
}

/// The device is the one of `/dev/null`. A temporary directory is writable in every profile.
fn create_device() -> AttemptResult {
    let path = std::env::temp_dir().join(format!("jackfield-check-device-{}", std::process::id()));
    let null = rustix::fs::makedev(1, 3);
    rustix::fs::mknodat(CWD, &path, FileType::CharacterDevice, Mode::RUSR, null)
        .map_err(io::Error::from)?;
    Ok(std::fs::remove_file(path)?)
}

/// The kernel checks the permission before the descriptor, which is none.
fn load_module() -> AttemptResult {
    // SAFETY: the parameters are an empty text.
    let status = unsafe { libc::syscall(libc::SYS_finit_module, -1, c"".as_ptr(), 0) };
    match check(status) {
        Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(()),
        other => Ok(other.map(drop)?),
    }
}

/// A table with one entry, which every program for the kernel uses.
fn create_map() -> AttemptResult {
    const MAP_CREATE: i32 = 0;
    const TYPE_ARRAY: u32 = 2;
    // Type, size of a key, size of a value, number of entries.
    let attributes: [u32; 4] = [TYPE_ARRAY, 4, 4, 1];
    let size = size_of_val(&attributes);
    // SAFETY: the attributes have this size.
    let status = unsafe { libc::syscall(libc::SYS_bpf, MAP_CREATE, attributes.as_ptr(), size) };
    check_descriptor(status)?;
    Ok(())
}

fn set_up_ring() -> AttemptResult {
    let mut parameters = [0_u64; 15];
    // SAFETY: the kernel fills a structure of 120 bytes.
    let status = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    check_descriptor(status)?;
    Ok(())
}

fn find_keyring() -> AttemptResult {
    const GET_KEYRING_ID: i32 = 0;
    const USER_KEYRING: i32 = -4;
    // SAFETY: the call takes numbers.
    check(unsafe { libc::syscall(libc::SYS_keyctl, GET_KEYRING_ID, USER_KEYRING, 1) })?;
    Ok(())
}

/// With the number of a file it can be opened without its path.
fn name_handle(targets: &ProbeTargets) -> AttemptResult {
    let path = CString::new(targets.project.as_os_str().as_bytes())
        .map_err(|it| AttemptError::Failed(it.to_string()))?;
    // The length, the type, and at most 128 bytes.
    let mut handle = [0_u32; 2 + 32];
    handle[0] = 128;
    let mut mount: i32 = 0;
    // SAFETY: the path ends with a zero, and the handle has room for as many bytes as it says.
    let status = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            handle.as_mut_ptr(),
            &raw mut mount,
            0,
        )
    };
    check(status)?;
    Ok(())
}

/// Makes a terminal, takes control of it and types into it.
fn type_into_terminal() -> AttemptResult {
    let pair =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open("/dev/ptmx")?;
    let unlocked: i32 = 0;
    let flags = libc::O_RDWR | libc::O_NOCTTY;
    rustix::process::setsid().map_err(io::Error::from)?;
    // SAFETY: the calls get numbers, or a pointer to one number or character; no handler is replaced.
    unsafe {
        // The end of the terminal must not end this process, which still has to report.
        libc::signal(libc::SIGHUP, libc::SIG_IGN);
        check(libc::ioctl(pair.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked))?;
        let terminal = check_descriptor(libc::ioctl(pair.as_raw_fd(), libc::TIOCGPTPEER, flags))?;
        check(libc::ioctl(terminal.as_raw_fd(), libc::TIOCSCTTY, 0))?;
        check(libc::ioctl(terminal.as_raw_fd(), libc::TIOCSTI, b"x".as_ptr()))?;
    }
    Ok(())
}

//! The version of Landlock in the running kernel.
#![expect(unsafe_code, reason = "no safe interface returns the version itself")]

use std::io;

/// Asks for the version instead of creating rules.
const LANDLOCK_CREATE_RULESET_VERSION: libc::c_uint = 1;

pub(super) fn landlock_version() -> io::Result<u32> {
    // SAFETY: with this flag, the kernel reads and writes no memory of the process.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

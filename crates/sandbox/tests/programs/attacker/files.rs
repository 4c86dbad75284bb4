//! Attacks with paths.

use crate::check;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::time::SystemTime;

pub(crate) fn run(attack: &str, args: &[&str]) -> Option<io::Result<()>> {
    Some(match (attack, args) {
        ("read", [path]) => fs::read(path).map(drop),
        ("list", [path]) => fs::read_dir(path).map(drop),
        ("rename", [from, to]) => fs::rename(from, to),
        ("execute", [path]) => std::process::Command::new(path).status().map(drop),
        ("change-mode", [path]) => fs::set_permissions(path, Permissions::from_mode(0o666)),
        ("change-mode-of-file", [path]) => {
            File::open(path).and_then(|it| it.set_permissions(Permissions::from_mode(0o666)))
        }
        ("change-times", [path]) => {
            File::open(path).and_then(|it| it.set_modified(SystemTime::UNIX_EPOCH))
        }
        ("change-owner", [path]) => std::os::unix::fs::chown(path, Some(own_user()), None),
        ("change-attribute", [path]) => change_attribute(path),
        ("terminal", []) => open_terminal(),
        ("write-temporary", []) => fs::write(std::env::temp_dir().join("file"), "text"),
        _ => return None,
    })
}

fn own_user() -> u32 {
    rustix::process::getuid().as_raw()
}

fn change_attribute(path: &str) -> io::Result<()> {
    let path = CString::new(path)?;
    let value = b"1";
    // SAFETY: the path and the name end with a zero, and the value has this length.
    let status = unsafe {
        libc::setxattr(
            path.as_ptr(),
            c"user.attack".as_ptr(),
            value.as_ptr().cast(),
            value.len(),
            0,
        )
    };
    check(status).map(drop)
}

/// Not an attack: a pseudo-terminal works, although `/dev/pts` is hidden.
fn open_terminal() -> io::Result<()> {
    let pair =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open("/dev/ptmx")?;
    let unlocked: i32 = 0;
    let flags = libc::O_RDWR | libc::O_NOCTTY;
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&pair);
    // SAFETY: the first call reads one number, and the second takes one.
    let terminal = unsafe {
        check(libc::ioctl(descriptor, libc::TIOCSPTLCK, &raw const unlocked))?;
        check(libc::ioctl(descriptor, libc::TIOCGPTPEER, flags))?
    };
    let terminal = i32::try_from(terminal).map_err(io::Error::other)?;
    // SAFETY: the call returned a new descriptor.
    let mut terminal: File = unsafe { std::os::fd::FromRawFd::from_raw_fd(terminal) };
    terminal.write_all(b"text\n")
}

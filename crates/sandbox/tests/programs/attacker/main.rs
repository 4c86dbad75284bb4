//! Tries one way out of a sandbox: `attacker ATTACK ARGS…`. Exits with 0 if it works, otherwise with 1 and
//! the error on stderr.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "attacks are system calls"))]

#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod processes;
#[cfg(target_os = "linux")]
mod sockets;

use std::io;

#[cfg(target_os = "linux")]
fn main() -> io::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (attack, args) = args.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    files::run(attack, args)
        .or_else(|| processes::run(attack, args))
        .or_else(|| sockets::run(attack, args))
        .unwrap_or(Err(io::Error::other("unknown attack")))
}

#[cfg(not(target_os = "linux"))]
fn main() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The result of a call of the C library.
#[cfg(target_os = "linux")]
fn check(status: impl Into<i64>) -> io::Result<i64> {
    let status = status.into();
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

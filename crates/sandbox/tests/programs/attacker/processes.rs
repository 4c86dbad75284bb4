//! Attacks on other processes and on the kernel.

use crate::check;
use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

pub(crate) fn run(attack: &str, args: &[&str]) -> Option<io::Result<()>> {
    Some(match (attack, args) {
        ("read-environment", [pid]) => fs::read(format!("/proc/{pid}/environ")).map(drop),
        ("read-memory", [pid]) => fs::File::open(format!("/proc/{pid}/mem")).map(drop),
        ("signal", [pid]) => parse(pid).and_then(signal),
        ("signal-by-pidfd", [pid]) => parse(pid).and_then(signal_by_pidfd),
        ("trace", [pid]) => parse(pid).and_then(trace),
        ("limit", [pid]) => parse(pid).and_then(limit),
        ("io-uring", []) => set_up_ring(),
        ("shared-memory", []) => make_shared_memory(),
        ("inherited-descriptors", []) => find_inherited(),
        // Not attacks: processes that stay.
        ("wait", []) => wait(),
        ("leave-process", []) => leave_process(),
        ("exit", [code]) => exit(code),
        _ => return None,
    })
}

fn parse(pid: &str) -> io::Result<i32> {
    pid.parse().map_err(io::Error::other)
}

/// The signal 0 changes nothing, and needs the permission of others.
fn signal(pid: i32) -> io::Result<()> {
    // SAFETY: the call takes numbers.
    check(unsafe { libc::kill(pid, 0) }).map(drop)
}

fn signal_by_pidfd(pid: i32) -> io::Result<()> {
    // SAFETY: the calls take numbers, and no information about the signal.
    unsafe {
        let pidfd = check(libc::syscall(libc::SYS_pidfd_open, pid, 0))?;
        check(libc::syscall(libc::SYS_pidfd_send_signal, pidfd, 0, 0, 0)).map(drop)
    }
}

fn trace(pid: i32) -> io::Result<()> {
    // SAFETY: the call takes numbers.
    check(unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, 0, 0) }).map(drop)
}

/// Sets the limit that another process already has.
fn limit(pid: i32) -> io::Result<()> {
    // SAFETY: the structure consists of numbers, and both calls get a pointer to it.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        check(libc::prlimit(pid, libc::RLIMIT_CORE, std::ptr::null(), &raw mut limit))?;
        let same = libc::prlimit(pid, libc::RLIMIT_CORE, &raw const limit, std::ptr::null_mut());
        check(same).map(drop)
    }
}

fn set_up_ring() -> io::Result<()> {
    let mut parameters = [0_u64; 15];
    // SAFETY: the kernel fills a structure of 120 bytes.
    let status = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) };
    check(status).map(drop)
}

fn make_shared_memory() -> io::Result<()> {
    // SAFETY: the calls take numbers, and the segment is removed.
    unsafe {
        let segment = check(libc::shmget(libc::IPC_PRIVATE, 4096, 0o600))?;
        let segment = i32::try_from(segment).map_err(io::Error::other)?;
        check(libc::shmctl(segment, libc::IPC_RMID, std::ptr::null_mut())).map(drop)
    }
}

/// Works if there is a descriptor besides the standard ones and that of the listing itself.
fn find_inherited() -> io::Result<()> {
    let names = fs::read_dir("/proc/self/fd")?.filter_map(Result::ok).map(|it| it.file_name());
    let count = names.filter(|it| !matches!(it.to_str(), Some("0" | "1" | "2"))).count();
    if count > 1 { Ok(()) } else { Err(io::Error::other("no inherited descriptor")) }
}

#[expect(clippy::print_stdout, reason = "the test reads the id")]
fn wait() -> io::Result<()> {
    println!("{}", std::process::id());
    loop {
        thread::sleep(Duration::from_mins(1));
    }
}

/// Starts a process in a session of its own, which outlives this one, and prints its id.
#[expect(clippy::print_stdout, reason = "the test reads the id")]
fn leave_process() -> io::Result<()> {
    use std::os::unix::process::CommandExt;
    let program = std::env::current_exe()?;
    let mut command = std::process::Command::new(program);
    command.arg("wait").stdout(std::process::Stdio::null());
    // SAFETY: the closure makes one system call.
    unsafe { command.pre_exec(|| Ok(rustix::process::setsid().map(drop)?)) };
    println!("{}", command.spawn()?.id());
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "the exit code is what is tested")]
fn exit(code: &str) -> io::Result<()> {
    std::process::exit(parse(code)?)
}

//! Running processes, found by a mark in their environment or arguments, and their memory.

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::{fs, os::unix::net::UnixStream};

/// Pids of all running processes except for this one whose environment or command line contains `mark`.
pub fn marked(mark: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|it| it.parse::<u32>().ok()) else {
            continue;
        };
        if pid != std::process::id() && is_alive(pid) && carries(pid, mark) {
            found.push(pid);
        }
    }
    found
}

fn carries(pid: u32, mark: &str) -> bool {
    ["environ", "cmdline"].iter().any(|file| {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        String::from_utf8_lossy(&text).contains(mark)
    })
}

/// Whether a process runs; a zombie does not count.
pub fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|it| it != 'Z' && it != 'X') && test_kill_process(as_pid(pid)).is_ok()
}

/// The arguments of a process; none if it has exited.
pub fn words(pid: u32) -> Vec<String> {
    let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&text).split_terminator('\0').map(str::to_owned).collect()
}

/// A running child of a process, by the name that the kernel shows.
pub fn child_named(parent: u32, name: &str) -> Option<u32> {
    let threads = fs::read_dir(format!("/proc/{parent}/task")).ok()?.flatten();
    let children = threads.filter_map(|it| fs::read_to_string(it.path().join("children")).ok());
    let children: Vec<String> = children.collect();
    let mut pids = children.iter().flat_map(|it| it.split_whitespace()).flat_map(str::parse);
    pids.find(|pid: &u32| {
        let shown = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        shown.trim_end() == name && is_alive(*pid)
    })
}

/// The process at the other end of a socket.
#[cfg(target_os = "linux")]
pub fn peer_pid(socket: &UnixStream) -> Option<u32> {
    let peer = rustix::net::sockopt::socket_peercred(socket).ok()?;
    u32::try_from(peer.pid.as_raw_nonzero().get()).ok()
}

/// The process at the other end of a socket.
#[cfg(target_os = "macos")]
pub fn peer_pid(socket: &UnixStream) -> Option<u32> {
    use nix::sys::socket::{getsockopt, sockopt::LocalPeerPid};
    getsockopt(socket, LocalPeerPid).ok().and_then(|it| u32::try_from(it).ok())
}

/// Sends SIGKILL to a process that this test caused.
pub fn kill_9(pid: u32) {
    let _gone_already = kill_process(as_pid(pid), Signal::KILL);
}

/// Sends SIGSTOP to a process that this test caused.
pub fn stop(pid: u32) {
    let _gone_already = kill_process(as_pid(pid), Signal::STOP);
}

/// Resident memory in bytes.
pub fn resident(pid: u32) -> u64 {
    field(pid, "VmRSS:")
}

/// Memory that the process allocated, in bytes. Pages of its program file are not counted: the kernel decides how many
/// of them it maps around each access, and machines differ in that.
pub fn allocated(pid: u32) -> u64 {
    field(pid, "RssAnon:")
}

/// The peak of resident memory in bytes.
pub fn resident_peak(pid: u32) -> u64 {
    field(pid, "VmHWM:")
}

fn field(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix(name)).unwrap_or("0");
    line.split_whitespace().next().and_then(|it| it.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn as_pid(pid: u32) -> Pid {
    let pid = i32::try_from(pid).expect("pids are small");
    Pid::from_raw(pid).expect("pids are positive")
}

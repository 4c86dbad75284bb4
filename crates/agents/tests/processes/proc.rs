//! Looking at processes from outside, without the code under test.

use std::fs;
use std::time::{Duration, Instant};

/// No pid at all.
pub(crate) const NO_PIDS: [u32; 0] = [];

/// Pids of everything that carries the mark, guards included; zombies have no environment.
pub(crate) fn pids_with_mark(mark: &str) -> Vec<u32> {
    let wanted = format!("JACKFIELD_AGENT_MARK={mark}");
    let pids = fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| {
            let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|pair| pair == wanted.as_bytes())
        })
        .collect()
}

/// The state letter and the parent; `None` when there is no such process.
pub(crate) fn state(pid: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

pub(crate) fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|(state, _)| state != 'Z')
}

pub(crate) fn zombies_of(parent: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| state(*pid) == Some(('Z', parent)))
        .collect()
}

/// A living child of a process, by the name that the kernel shows.
pub(crate) fn child_named(parent: u32, name: &str) -> Option<u32> {
    let pids = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.find(|pid: &u32| {
        let shown = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        shown.trim_end() == name
            && state(*pid).is_some_and(|it| it != ('Z', parent) && it.1 == parent)
    })
}

/// A line of `/proc/PID/<file>`, such as `VmHWM` of `status` or `wchar` of `io`.
pub(crate) fn proc_value(pid: u32, file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let line = text.lines().find(|line| line.starts_with(&format!("{name}:")))?;
    Some(line[name.len() + 1..].trim().to_owned())
}

pub(crate) fn descriptors(pid: u32) -> Vec<u32> {
    let mut fds: Vec<u32> = fs::read_dir(format!("/proc/{pid}/fd"))
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    fds.sort_unstable();
    fds
}

/// Looks until the condition holds; how long that took.
pub(crate) fn wait_until(what: &str, bound: Duration, mut holds: impl FnMut() -> bool) -> Duration {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < bound, "not within {bound:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
    begin.elapsed()
}

pub(crate) fn kill(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

/// The command line of a process.
pub(crate) fn command_line(pid: u32) -> Vec<String> {
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split_terminator('\0').map(str::to_owned).collect()
}

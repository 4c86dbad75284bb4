//! Process behavior: execution under the same pid, orphans, exits and signals.
//!
//! A shell sets the ignored signals, because they survive `exec` and `std` has no safe call for it.

use std::{
    env, io,
    io::{BufRead, BufReader, Read, Write as _},
    os::{fd::AsFd, unix::process::CommandExt},
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Signal, getpid, kill_process, setsid};

use super::flags::{AgentFlags, FlagSwitch, ProcessEnd, STRAY_FLAG};

/// The life time of an orphan, so that a failed test does not leave it forever.
const ORPHAN_SECONDS: &str = "120";

/// Set in the environment of orphans, to distinguish them from the agent.
const ORPHAN_ENV: &str = "FAKE_AGENT_ORPHAN";

/// Executes or starts the program again as the flags demand. Returns `Some` if another process was the agent.
pub(crate) fn become_agent(flags: &AgentFlags) -> Option<ExitCode> {
    let wants = |switch, done| flags.has_switch(switch) && env::var_os(done).is_none();
    let failed = |why: &io::Error| {
        write_stderr_line(&format!("fake-agent: cannot start itself: {why}"));
        Some(ExitCode::from(125))
    };
    if wants(FlagSwitch::IgnoreTerm, "FAKE_AGENT_TRAPPED") {
        let script = r#"trap '' TERM INT HUP; exec "$0" "$@""#;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script]).arg(own_path()).args(env::args_os().skip(1));
        return failed(&shell.env("FAKE_AGENT_TRAPPED", "1").exec());
    }
    let mut command = Command::new(own_path());
    command.args(env::args_os().skip(1));
    if wants(FlagSwitch::Reexec, "FAKE_AGENT_REEXECED") {
        return failed(&command.env("FAKE_AGENT_REEXECED", "1").exec());
    }
    if wants(FlagSwitch::Relaunch, "FAKE_AGENT_RELAUNCHED") {
        return match command.env("FAKE_AGENT_RELAUNCHED", "1").status() {
            Ok(status) => {
                Some(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)))
            }
            Err(why) => failed(&why),
        };
    }
    None
}

/// The pipes of the agent that an orphan keeps open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldPipe {
    Stdout,
    Stderr,
}

/// Starts the orphans that the `--grandchild…` flags ask for.
pub(crate) fn start_orphans(flags: &AgentFlags) {
    let kinds: [(FlagSwitch, &[HeldPipe]); 3] = [
        (FlagSwitch::Grandchild, &[]),
        (FlagSwitch::GrandchildHoldsStdout, &[HeldPipe::Stdout]),
        (FlagSwitch::GrandchildHoldsStderr, &[HeldPipe::Stderr]),
    ];
    for (switch, holds) in kinds {
        if flags.has_switch(switch) {
            start_orphan(flags, holds);
        }
    }
}

/// Starts a process in a new session that ignores SIGTERM and whose parent has exited; returns its pid.
pub(crate) fn start_orphan(flags: &AgentFlags, holds: &[HeldPipe]) -> Option<u32> {
    let (reader, writer) = rustix::pipe::pipe().ok()?;
    // The orphan writes its pid to its stdin, the only pipe that it never keeps open. The shell connects stdin of background
    // jobs to /dev/null, so the pipe is passed as descriptor 3.
    let script = r#"trap '' TERM INT HUP; exec 3<&0; "$0" "$@" 0<&3 3<&- &"#;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script]).arg(own_path()).args([STRAY_FLAG, ORPHAN_SECONDS]);
    if let Some(marker) = &flags.marker {
        shell.args(["--marker", marker]);
    }
    if flags.has_switch(FlagSwitch::GrandchildCleanEnv) {
        shell.env_clear();
    } else {
        shell.env(ORPHAN_ENV, getpid().as_raw_nonzero().to_string());
    }
    let stdio = |it| if holds.contains(&it) { Stdio::inherit() } else { Stdio::null() };
    shell.stdin(writer).stdout(stdio(HeldPipe::Stdout)).stderr(stdio(HeldPipe::Stderr));
    shell.status().ok()?;
    drop(shell);
    let mut line = String::new();
    // At most twenty digits, because `read_line` has no limit.
    BufReader::new(std::fs::File::from(reader).take(20)).read_line(&mut line).ok()?;
    line.trim().parse().ok()
}

/// Runs as an orphan.
pub(crate) fn run_orphan(life: Duration) -> ExitCode {
    // Fails only if the process already leads a group, which is equivalent here.
    let _ = setsid();
    let pid = format!("{}\n", getpid().as_raw_nonzero());
    let _ = rustix::io::write(io::stdin().as_fd(), pid.as_bytes());
    thread::sleep(life);
    ExitCode::SUCCESS
}

/// Ends this process by a signal, or returns the exit code for `main`.
pub(crate) fn end_process(death: ProcessEnd) -> ExitCode {
    let number = match death {
        ProcessEnd::Exit(code) => return ExitCode::from(code),
        ProcessEnd::Signal(number) => number,
    };
    if let Some(signal) = Signal::from_named_raw(number) {
        // Twice, because the Rust runtime handles the first SIGSEGV to detect stack overflows.
        for _ in 0..2 {
            let _ = kill_process(getpid(), signal);
            thread::sleep(Duration::from_millis(10));
        }
    }
    ExitCode::from(u8::try_from(128 + number).unwrap_or(1))
}

/// Writes a line to stderr.
pub(crate) fn write_stderr_line(text: &str) {
    // If stderr is closed, the line is dropped.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes this many bytes to stderr, in lines.
pub(crate) fn flood_stderr(size: usize) {
    let line = [b"x".repeat(79), b"\n".to_vec()].concat();
    let mut stderr = io::stderr().lock();
    let mut left = size;
    while 0 < left {
        let now = left.min(line.len());
        if stderr.write_all(&line[line.len() - now..]).is_err() {
            return;
        }
        left -= now;
    }
}

fn own_path() -> PathBuf {
    env::current_exe().expect("a running program has a path")
}

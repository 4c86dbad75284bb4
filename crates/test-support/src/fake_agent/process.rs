//! Tricks with processes: other lives under the same pid, orphans, deaths.
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

use super::flags::{Death, Flags, STRAY, Switch};

/// How long an orphan lives if nobody ends it: a failed test must not leave it for good.
const ORPHAN_SECONDS: &str = "120";

/// In the environment of orphans, so that they can be told from the agent.
const ORPHAN_ENV: &str = "FAKE_AGENT_ORPHAN";

/// Becomes what the flags ask for before the agent starts. `Some`: another process was the agent.
pub(crate) fn become_agent(flags: &Flags) -> Option<ExitCode> {
    let wants = |switch, done| flags.on(switch) && env::var_os(done).is_none();
    let failed = |why: &io::Error| {
        note(&format!("fake-agent: cannot start itself: {why}"));
        Some(ExitCode::from(125))
    };
    if wants(Switch::IgnoreTerm, "FAKE_AGENT_TRAPPED") {
        let script = r#"trap '' TERM INT HUP; exec "$0" "$@""#;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", script]).arg(own_path()).args(env::args_os().skip(1));
        return failed(&shell.env("FAKE_AGENT_TRAPPED", "1").exec());
    }
    let mut again = Command::new(own_path());
    again.args(env::args_os().skip(1));
    if wants(Switch::Reexec, "FAKE_AGENT_REEXECED") {
        return failed(&again.env("FAKE_AGENT_REEXECED", "1").exec());
    }
    if wants(Switch::Relaunch, "FAKE_AGENT_RELAUNCHED") {
        return match again.env("FAKE_AGENT_RELAUNCHED", "1").status() {
            Ok(status) => {
                Some(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)))
            }
            Err(why) => failed(&why),
        };
    }
    None
}

/// Which of the agent's own pipes an orphan keeps open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Stdout,
    Stderr,
}

/// The orphans that `--grandchild...` asks for.
pub(crate) fn leave_orphans(flags: &Flags) {
    let kinds: [(Switch, &[Holds]); 3] = [
        (Switch::Grandchild, &[]),
        (Switch::GrandchildHoldsStdout, &[Holds::Stdout]),
        (Switch::GrandchildHoldsStderr, &[Holds::Stderr]),
    ];
    for (switch, holds) in kinds {
        if flags.on(switch) {
            leave_orphan(flags, holds);
        }
    }
}

/// Starts a process in a session of its own that ignores SIGTERM and whose parent is gone; its pid.
pub(crate) fn leave_orphan(flags: &Flags, holds: &[Holds]) -> Option<u32> {
    let (reader, writer) = rustix::pipe::pipe().ok()?;
    // The orphan says its pid on its stdin, the only pipe it never has to hold for real. The
    // shell would give a background job /dev/null there, hence the detour over 3.
    let script = r#"trap '' TERM INT HUP; exec 3<&0; "$0" "$@" 0<&3 3<&- &"#;
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script]).arg(own_path()).args([STRAY, ORPHAN_SECONDS]);
    if let Some(marker) = &flags.marker {
        shell.args(["--marker", marker]);
    }
    if flags.on(Switch::GrandchildCleanEnv) {
        shell.env_clear();
    } else {
        shell.env(ORPHAN_ENV, getpid().as_raw_nonzero().to_string());
    }
    let stdio = |it| if holds.contains(&it) { Stdio::inherit() } else { Stdio::null() };
    shell.stdin(writer).stdout(stdio(Holds::Stdout)).stderr(stdio(Holds::Stderr));
    shell.status().ok()?;
    drop(shell);
    let mut line = String::new();
    // Twenty digits at most: `read_line` needs a bound.
    BufReader::new(std::fs::File::from(reader).take(20)).read_line(&mut line).ok()?;
    line.trim().parse().ok()
}

/// The life of an orphan.
pub(crate) fn be_orphan(life: Duration) -> ExitCode {
    // Fails only if we lead a group already, and then we are alone as well.
    let _ = setsid();
    let pid = format!("{}\n", getpid().as_raw_nonzero());
    let _ = rustix::io::write(io::stdin().as_fd(), pid.as_bytes());
    thread::sleep(life);
    ExitCode::SUCCESS
}

/// Ends this process; a code is for `main` to return.
pub(crate) fn die(death: Death) -> ExitCode {
    let number = match death {
        Death::Exit(code) => return ExitCode::from(code),
        Death::Signal(number) => number,
    };
    if let Some(signal) = Signal::from_named_raw(number) {
        // Twice: the runtime swallows the first SIGSEGV while it looks for a stack overflow.
        for _ in 0..2 {
            let _ = kill_process(getpid(), signal);
            thread::sleep(Duration::from_millis(10));
        }
    }
    ExitCode::from(u8::try_from(128 + number).unwrap_or(1))
}

/// A line on stderr.
pub(crate) fn note(text: &str) {
    // Whoever closed stderr does not want to know.
    let _ = writeln!(io::stderr(), "{text}");
}

/// So many bytes on stderr, in lines.
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

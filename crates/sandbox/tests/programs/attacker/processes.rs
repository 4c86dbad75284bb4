//! Processes that stay or end.

use std::io;
use std::thread;
use std::time::Duration;

pub(crate) fn run(attack: &str, args: &[&str]) -> Option<io::Result<()>> {
    Some(match (attack, args) {
        ("wait", []) => wait(),
        ("leave-process", []) => leave_process(),
        ("exit", [code]) => exit(code),
        _ => return None,
    })
}

fn parse(pid: &str) -> io::Result<i32> {
    pid.parse().map_err(io::Error::other)
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

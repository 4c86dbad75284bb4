//! The program that makes the attempts of [`probes`](crate::probes), inside a sandbox and without one, and what they
//! are made on outside.
//!
//! Each attempt is made by a process of its own: it cannot change what others find, and a call that does not return is
//! ended.

mod attempt_error;
mod control_network;
mod files;
mod kernel_calls;
mod outside;
mod processes;
mod sockets;

pub use outside::OutsideFixture;

use super::descriptors::{exit_now, fork};
use crate::probes::{OutcomeLine, ProbeOutcome, ProbeRequest, SandboxProbe};
use attempt_error::AttemptError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::{
    ffi::OsString,
    fs::File,
    io::{self, Read as _, Write as _},
    process::ExitCode,
};

/// The argument with which the program only waits for the end of its input.
const WAIT_ARGUMENT: &str = "--wait";
/// Far more than any attempt takes on a busy machine.
const ATTEMPT_BOUND: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

/// Runs the subcommand: `sandbox-probe REQUEST`, with a request as JSON, or `sandbox-probe --wait`.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let argument = args.into_iter().next().and_then(|it| it.into_string().ok()).unwrap_or_default();
    let ended =
        if argument == WAIT_ARGUMENT { wait_for_input_end() } else { run_probes(&argument) };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without stderr there is no place for a message.
            let _ = writeln!(io::stderr(), "jackfield: the probes could not be run: {error}");
            ExitCode::FAILURE
        }
    }
}

fn wait_for_input_end() -> io::Result<()> {
    io::copy(&mut io::stdin().lock(), &mut io::sink()).map(drop)
}

fn run_probes(request: &str) -> io::Result<()> {
    let request: ProbeRequest = serde_json::from_str(request)?;
    for name in &request.names {
        let outcome = attempt_in_child(name, &request)
            .unwrap_or_else(|error| ProbeOutcome::Failed(error.to_string()));
        let line = serde_json::to_string(&OutcomeLine { name: name.clone(), outcome })?;
        writeln!(io::stdout(), "{line}")?;
    }
    Ok(())
}

fn attempt_in_child(name: &str, request: &ProbeRequest) -> io::Result<ProbeOutcome> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let child = fork()?;
    if child == 0 {
        drop(reader);
        let outcome = make_attempt(name, request);
        let text = serde_json::to_string(&outcome).unwrap_or_default();
        let is_written = File::from(writer).write_all(text.as_bytes()).is_ok();
        exit_now(i32::from(!is_written));
    }
    drop(writer);
    let ready = poll(&mut [PollFd::new(&reader, PollFlags::IN)], Some(&ATTEMPT_BOUND))?;
    let child = Pid::from_raw(child).ok_or(io::ErrorKind::InvalidData)?;
    if ready == 0 {
        kill_process(child, Signal::KILL)?;
    }
    let mut text = String::new();
    File::from(reader).read_to_string(&mut text)?;
    waitpid(Some(child), WaitOptions::empty())?;
    let no_result = || ProbeOutcome::Failed("the attempt gave no result".to_owned());
    Ok(serde_json::from_str(&text).unwrap_or_else(|_| no_result()))
}

fn make_attempt(name: &str, request: &ProbeRequest) -> ProbeOutcome {
    let attempted = SandboxProbe::find(name)
        .and_then(|probe| {
            files::attempt(probe, &request.targets)
                .or_else(|| processes::attempt(name, &request.targets))
                .or_else(|| sockets::attempt(probe, request))
                .or_else(|| kernel_calls::attempt(name, &request.targets))
        })
        .unwrap_or_else(|| Err(AttemptError::Failed("unknown probe".to_owned())));
    match attempted {
        Ok(()) => ProbeOutcome::Worked,
        Err(AttemptError::Refused(sign)) => ProbeOutcome::Refused(sign),
        Err(AttemptError::Failed(reason)) => ProbeOutcome::Failed(reason),
    }
}

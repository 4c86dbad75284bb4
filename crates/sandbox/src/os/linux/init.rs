//! The first program inside the sandbox: it prepares the network and the limits, and becomes the agent.
//!
//! `bwrap` has set up the loopback interface of the namespace. A separate process, which is not a child of
//! the agent, listens on it and forwards each connection to the socket of the network proxy.

use super::{descriptors, environment, resources};
use crate::os::{INIT_SUBCOMMAND, forward::forward_connections};
use crate::plan::ResourceLimits;
use std::{
    ffi::OsString,
    io,
    net::{Ipv4Addr, TcpListener},
    os::{fd::RawFd, unix::process::CommandExt as _},
    path::Path,
    process::{Command, ExitCode},
};

/// Exit codes of a shell for a program that cannot be executed or was not found.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// What `sandbox-init` has to prepare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct InitOptions {
    /// A descriptor of the proxy's socket, opened as a path.
    pub proxy: Option<RawFd>,
    pub proxies_loopback: bool,
    pub limits: ResourceLimits,
}

impl InitOptions {
    /// The arguments that come before those of the agent.
    pub(super) fn to_args(self) -> Vec<OsString> {
        let number = |it: Option<u64>| it.map_or("-".to_owned(), |it| it.to_string());
        let limits = self.limits;
        [
            INIT_SUBCOMMAND.to_owned(),
            self.proxy.map_or("-".to_owned(), |it| it.to_string()),
            if self.proxies_loopback { "proxied" } else { "direct" }.to_owned(),
            number(limits.processes),
            number(limits.memory_bytes),
            number(limits.file_bytes),
            number(limits.cpu_seconds),
        ]
        .map(OsString::from)
        .into()
    }

    /// Reads the arguments after the subcommand; the rest are those of the agent.
    fn from_args(args: &mut impl Iterator<Item = OsString>) -> Option<InitOptions> {
        let mut next = || args.next()?.into_string().ok();
        let (proxy, loopback) = (next()?, next()?);
        let mut number = || next().map(|it| it.parse::<u64>().ok());
        let limits = ResourceLimits {
            processes: number()?,
            memory_bytes: number()?,
            file_bytes: number()?,
            cpu_seconds: number()?,
        };
        Some(InitOptions {
            proxy: proxy.parse().ok(),
            proxies_loopback: loopback == "proxied",
            limits,
        })
    }
}

/// Runs the subcommand with its arguments. It returns only if the agent could not be started.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut args = args.into_iter();
    let Some(options) = InitOptions::from_args(&mut args) else {
        report("only `sandbox-run` starts this command");
        return ExitCode::from(NOT_EXECUTABLE);
    };
    let argv: Vec<OsString> = args.collect();
    let Some((program, rest)) = argv.split_first() else {
        report("no program was named");
        return ExitCode::from(NOT_EXECUTABLE);
    };
    let mut command = Command::new(program);
    command.args(rest);
    if let Err(error) = prepare(options, &mut command) {
        report(&format!("failed to prepare the sandbox: {error}"));
        return ExitCode::from(NOT_EXECUTABLE);
    }
    let error = command.exec();
    report(&format!("failed to execute `{}` in the sandbox: {error}", program.display()));
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    ExitCode::from(if is_missing { NOT_FOUND } else { NOT_EXECUTABLE })
}

fn report(message: &str) {
    use io::Write as _;
    // Without stderr there is no place for a message.
    let _ = writeln!(io::stderr(), "jackfield: {message}");
}

fn prepare(options: InitOptions, command: &mut Command) -> io::Result<()> {
    descriptors::close_all_on_exec()?;
    if let Some(proxy) = options.proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        if descriptors::fork_orphan()? == descriptors::ForkSide::Orphan {
            let socket = format!("/proc/self/fd/{proxy}");
            forward_connections(&listener, Path::new(&socket));
        }
        command.envs(environment::proxy_variables(address, options.proxies_loopback));
    }
    descriptors::restore_termination();
    // Last, so that the forwarding process is not limited.
    resources::limit_process(options.limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_survive_the_command_line() {
        let limits =
            ResourceLimits { processes: Some(5), cpu_seconds: Some(7), ..Default::default() };
        for options in
            [InitOptions::default(), InitOptions { proxy: Some(9), proxies_loopback: true, limits }]
        {
            let args = options.to_args().into_iter().chain(["sh".into()]);
            let mut args = args.skip(1);
            assert_eq!(InitOptions::from_args(&mut args), Some(options));
            assert_eq!(args.next(), Some("sh".into()));
        }
        assert_eq!(InitOptions::from_args(&mut ["1".into()].into_iter()), None);
    }
}

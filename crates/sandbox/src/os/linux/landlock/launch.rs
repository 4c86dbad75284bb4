//! Starts the agent: everything that its process does to itself before it executes the program.
#![expect(unsafe_code, reason = "code between fork and exec")]

use super::call_filter;
use super::listener::{CallListener, install_filter};
use super::{LandlockError, supervisor};
use crate::os::linux::resources;
use crate::os::linux::seccomp::{self, SocketScope};
use crate::plan::ResourceLimits;
use landlock::RulesetCreated;
use nix::sys::signal::SigSet;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal, setsid};
use seccompiler::BpfProgram;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A started agent.
pub(super) struct StartedAgent {
    pub(super) pid: Pid,
    pub(super) listener: CallListener,
}

/// Everything that the new process needs before it executes the program, made before the fork.
struct ChildLimits {
    parent: Pid,
    signals: SigSet,
    ruleset: Option<RulesetCreated>,
    supervised: BpfProgram,
    refused: Vec<BpfProgram>,
    /// The listener is sent here.
    channel: UnixStream,
    resources: ResourceLimits,
}

pub(super) fn start(
    mut command: Command,
    ruleset: RulesetCreated,
    signals: SigSet,
    has_network: bool,
    resources: ResourceLimits,
) -> Result<StartedAgent, LandlockError> {
    let failed = supervisor::failed_step;
    let scope = if has_network { SocketScope::Namespace } else { SocketScope::Supervised };
    let (receiver, channel) = UnixStream::pair().map_err(failed("make a socket pair"))?;
    let mut limits = ChildLimits {
        parent: rustix::process::getpid(),
        signals,
        ruleset: Some(ruleset),
        supervised: call_filter::build(has_network),
        refused: seccomp::build_filters(scope)?,
        channel,
        resources,
    };
    // SAFETY: the closure makes system calls and allocates nothing; this process has one thread anyway.
    unsafe { command.pre_exec(move || limits.apply()) };
    let child = command.spawn().map_err(|source| LandlockError::Launch {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
    drop(command);
    let listener =
        receive_descriptor(&receiver).map_err(failed("receive the listener of the filter"))?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok(StartedAgent {
        pid: pid.expect("the id of a process is positive"),
        listener: CallListener::new(listener),
    })
}

impl ChildLimits {
    fn apply(&mut self) -> io::Result<()> {
        self.signals.thread_set_mask()?;
        setsid()?;
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have ended just before, and then the signal would never be sent.
        if getppid() != Some(self.parent) {
            return Err(Errno::SRCH.into());
        }
        keep_standard_descriptors()?;
        resources::limit_process(self.resources)?;
        let ruleset = self.ruleset.take().ok_or(Errno::INVAL)?;
        ruleset.restrict_self().map_err(|_| io::Error::from(Errno::PERM))?;
        let listener = install_filter(&self.supervised)?;
        send_descriptor(&self.channel, &listener)?;
        for filter in &self.refused {
            seccompiler::apply_filter(filter).map_err(|_| io::Error::from(Errno::PERM))?;
        }
        Ok(())
    }
}

/// Closes all descriptors but the standard ones when the program is executed.
fn keep_standard_descriptors() -> io::Result<()> {
    // SAFETY: the call closes nothing now; it only marks descriptors.
    let status = unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn send_descriptor(channel: &UnixStream, descriptor: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(channel, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

fn receive_descriptor(channel: &UnixStream) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut buffers = [IoSliceMut::new(&mut byte)];
    recvmsg(channel, &mut buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = ancillary.drain().filter_map(|it| match it {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    descriptors.next().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

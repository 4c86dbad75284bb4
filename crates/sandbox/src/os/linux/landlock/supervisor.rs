//! The process outside the sandbox: performs calls, forwards signals and waits for the agent.

use super::LandlockError;
use super::call_handler::CallHandler;
use super::launch::StartedAgent;
use super::loopback_servers::LoopbackServers;
use super::path_grants::PathTable;
use super::proxy_connection::ProxyConnections;
use crate::plan::NetworkPlan;
use nix::sys::signal::{SigSet, Signal as BlockedSignal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{self, Pid, Signal, WaitOptions, WaitStatus};
use rustix::thread::{self, CapabilitySet, CapabilitySets};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Connections that wait for their peers at the same time; each has a thread. Later ones wait.
const WAITING_CALLS_MAX: usize = 64;
/// How long the supervisor waits before it looks whether a connection has ended.
const FULL_DELAY: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
const CALL_STACK_BYTES: usize = 128 * 1024;

/// Signals that are meant for the agent.
const FORWARDED: &[BlockedSignal] = &[
    BlockedSignal::SIGTERM,
    BlockedSignal::SIGINT,
    BlockedSignal::SIGHUP,
    BlockedSignal::SIGQUIT,
    BlockedSignal::SIGUSR1,
    BlockedSignal::SIGUSR2,
    BlockedSignal::SIGCONT,
    BlockedSignal::SIGWINCH,
];

/// The error of a step of the preparation.
pub(super) fn failed_step<E: Into<io::Error>>(step: &'static str) -> impl Fn(E) -> LandlockError {
    move |source| LandlockError::Supervisor { step, source: source.into() }
}

/// Binds this process to its parent, adopts orphans, and gives up what the agent must not use through it.
pub(super) fn prepare_process() -> Result<(), LandlockError> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    if matches!(scope.trim(), "2" | "3") {
        return Err(LandlockError::TracingForbidden { scope: scope.trim().into() });
    }
    process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(failed_step("end with the parent process"))?;
    // Orphaned processes of the agent remain descendants, which may be examined and are ended.
    process::set_child_subreaper(Some(process::getpid())).map_err(failed_step("adopt orphans"))?;
    drop_capabilities().map_err(failed_step("give up capabilities"))
}

/// Root without capabilities is a user like others. The agent inherits this.
fn drop_capabilities() -> Result<(), Errno> {
    if thread::capabilities(None)?.effective.contains(CapabilitySet::SETPCAP) {
        for bit in 0..u64::BITS {
            let capability = CapabilitySet::from_bits_retain(1 << bit);
            match thread::remove_capability_from_bounding_set(capability) {
                // The kernel has no further capabilities.
                Err(Errno::INVAL) => break,
                other => other?,
            }
        }
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    thread::set_capabilities(None, sets)
}

/// Collects signals from now on. Returns also the mask from before, which the agent gets.
pub(super) fn block_signals() -> Result<(SignalFd, SigSet), LandlockError> {
    let mut signals: SigSet = FORWARDED.iter().copied().collect();
    signals.add(BlockedSignal::SIGCHLD);
    let original = SigSet::thread_get_mask().map_err(failed_step("read the signal mask"))?;
    signals.thread_block().map_err(failed_step("block signals"))?;
    let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
    let collected =
        SignalFd::with_flags(&signals, flags).map_err(failed_step("collect signals"))?;
    Ok((collected, original))
}

/// Serves the agent until it ends, and returns its exit code.
pub(super) fn supervise(
    agent: StartedAgent,
    signals: &SignalFd,
    paths: PathTable,
    network: NetworkPlan,
) -> Result<u8, LandlockError> {
    release_standard_streams().map_err(failed_step("release the standard streams"))?;
    let handler = Arc::new(CallHandler {
        listener: agent.listener,
        paths,
        network,
        proxies: ProxyConnections::default(),
        servers: LoopbackServers::default(),
    });
    let code = loop {
        wait_for_event(signals, &handler).map_err(failed_step("wait for events"))?;
        if let Some(code) = read_signals(signals, agent.pid) {
            break code;
        }
    };
    end_descendants();
    Ok(code)
}

/// Only the agent has its pipes: a reader sees their end when the agent closes them.
fn release_standard_streams() -> Result<(), Errno> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)
}

/// Performs a call, if one waits, and returns after it or after a signal.
fn wait_for_event(signals: &SignalFd, handler: &Arc<CallHandler>) -> io::Result<()> {
    let is_full = Arc::strong_count(handler) > WAITING_CALLS_MAX;
    let listener = handler.listener.descriptor();
    let mut ready = [
        PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN),
        PollFd::new(listener, PollFlags::IN),
    ];
    let (watched, limit) =
        if is_full { (&mut ready[..1], Some(&FULL_DELAY)) } else { (&mut ready[..], None) };
    match poll(watched, limit) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    if ready[1].revents().contains(PollFlags::IN) {
        receive_call(handler)?;
    } else if ready[1].revents().contains(PollFlags::HUP) {
        // No process of the sandbox is left; only the signal of its end can follow.
        let mut ready = [PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
        poll(&mut ready, None)?;
    }
    Ok(())
}

fn receive_call(handler: &Arc<CallHandler>) -> io::Result<()> {
    let Some(call) = handler.listener.receive()? else { return Ok(()) };
    // Only connections wait for another process.
    if call.number != libc::SYS_connect {
        handler.handle(&call);
        return Ok(());
    }
    let own = Arc::clone(handler);
    let thread = std::thread::Builder::new().name("connect".into()).stack_size(CALL_STACK_BYTES);
    if thread.spawn(move || own.handle(&call)).is_err() {
        handler.listener.answer(&call, Err(Errno::NOBUFS));
    }
    Ok(())
}

/// Forwards signals, and returns the exit code of the agent if it has ended. The guard, which is the parent
/// of this process, signals every process of the tree: the agent would get its signals twice.
fn read_signals(signals: &SignalFd, agent: Pid) -> Option<u8> {
    let mut code = None;
    let guard = process::getppid().map(|it| it.as_raw_pid().cast_unsigned());
    while let Ok(Some(signal)) = signals.read_signal() {
        let number = i32::try_from(signal.ssi_signo).unwrap_or_default();
        if number == libc::SIGCHLD {
            code = code.or_else(|| reap_children(agent));
        } else if let Some(forwarded) = Signal::from_named_raw(number)
            && Some(signal.ssi_pid) != guard
        {
            let _ended = process::kill_process(agent, forwarded);
        }
    }
    code
}

/// Reaps ended children, which include orphans of the agent.
fn reap_children(agent: Pid) -> Option<u8> {
    let mut code = None;
    while let Ok(Some((pid, status))) = process::wait(WaitOptions::NOHANG) {
        if pid == agent {
            code = Some(exit_code(status));
        }
    }
    code
}

fn exit_code(status: WaitStatus) -> u8 {
    let signal = status.terminating_signal().map(|it| it + 128);
    let code = status.exit_status().or(signal).unwrap_or(1);
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Ends what the agent left. The children of an ended process become children of this one.
fn end_descendants() {
    loop {
        let children = children();
        for child in &children {
            let _ended = process::kill_process(*child, Signal::KILL);
        }
        let options = if children.is_empty() { WaitOptions::NOHANG } else { WaitOptions::empty() };
        match process::wait(options) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) | Err(_) => break,
        }
    }
}

fn children() -> Vec<Pid> {
    let own = process::getpid();
    let path = format!("/proc/{own}/task/{own}/children");
    let list = std::fs::read_to_string(path).unwrap_or_default();
    list.split_whitespace().filter_map(|it| it.parse().ok().and_then(Pid::from_raw)).collect()
}

//! `jackfield daemon stop`: stops the daemon by a request; with `--force`, by signals if it does not answer.

use super::request_status;
use crate::{
    context::CommandContext,
    hub::{ConnectionEvent, STOP_SECONDS_MAX, check_agent_mark, send_single_request_within},
    plain_text::format_count,
    report::CommandError,
};
use jackfield_agents::Signal;
use jackfield_daemon::{BootError, HolderProcess, clean_up};
use jackfield_protocol::acp::Method;
use serde_json::json;
use std::{
    thread,
    time::{Duration, Instant},
};

/// After this time the user is told what the command waits for.
const NOTICE_DELAY: Duration = Duration::from_secs(1);
/// With `--force`: how long a daemon may take to answer before it is sent signals.
const ANSWER_SECONDS_MAX: u64 = 3;
/// How long a daemon may take to exit after SIGTERM. Running turns get two seconds.
const TERM_MAX: Duration = Duration::from_secs(5);
/// How long the system may take to kill a process.
const KILL_SECONDS_MAX: u64 = 5;
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Stops the daemon if it is running.
pub(super) fn stop_daemon(context: &CommandContext, force: bool) -> Result<(), CommandError> {
    if force && context.daemon.has_explicit_address() {
        return Err(CommandError::usage(
            "`--force` cannot be combined with `--socket`: it kills the daemon of your own state directory",
            "leave out `--socket`, or set `JACKFIELD_STATE_DIR` to the state directory of that daemon",
        ));
    }
    match stop_by_request(context, force) {
        Err(error) if force && error.is_lockout() => stop_by_signal(context),
        stopped => stopped,
    }
}

fn stop_by_request(context: &CommandContext, force: bool) -> Result<(), CommandError> {
    if force && let Some(socket) = context.daemon.dial_if_running()? {
        // An error response is an answer, too; the request below reports it.
        match send_single_request_within(
            &socket,
            Method::ControlStatus,
            &json!({}),
            ANSWER_SECONDS_MAX,
        ) {
            Err(error) if error.is_lockout() => return Err(error),
            _ => {}
        }
    }
    let Some(mut conn) = context.daemon.connect_if_running("daemon")? else {
        context.output.print_note("no daemon is running");
        return Ok(());
    };
    let pid = context.daemon.daemon_pid(&conn);
    let holder = if context.daemon.has_explicit_address() {
        None
    } else {
        context.daemon.find_lock_holder()?
    };
    let agents = request_status(&mut conn)?["agents"].as_u64().and_then(|it| it.try_into().ok());
    let agents = format_count(agents.unwrap_or(0), "agent");
    conn.call_hub(Method::ControlStop, &json!({}), "the daemon to answer")?;
    let started_at = Instant::now();
    let limit = started_at + Duration::from_secs(STOP_SECONDS_MAX);
    let mut until = started_at + NOTICE_DELAY;
    loop {
        match conn.next_event(Some(until))? {
            ConnectionEvent::Closed => break,
            ConnectionEvent::TimedOut if until < limit => {
                until = limit;
                context.output.print_note(&format!("waiting for {agents} to exit…"));
            }
            ConnectionEvent::TimedOut => {
                let waited_for = "the daemon to stop".to_owned();
                return Err(CommandError::NoReply { waited_for, seconds: STOP_SECONDS_MAX, pid });
            }
            _ => {}
        }
    }
    // The daemon closes its connections first, then its socket, and releases its lock last.
    context.daemon.wait_until_stopped(holder.as_ref())?;
    context.output.print_note("the daemon stopped");
    Ok(())
}

/// Kills the process that holds the lock of the state directory, and removes what it leaves behind.
fn stop_by_signal(context: &CommandContext) -> Result<(), CommandError> {
    check_agent_mark("daemon stop --force")?;
    if let Some(holder) = context.daemon.find_lock_holder()? {
        let lock = context.daemon.paths().lock();
        let process =
            holder.pin().ok_or(CommandError::UnknownLockHolder { lock, pid: holder.pid })?;
        context.output.print_alert(&format!(
            "the daemon (pid {}) does not answer and is killed: running turns are interrupted, and the \
             guards kill their agents; acknowledged events are in the journal",
            process.pid()
        ));
        kill_process(context, &process)?;
    }
    match clean_up(context.daemon.paths()) {
        Ok(left) if left.survivors.is_empty() => {}
        Ok(left) => {
            let pids: Vec<String> = left.survivors.iter().map(ToString::to_string).collect();
            context.output.print_alert(&format!(
                "these processes of its agents did not exit: {}",
                pids.join(", ")
            ));
        }
        // Another command has started a daemon, which has cleaned up.
        Err(BootError::AlreadyRuns { .. }) => {}
        Err(error) => {
            return Err(CommandError::local(
                "the daemon was killed, but its files could not be removed",
                error,
            ));
        }
    }
    context.output.print_note("the daemon stopped");
    Ok(())
}

fn kill_process(context: &CommandContext, process: &HolderProcess) -> Result<(), CommandError> {
    // A process that is stopped by SIGSTOP handles SIGTERM only after SIGCONT.
    process.signal(Signal::TERM);
    process.signal(Signal::CONT);
    if wait_for_exit(process, TERM_MAX) {
        return Ok(());
    }
    context.output.print_note(&format!(
        "the daemon did not exit within {} s; sending SIGKILL",
        TERM_MAX.as_secs()
    ));
    process.signal(Signal::KILL);
    if wait_for_exit(process, Duration::from_secs(KILL_SECONDS_MAX)) {
        return Ok(());
    }
    Err(CommandError::NotEnded { pid: process.pid(), seconds: KILL_SECONDS_MAX })
}

fn wait_for_exit(process: &HolderProcess, within: Duration) -> bool {
    let started_at = Instant::now();
    while process.has_lock() {
        if within < started_at.elapsed() {
            return false;
        }
        thread::sleep(POLL_INTERVAL);
    }
    true
}

//! `jackfield daemon stop`: by a request, and with `--force` by signals if the daemon does not answer.

use super::status;
use crate::{
    app::Desk,
    hub::{Heard, STOP_SECONDS_MAX, Until, Wait, answer_within, check_mark},
    out::count,
    report::Failure,
};
use jackfield_daemon::{BootError, HolderProcess, clean_up};
use jackfield_protocol::acp::Method;
use rustix::process::Signal;
use serde_json::json;
use std::{
    thread,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(1);
/// With `--force`: how long a daemon may take to answer before it is sent signals.
const ANSWER_SECONDS_MAX: u64 = 3;
/// How long a daemon may take to end after SIGTERM. Running turns get two seconds.
const TERM_MAX: Duration = Duration::from_secs(5);
/// How long the system may take to end a process after SIGKILL.
const KILL_SECONDS_MAX: u64 = 5;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Stops the daemon if one runs.
pub(super) fn stop(desk: &Desk, force: bool) -> Result<(), Failure> {
    if force && desk.dial.is_named() {
        return Err(Failure::usage(
            "`--force` ends the daemon of your own state directory, and `--socket` names another one",
            "leave out `--socket`, or set `JACKFIELD_STATE_DIR` to the directory of that daemon",
        ));
    }
    match stop_by_request(desk, force) {
        Err(failure) if force && failure.is_lockout() => stop_by_signal(desk),
        stopped => stopped,
    }
}

fn stop_by_request(desk: &Desk, force: bool) -> Result<(), Failure> {
    if force && let Some(socket) = desk.dial.running()? {
        // A refusal is an answer, too; the request below says what it means.
        match answer_within(&socket, Method::ControlStatus.name(), &json!({}), ANSWER_SECONDS_MAX) {
            Err(failure) if failure.is_lockout() => return Err(failure),
            _ => {}
        }
    }
    let Some(mut conn) = desk.dial.talk_if_running("daemon")? else {
        desk.out.note("no daemon is running");
        return Ok(());
    };
    let pid = desk.dial.pid_of(&conn);
    let holder = if desk.dial.is_named() { None } else { desk.dial.find_holder()? };
    let agents = status(&mut conn)?["agents"].as_u64().and_then(|it| it.try_into().ok());
    let agents = count(agents.unwrap_or(0), "agent");
    let wait = Wait { what: "the daemon to answer", until: Until::Hub };
    conn.call(Method::ControlStop.name(), &json!({}), wait)?;
    let began = Instant::now();
    let limit = began + Duration::from_secs(STOP_SECONDS_MAX);
    let mut until = began + PATIENCE;
    loop {
        match conn.next(Some(until))? {
            Heard::HubGone => break,
            Heard::TimedOut if until < limit => {
                until = limit;
                desk.out.note(&format!("waiting for {agents} to end…"));
            }
            Heard::TimedOut => {
                let waited_for = "it to stop".to_owned();
                return Err(Failure::Silent { waited_for, seconds: STOP_SECONDS_MAX, pid });
            }
            _ => {}
        }
    }
    // It closes its connections first, then its socket, and releases its lock last.
    desk.dial.wait_until_gone(holder.as_ref())?;
    desk.out.note("the daemon stopped");
    Ok(())
}

/// Ends the process that has the lock of the state directory, and what it leaves behind.
fn stop_by_signal(desk: &Desk) -> Result<(), Failure> {
    check_mark("daemon stop --force")?;
    if let Some(holder) = desk.dial.find_holder()? {
        let lock = desk.dial.paths().lock();
        let process = holder.pin().ok_or(Failure::UnknownHolder { lock, pid: holder.pid })?;
        desk.out.alert(&format!(
            "the daemon (pid {}) does not answer and is ended by signals: turns that run are interrupted \
             and each agent is ended by its guard; what was acknowledged is in the journal",
            process.pid()
        ));
        end_process(desk, &process)?;
    }
    match clean_up(desk.dial.paths()) {
        Ok(left) if left.survivors.is_empty() => {}
        Ok(left) => {
            let pids: Vec<String> = left.survivors.iter().map(ToString::to_string).collect();
            desk.out
                .alert(&format!("these processes of its agents did not end: {}", pids.join(", ")));
        }
        // Another command was faster and started one, which has done the same.
        Err(BootError::AlreadyRuns { .. }) => {}
        Err(error) => {
            return Err(Failure::local(
                "the daemon ended, but what it left could not be removed",
                error,
            ));
        }
    }
    desk.out.note("the daemon stopped");
    Ok(())
}

fn end_process(desk: &Desk, process: &HolderProcess) -> Result<(), Failure> {
    // A process that was stopped by a signal handles SIGTERM when it continues.
    process.signal(Signal::TERM);
    process.signal(Signal::CONT);
    if has_ended(process, TERM_MAX) {
        return Ok(());
    }
    desk.out.note(&format!("it did not end within {} s: it gets SIGKILL", TERM_MAX.as_secs()));
    process.signal(Signal::KILL);
    if has_ended(process, Duration::from_secs(KILL_SECONDS_MAX)) {
        return Ok(());
    }
    Err(Failure::NotEnded { pid: process.pid(), seconds: KILL_SECONDS_MAX })
}

fn has_ended(process: &HolderProcess, within: Duration) -> bool {
    let began = Instant::now();
    while process.has_lock() {
        if within < began.elapsed() {
            return false;
        }
        thread::sleep(LOOK_AGAIN);
    }
    true
}

//! The journal: whether it can be written, whether the daemon has the file open that is there, and whether
//! everything in it is as it was written.

use super::Check;
use crate::{
    hub::{lost_records_warning, storage_warning},
    out::{count, events_between},
};
use jackfield_journal::{DamagedEvents, DurabilityLevel, Journal, JournalInspection, OpenError};
use jackfield_protocol::chain;
use rustix::fs::{Access, access, statvfs};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::Path,
    time::{Duration, Instant},
};

const NAME: &str = "journal";
const MIB: u64 = 1024 * 1024;
/// With less a session may fill the disk within minutes.
const FREE_BYTES_MIN: u64 = 64 * MIB;
/// How long records are read and compared with their checksums.
const INSPECTION_MAX: Duration = Duration::from_secs(3);

/// The daemon that runs, as far as it concerns the journal.
pub(super) struct RunningDaemon<'a> {
    pub(super) status: &'a Value,
    pub(super) pid: Option<i32>,
}

/// The first thing that is wrong, or what was found.
pub(super) fn check_journal(
    path: &Path,
    daemon: Option<&RunningDaemon<'_>>,
    is_running: bool,
) -> Check {
    if is_running && daemon.is_none() {
        // It may have stopped in the middle of a write: what is found then proves nothing.
        let path = path.display();
        return Check::good(NAME, format!("{path} is in use by a daemon, and was not opened"));
    }
    let found = check_daemon_storage(daemon)
        .and_then(|()| check_identity(path, daemon))
        .and_then(|()| check_disk(path))
        .and_then(|()| check_content(path));
    match found {
        Ok(found) => Check::good(NAME, found),
        Err(check) => check,
    }
}

/// What the daemon has met while it wrote.
fn check_daemon_storage(daemon: Option<&RunningDaemon<'_>>) -> Result<(), Check> {
    let Some(storage) = daemon.map(|it| &it.status["storage"]) else { return Ok(()) };
    if storage["ok"] == false {
        let error = storage["error"].as_str().unwrap_or_default();
        let found = format!("{}: {error}", storage["problem"].as_str().unwrap_or_default());
        return Err(Check::bad(NAME, found, storage["wayOut"].as_str().unwrap_or_default()));
    }
    match storage_warning(storage) {
        Some(lost) => Err(lost_records(lost)),
        None => Ok(()),
    }
}

/// Whether the file at the path is the one that the daemon has open.
fn check_identity(path: &Path, daemon: Option<&RunningDaemon<'_>>) -> Result<(), Check> {
    let Some(pid) = daemon.and_then(|it| it.pid) else { return Ok(()) };
    let there = fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
    let (mut uses_journal, mut open_files) = (false, BTreeSet::new());
    // Not readable: the daemon is of another user, or there is no /proc.
    for file in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        // `…/journal.db-wal`, and `…/journal.db (deleted)` too.
        let name = fs::read_link(file.path()).unwrap_or_default();
        uses_journal |= name.as_os_str().as_bytes().starts_with(path.as_os_str().as_bytes());
        if let Ok(meta) = fs::metadata(file.path()) {
            open_files.insert((meta.dev(), meta.ino()));
        }
    }
    if !uses_journal || there.is_some_and(|it| open_files.contains(&it)) {
        return Ok(());
    }
    let what = if there.is_some() { "replaced" } else { "removed" };
    let found = format!("{} was {what} while the daemon (pid {pid}) has it open", path.display());
    let fix =
        "put the file back where it was; if it is lost, restart the daemon: jackfield daemon stop";
    Err(Check::bad(NAME, found, fix))
}

/// Whether something can be written there, and how much.
fn check_disk(path: &Path) -> Result<(), Check> {
    let Some(dir) = path.parent().filter(|it| it.exists()) else { return Ok(()) };
    let shown = dir.display();
    let files = [dir, path];
    for file in files.into_iter().filter(|it| it.exists()) {
        match access(file, Access::READ_OK | Access::WRITE_OK) {
            Ok(()) => {}
            Err(rustix::io::Errno::ROFS) => {
                let found = format!("the disk of {shown} is read-only");
                let fix = "make it writable: `mount -o remount,rw` after a look at the kernel's log for errors of the disk";
                return Err(Check::bad(NAME, found, fix));
            }
            Err(error) => {
                let found = format!("{} cannot be read and written: {error}", file.display());
                let fix = format!("make it yours: chown {} {}", user(), file.display());
                return Err(Check::bad(NAME, found, fix));
            }
        }
    }
    let free = statvfs(dir).map_or(u64::MAX, |it| it.f_bavail.saturating_mul(it.f_frsize));
    if free < FREE_BYTES_MIN {
        let found = format!("only {} MiB are free on the disk of {shown}", free / MIB);
        let fix = "free space there; without any, prompts are refused";
        return Err(Check::bad(NAME, found, fix));
    }
    Ok(())
}

fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// Whether it opens, and every record is as it was written.
fn check_content(path: &Path) -> Result<String, Check> {
    let shown = path.display();
    let Ok(meta) = fs::metadata(path) else {
        return Ok(format!("{shown} is made when it is needed"));
    };
    let journal =
        Journal::open(path, DurabilityLevel::Process).map_err(|it| not_opened(path, &it))?;
    let inspection = journal.inspect_events(Instant::now() + INSPECTION_MAX);
    let inspection = inspection.map_err(|it| put_aside(path, chain(&it)))?;
    if let Some(first) = inspection.damaged.first() {
        return Err(damaged(&inspection, first));
    }
    if let Some(lost) = journal.lost_records() {
        return Err(lost_records(lost_records_warning(lost.count)));
    }
    let size = format!("{shown}, {} MiB", meta.len().div_ceil(MIB));
    let sessions = count(inspection.streams, "session");
    let events = count(usize::try_from(inspection.events).unwrap_or(usize::MAX), "event");
    let rest = if inspection.is_complete { "" } else { "; there was no time for the rest" };
    Ok(format!("{size}, {sessions}, {events} checked{rest}"))
}

fn not_opened(path: &Path, error: &OpenError) -> Check {
    match error {
        OpenError::TooNew { .. } => Check::bad(NAME, error.to_string(), "install that version"),
        _ => put_aside(path, chain(error)),
    }
}

fn put_aside(path: &Path, why: String) -> Check {
    let path = path.display();
    Check::bad(NAME, why, format!("keep a copy, then put it aside: mv {path} {path}.bad"))
}

fn damaged(inspection: &JournalInspection, first: &DamagedEvents) -> Check {
    let DamagedEvents { stream, first, last, damage } = first;
    let events = events_between(*first, *last);
    let more = match inspection.damaged.len() {
        1 => String::new(),
        more => format!(" (and {} more places)", more - 1),
    };
    let found = format!("{events} of {stream} cannot be read: {damage}{more}");
    let fix = format!("save the rest: jackfield sessions export {stream} --skip-damaged -o FILE");
    Check::bad(NAME, found, fix)
}

fn lost_records(warning: String) -> Check {
    let fix = "put back `journal.db-wal` if there is a copy of it, with the daemon stopped; the next event that is \
               written ends this warning";
    Check::bad(NAME, warning, fix)
}

//! Checks the journal: whether it can be written, whether the daemon uses the file at its path, and whether its records
//! are intact.

use super::{check_context::CheckContext, finding::DoctorFinding, folders::own_user};
use crate::{
    hub::{lost_records_warning, storage_warning},
    plain_text::{format_count, format_event_range, quote_path},
};
use jackfield_events::SessionSummary;
use jackfield_journal::{DamagedEvents, DurabilityLevel, Journal, JournalInspection, OpenError};
use jackfield_protocol::chain;
use rustix::fs::{Access, access};
use serde_json::Value;
use std::{
    collections::BTreeSet,
    fs,
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    path::Path,
    time::{Duration, Instant},
};

const MIB: u64 = 1024 * 1024;
/// How long the records are compared with their checksums.
const INSPECTION_MAX: Duration = Duration::from_secs(3);

/// The status and the pid of the running daemon.
pub(super) struct RunningDaemon<'a> {
    pub(super) status: &'a Value,
    pub(super) pid: Option<i32>,
}

/// The first problem, or a summary.
pub(super) fn check_journal(context: &CheckContext<'_>) -> Vec<DoctorFinding> {
    let path = context.paths.journal();
    let daemon = context.daemon().running();
    if context.daemon().is_running && daemon.is_none() {
        // The daemon may be in the middle of a write, so a check would prove nothing.
        let found = format!("{} is in use by a daemon and was not checked", path.display());
        return vec![DoctorFinding::ok(found)];
    }
    let found = check_daemon_storage(daemon.as_ref())
        .and_then(|()| check_identity(&path, daemon.as_ref()))
        .and_then(|()| check_access(&path))
        .and_then(|()| check_content(&path));
    vec![found.map_or_else(|problem| problem, DoctorFinding::ok)]
}

/// The time of the newest event since 1970, if the journal can be read.
pub(super) fn read_newest_event(path: &Path) -> Option<Duration> {
    check_access(path).ok().filter(|()| path.exists())?;
    let journal = Journal::open(path, DurabilityLevel::Process).ok()?;
    let mut newest = None;
    let read = journal.for_each_stream(|it| {
        let summary = SessionSummary::from_summary(&it.summary).ok();
        newest = newest.max(summary.map(|it| Duration::from_millis(it.updated_at)));
    });
    read.ok().and(newest)
}

/// Whether the daemon reports a storage problem.
fn check_daemon_storage(daemon: Option<&RunningDaemon<'_>>) -> Result<(), DoctorFinding> {
    let Some(storage) = daemon.map(|it| &it.status["storage"]) else { return Ok(()) };
    if storage["ok"] == false {
        let error = storage["error"].as_str().unwrap_or_default();
        let found = format!("{}: {error}", storage["problem"].as_str().unwrap_or_default());
        return Err(DoctorFinding::problem(found, storage["wayOut"].as_str().unwrap_or_default()));
    }
    match storage_warning(storage) {
        Some(warning) => Err(lost_records_check(warning)),
        None => Ok(()),
    }
}

/// Whether the daemon has the file at the path open.
fn check_identity(path: &Path, daemon: Option<&RunningDaemon<'_>>) -> Result<(), DoctorFinding> {
    let Some(pid) = daemon.and_then(|it| it.pid) else { return Ok(()) };
    let file_id = fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
    let (mut uses_journal, mut open_files) = (false, BTreeSet::new());
    // The directory is not readable if the daemon belongs to another user or if there is no /proc.
    for file in fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten() {
        // Also matches `…/journal.db-wal` and `…/journal.db (deleted)`.
        let name = fs::read_link(file.path()).unwrap_or_default();
        uses_journal |= name.as_os_str().as_bytes().starts_with(path.as_os_str().as_bytes());
        if let Ok(meta) = fs::metadata(file.path()) {
            open_files.insert((meta.dev(), meta.ino()));
        }
    }
    if !uses_journal || file_id.is_some_and(|it| open_files.contains(&it)) {
        return Ok(());
    }
    let action = if file_id.is_some() { "replaced" } else { "removed" };
    let found = format!("{} was {action} while the daemon (pid {pid}) had it open", path.display());
    let fix = "put the file back; if it is lost, restart the daemon: jackfield daemon restart";
    Err(DoctorFinding::problem(found, fix))
}

/// Whether the directory and the file are writable.
fn check_access(path: &Path) -> Result<(), DoctorFinding> {
    let Some(dir) = path.parent().filter(|it| it.exists()) else { return Ok(()) };
    let shown = dir.display();
    let files = [dir, path];
    for file in files.into_iter().filter(|it| it.exists()) {
        match access(file, Access::READ_OK | Access::WRITE_OK) {
            Ok(()) => {}
            Err(rustix::io::Errno::ROFS) => {
                let found = format!("the file system of {shown} is read-only");
                let fix = "check the kernel's log for disk errors, then make it writable: mount -o remount,rw";
                return Err(DoctorFinding::problem(found, fix));
            }
            Err(error) => {
                let found = format!("{} cannot be read and written: {error}", file.display());
                let fix = format!("change the owner: chown {} {}", own_user(), quote_path(file));
                return Err(DoctorFinding::problem(found, fix));
            }
        }
    }
    Ok(())
}

/// Whether the journal opens and its records are intact.
fn check_content(path: &Path) -> Result<String, DoctorFinding> {
    let shown = path.display();
    let Ok(meta) = fs::metadata(path) else {
        return Ok(format!("{shown} is created on first use"));
    };
    let journal =
        Journal::open(path, DurabilityLevel::Process).map_err(|it| open_failure(path, &it))?;
    let inspection = journal.inspect_events(Instant::now() + INSPECTION_MAX);
    let inspection = inspection.map_err(|it| unusable_check(path, chain(&it)))?;
    if let Some(first) = inspection.damaged.first() {
        return Err(damage_check(&inspection, first));
    }
    if let Some(lost) = journal.lost_records() {
        return Err(lost_records_check(lost_records_warning(lost.count)));
    }
    let size = format!("{shown}, {} MiB", meta.len().div_ceil(MIB));
    let sessions = format_count(inspection.streams, "session");
    let events = format_count(usize::try_from(inspection.events).unwrap_or(usize::MAX), "event");
    let rest =
        if inspection.is_complete { "" } else { "; the rest was skipped after the time limit" };
    Ok(format!("{size}, {sessions}, {events} checked{rest}"))
}

fn open_failure(path: &Path, error: &OpenError) -> DoctorFinding {
    match error {
        OpenError::TooNew { .. } => {
            DoctorFinding::problem(error.to_string(), "install that version")
        }
        _ => unusable_check(path, chain(error)),
    }
}

fn unusable_check(path: &Path, why: String) -> DoctorFinding {
    let bad = quote_path(&path.with_added_extension("bad"));
    let fix = format!("keep a copy, then move it away: mv {} {bad}", quote_path(path));
    DoctorFinding::problem(why, fix)
}

fn damage_check(inspection: &JournalInspection, first: &DamagedEvents) -> DoctorFinding {
    let DamagedEvents { stream, first, last, damage } = first;
    let events = format_event_range(*first, *last);
    let more = match inspection.damaged.len() {
        1 => String::new(),
        more => format!(" (and {} more places)", more - 1),
    };
    let found = format!("{events} of {stream} cannot be read: {damage}{more}");
    let fix = format!("save the rest: jackfield sessions export {stream} --skip-damaged -o FILE");
    DoctorFinding::problem(found, fix)
}

fn lost_records_check(warning: String) -> DoctorFinding {
    let fix = "if you have a copy of `journal.db-wal`, stop the daemon and put it back; the next written event \
               ends this warning";
    DoctorFinding::problem(warning, fix)
}

//! The kernel's table of processes, read with `libproc`. Rows may disappear during the reading.

use super::{kernel_calls, kernel_records};
use crate::os::ProcessRow;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// The processes of this machine.
pub(crate) struct ProcessTable;

#[expect(clippy::unused_self, reason = "the table of other systems has state")]
impl ProcessTable {
    pub(crate) fn system() -> ProcessTable {
        ProcessTable
    }

    pub(crate) fn row(&self, pid: u32) -> Option<ProcessRow> {
        let row = match kernel_calls::bsd_info(pid) {
            Some(record) => kernel_records::parse_bsd_info(&record),
            // A process of another user, such as the `login` above a shell.
            None => kernel_records::parse_short_bsd_info(&kernel_calls::short_bsd_info(pid)?),
        };
        row.filter(|row| row.process.pid == pid)
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        kernel_calls::all_pids()
    }

    /// Whether [`ProcessTable::children`] works: always.
    pub(crate) fn has_child_lists(&self) -> bool {
        true
    }

    /// The children of a process.
    pub(crate) fn children(&self, pid: u32) -> Vec<ProcessRow> {
        let rows = kernel_calls::child_pids(pid).into_iter().filter_map(|child| self.row(child));
        // The pid may have been reused since it was listed.
        rows.filter(|row| row.parent == pid).collect()
    }

    /// Reads the variables of a process, each of which ends with a zero byte. `None` if the process
    /// has exited or belongs to another user. Empty for programs that the system protects, such as
    /// those in `/bin` and `/usr/bin`.
    pub(crate) fn read_environment(&self, pid: u32, environment: &mut Vec<u8>) -> Option<()> {
        kernel_calls::read_arguments(pid, environment)?;
        let variables = kernel_records::find_environment(environment)?;
        environment.truncate(variables.end);
        environment.drain(..variables.start);
        Some(())
    }

    /// The executable of a process.
    pub(crate) fn executable(&self, pid: u32) -> Option<PathBuf> {
        kernel_calls::executable_path(pid).map(|it| OsString::from_vec(it).into())
    }

    /// The resident memory of a process without its descendants.
    pub(crate) fn resident_bytes(&self, pid: u32) -> Option<u64> {
        kernel_records::parse_resident_bytes(&kernel_calls::task_info(pid)?)
    }
}

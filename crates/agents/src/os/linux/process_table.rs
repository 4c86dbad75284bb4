//! The kernel's table of processes, read from `/proc`. Rows may disappear during the reading.

use crate::os::{ProcessIdentity, ProcessRow};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;

/// Only this much of an environment is searched; the mark is in the first megabytes.
const ENVIRON_BYTES_MAX: u64 = 4 << 20;

/// The processes of this machine.
pub(crate) struct ProcessTable {
    root: PathBuf,
}

impl ProcessTable {
    pub(crate) fn system() -> ProcessTable {
        ProcessTable { root: PathBuf::from("/proc") }
    }

    pub(crate) fn row(&self, pid: u32) -> Option<ProcessRow> {
        // Bytes, not text: the name of a process may contain any bytes.
        let stat = fs::read(self.root.join(pid.to_string()).join("stat")).ok()?;
        parse_stat(&stat).filter(|row| row.process.pid == pid)
    }

    pub(crate) fn pids(&self) -> Vec<u32> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// Whether [`ProcessTable::children`] works: the kernel may be built without it.
    pub(crate) fn has_child_lists(&self) -> bool {
        self.root.join("thread-self/children").exists()
    }

    /// The children of all threads of a process.
    pub(crate) fn children(&self, pid: u32) -> Vec<ProcessRow> {
        let Ok(threads) = fs::read_dir(self.root.join(pid.to_string()).join("task")) else {
            return Vec::new();
        };
        threads
            .flatten()
            .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
            .flat_map(|list| {
                list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
            })
            .filter_map(|child| self.row(child))
            // The pid may have been reused since it was listed.
            .filter(|row| row.parent == pid)
            .collect()
    }

    /// Reads the variables of a process, each of which ends with a zero byte. `None` if the process
    /// has exited or hides them.
    pub(crate) fn read_environment(&self, pid: u32, environment: &mut Vec<u8>) -> Option<()> {
        environment.clear();
        let file = File::open(self.root.join(pid.to_string()).join("environ")).ok()?;
        file.take(ENVIRON_BYTES_MAX).read_to_end(environment).ok()?;
        Some(())
    }

    /// The executable of a process.
    pub(crate) fn executable(&self, pid: u32) -> Option<PathBuf> {
        fs::read_link(self.root.join(pid.to_string()).join("exe")).ok()
    }

    /// The resident memory of a process without its descendants.
    pub(crate) fn resident_bytes(&self, pid: u32) -> Option<u64> {
        let file = self.root.join(pid.to_string()).join("statm");
        let pages: u64 = fs::read_to_string(file).ok()?.split(' ').nth(1)?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    }
}

/// Parses `pid (name) state ppid … starttime …`. The name may contain spaces and parentheses.
fn parse_stat(line: &[u8]) -> Option<ProcessRow> {
    let open = line.iter().position(|byte| *byte == b'(')?;
    let close = line.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(&line[..open]).ok()?.trim().parse().ok()?;
    let mut fields = std::str::from_utf8(line.get(close + 1..)?).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    // Field 22 of the line; the state was field 3, the group field 5.
    let start = fields.nth(22 - 6)?.parse().ok()?;
    let zombie = matches!(state, "Z" | "X");
    Some(ProcessRow { process: ProcessIdentity { pid, start }, parent, group, zombie })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A table of `(pid, parent, state)`, with or without the kernel's lists of children.
    fn table(rows: &[(u32, u32, &str)], has_lists: bool) -> (tempfile::TempDir, ProcessTable) {
        let dir = tempfile::tempdir().unwrap();
        if has_lists {
            fs::create_dir(dir.path().join("thread-self")).unwrap();
            fs::write(dir.path().join("thread-self/children"), "").unwrap();
        }
        for (pid, parent, state) in rows {
            let task = dir.path().join(format!("{pid}/task/{pid}"));
            fs::create_dir_all(&task).unwrap();
            let tail = "1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0";
            let stat = format!("{pid} (a) b (c) {state} {parent} {tail} {} 0 0\n", 1000 + pid);
            fs::write(dir.path().join(format!("{pid}/stat")), stat).unwrap();
            let children: Vec<String> =
                rows.iter().filter(|row| row.1 == *pid).map(|row| row.0.to_string()).collect();
            fs::write(task.join("children"), children.join(" ")).unwrap();
        }
        let table = ProcessTable { root: dir.path().to_owned() };
        (dir, table)
    }

    #[test]
    fn descendants_are_found_with_and_without_the_lists_of_children() {
        let rows = [(10, 1, "S"), (11, 10, "S"), (12, 11, "Z"), (13, 12, "R"), (20, 1, "S")];
        for has_lists in [true, false] {
            let (_dir, table) = table(&rows, has_lists);
            let mut found = table.descendants(&[10]);
            found.sort_unstable();
            let expected =
                [11, 13].map(|pid| ProcessIdentity { pid, start: 1000 + u64::from(pid) });
            assert_eq!(found, expected, "has_lists: {has_lists}");
        }
    }

    #[test]
    fn process_name_may_contain_parentheses() {
        let (_dir, table) = table(&[(10, 7, "Z")], true);
        let process = ProcessIdentity { pid: 10, start: 1010 };
        let row = ProcessRow { process, parent: 7, group: 1, zombie: true };
        assert_eq!(table.row(10), Some(row));
        assert_eq!(table.row(11), None);
    }

    #[test]
    fn mark_must_match_completely() {
        let (dir, table) = table(&[(10, 1, "S"), (11, 1, "S")], true);
        let environ = b"A=1\0JACKFIELD_AGENT_MARK=m-1\0B=JACKFIELD_AGENT_MARK=m-2\0";
        fs::write(dir.path().join("10/environ"), environ).unwrap();
        fs::write(dir.path().join("11/environ"), b"XJACKFIELD_AGENT_MARK=m-1\0").unwrap();
        let found = table.find_marked(&BTreeSet::from(["m-1", "m-2"]));
        assert_eq!(found, [(ProcessIdentity { pid: 10, start: 1010 }, "m-1".to_owned())]);
        assert!(table.has_mark(10, "m-1"));
        assert!(!table.has_mark(10, "m-2"));
        assert!(!table.has_mark(10, "m"));
        assert!(!table.has_mark(12, "m-1"));
    }
}

//! Searches in the table of processes that every system answers in the same way: descendants, and
//! processes with a mark. Rows may disappear during a search.

use super::{MARK_VARIABLE, ProcessIdentity, ProcessTable};
use std::collections::BTreeSet;

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessRow {
    pub(crate) process: ProcessIdentity,
    pub(crate) parent: u32,
    /// The process group.
    pub(crate) group: u32,
    pub(crate) zombie: bool,
}

impl ProcessTable {
    /// All descendants of these processes, without zombies.
    pub(crate) fn descendants(&self, roots: &[u32]) -> Vec<ProcessIdentity> {
        self.descendant_rows(roots, |_| true).into_iter().map(|row| row.process).collect()
    }

    /// The same, without processes for which `enter` is `false` and without their descendants.
    pub(crate) fn descendant_rows(
        &self,
        roots: &[u32],
        enter: impl Fn(&ProcessRow) -> bool,
    ) -> Vec<ProcessRow> {
        // Without the kernel's lists of children, all processes must be read.
        let has_lists = self.has_child_lists();
        let everyone = if has_lists { Vec::new() } else { self.rows() };
        let mut seen: BTreeSet<u32> = roots.iter().copied().collect();
        let mut open: Vec<u32> = roots.to_vec();
        let mut found = Vec::new();
        while let Some(parent) = open.pop() {
            let children = if has_lists {
                self.children(parent)
            } else {
                everyone.iter().filter(|row| row.parent == parent).copied().collect()
            };
            for row in children {
                if seen.insert(row.process.pid) && enter(&row) {
                    open.push(row.process.pid);
                    if !row.zombie {
                        found.push(row);
                    }
                }
            }
        }
        found
    }

    /// Every process whose environment has one of these marks.
    pub(crate) fn find_marked(&self, marks: &BTreeSet<&str>) -> Vec<(ProcessIdentity, String)> {
        let mut environment = Vec::new();
        self.pids()
            .into_iter()
            .filter_map(|pid| {
                let mark = self.mark(pid, &mut environment)?;
                let row = marks.contains(mark).then(|| self.row(pid)).flatten()?;
                (!row.zombie).then(|| (row.process, mark.to_owned()))
            })
            .collect()
    }

    pub(crate) fn has_mark(&self, pid: u32, mark: &str) -> bool {
        self.mark(pid, &mut Vec::new()) == Some(mark)
    }

    /// Whether a process has a mark other than this one.
    pub(crate) fn has_other_mark(&self, pid: u32, mark: &str) -> bool {
        self.mark(pid, &mut Vec::new()).is_some_and(|it| it != mark)
    }

    /// All processes.
    pub(crate) fn rows(&self) -> Vec<ProcessRow> {
        self.pids().into_iter().filter_map(|pid| self.row(pid)).collect()
    }

    fn mark<'a>(&self, pid: u32, environment: &'a mut Vec<u8>) -> Option<&'a str> {
        self.read_environment(pid, environment)?;
        mark_in(environment)
    }
}

/// The mark in an environment, whose variables each end with a zero byte.
pub(super) fn mark_in(environment: &[u8]) -> Option<&str> {
    environment
        .split(|byte| *byte == 0)
        .find_map(|pair| pair.strip_prefix(MARK_VARIABLE.as_bytes())?.strip_prefix(b"="))
        .and_then(|mark| std::str::from_utf8(mark).ok())
}

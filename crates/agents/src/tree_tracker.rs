//! Recognizes the processes of one tree on systems where orphans become children of the first
//! process of the system, so that parents alone do not lead to the tree.
//!
//! A process belongs to the tree if it was seen below a process of the tree, if it has the mark of
//! the tree, or if it is in a process group whose leader belongs to the tree. A group is forgotten
//! as soon as it has no process, because its number may then be reused. The tracker is a pure value;
//! the rows are arguments.

use crate::os::{ProcessIdentity, ProcessRow};
use std::collections::{BTreeMap, BTreeSet};

/// The processes of one tree that have been seen.
#[derive(Debug, Default)]
pub(crate) struct TreeTracker {
    members: BTreeSet<ProcessIdentity>,
    /// Groups whose leader is or was a member.
    groups: BTreeSet<u32>,
}

impl TreeTracker {
    /// Adds a process that is proved to belong to the tree. Returns whether it is new.
    pub(crate) fn add(&mut self, row: &ProcessRow) -> bool {
        if row.process.pid == row.group {
            self.groups.insert(row.group);
        }
        self.members.insert(row.process)
    }

    /// Forgets processes that are gone, and adds those that belong to the tree by their parent,
    /// their group or their mark. `rows` are all processes of the machine; the process `excluded` is
    /// never a member. Returns the new members.
    pub(crate) fn update(
        &mut self,
        rows: &[ProcessRow],
        excluded: u32,
        marked: &BTreeSet<ProcessIdentity>,
    ) -> Vec<ProcessIdentity> {
        let by_pid: BTreeMap<u32, &ProcessRow> =
            rows.iter().map(|row| (row.process.pid, row)).collect();
        let is_current =
            |it: &ProcessIdentity| by_pid.get(&it.pid).is_some_and(|row| row.process == *it);
        self.members.retain(is_current);
        let current_groups: BTreeSet<u32> = rows.iter().map(|row| row.group).collect();
        let members = &self.members;
        self.groups.retain(|group| {
            let leader = by_pid.get(group);
            current_groups.contains(group)
                && leader.is_none_or(|row| members.contains(&row.process))
        });
        let mut added = Vec::new();
        loop {
            let before = added.len();
            for row in rows.iter().filter(|row| row.process.pid != excluded) {
                let is_member = self.members.contains(&row.process)
                    || marked.contains(&row.process)
                    || self.groups.contains(&row.group)
                    || by_pid.get(&row.parent).is_some_and(|it| self.members.contains(&it.process));
                if is_member && self.add(row) {
                    added.push(row.process);
                }
            }
            if added.len() == before {
                return added;
            }
        }
    }

    /// The members that have not exited, according to these rows.
    pub(crate) fn alive(&self, rows: &[ProcessRow]) -> Vec<ProcessIdentity> {
        let alive = rows.iter().filter(|row| !row.zombie).map(|row| row.process);
        alive.filter(|it| self.members.contains(it)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUARD: u32 = 10;

    fn row(pid: u32, parent: u32, group: u32) -> ProcessRow {
        let process = ProcessIdentity { pid, start: u64::from(pid) };
        ProcessRow { process, parent, group, zombie: false }
    }

    fn tracker() -> TreeTracker {
        let mut tracker = TreeTracker::default();
        assert!(tracker.add(&row(11, GUARD, 11)));
        tracker
    }

    fn update(tracker: &mut TreeTracker, rows: &[ProcessRow]) -> Vec<u32> {
        tracker.update(rows, GUARD, &BTreeSet::new());
        tracker.alive(rows).into_iter().map(|it| it.pid).collect()
    }

    #[test]
    fn orphan_is_known_by_its_earlier_parent_or_its_group() {
        let mut tracker = tracker();
        let rows = [row(1, 0, 1), row(GUARD, 5, GUARD), row(11, GUARD, 11), row(12, 11, 11)];
        assert_eq!(update(&mut tracker, &rows), [11, 12]);
        // 13 was never seen below the tree and is in its group; 20 is not.
        let rows = [row(1, 0, 1), row(12, 1, 11), row(13, 1, 11), row(20, 1, 20)];
        assert_eq!(update(&mut tracker, &rows), [12, 13]);
    }

    #[test]
    fn daemon_that_left_group_and_parent_is_known_once_it_was_seen() {
        let mut tracker = tracker();
        assert_eq!(update(&mut tracker, &[row(11, GUARD, 11), row(12, 11, 12)]), [11, 12]);
        // 12 exited and left a child in the group that it had created.
        assert_eq!(update(&mut tracker, &[row(11, GUARD, 11), row(13, 1, 12)]), [11, 13]);
        // Not seen in time, in a group of its own: only a mark would identify it.
        assert_eq!(update(&mut tracker, &[row(13, 1, 12), row(15, 1, 15)]), [13]);
        let rows = [row(15, 1, 15)];
        let marked = BTreeSet::from([row(15, 1, 15).process]);
        assert_eq!(tracker.update(&rows, GUARD, &marked), [row(15, 1, 15).process]);
    }

    #[test]
    fn reused_pid_and_reused_group_do_not_belong_to_the_tree() {
        let mut tracker = tracker();
        assert_eq!(update(&mut tracker, &[row(11, GUARD, 11), row(12, 11, 12)]), [11, 12]);
        let mut reused = row(12, 1, 12);
        reused.process.start += 1;
        let child =
            ProcessRow { process: ProcessIdentity { pid: 13, start: 90 }, ..row(13, 12, 12) };
        assert_eq!(update(&mut tracker, &[row(11, GUARD, 11), reused, child]), [11]);
        // A group that was empty in between.
        assert_eq!(update(&mut tracker, &[row(11, GUARD, 11)]), [11]);
        assert_eq!(update(&mut tracker, &[row(11, GUARD, 11), row(14, 1, 12)]), [11]);
    }

    #[test]
    fn zombie_is_not_alive_but_its_children_are_found() {
        let mut tracker = tracker();
        let zombie = ProcessRow { zombie: true, ..row(12, 11, 11) };
        assert_eq!(update(&mut tracker, &[row(11, GUARD, 11), zombie, row(13, 12, 13)]), [11, 13]);
    }
}

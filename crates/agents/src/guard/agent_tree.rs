//! The processes below a guard, as completely as the system allows.
//!
//! Where orphans become children of the guard, these are its descendants. Elsewhere the guard follows
//! the tree: the system reports each fork of a known process, the guard then looks for its children,
//! and a [`TreeTracker`] remembers them.

use crate::os::{OrphanParent, ProcessIdentity, ProcessTable, SignalReader};
use crate::tree_tracker::TreeTracker;
use std::collections::BTreeSet;
use std::time::Duration;

/// How often the tree is checked while it is being ended and no process of it is a child: the exit
/// of others is not reported.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

pub(crate) struct AgentTree<'a> {
    table: ProcessTable,
    orphan_parent: OrphanParent,
    mark: String,
    signals: &'a SignalReader,
    tracker: TreeTracker,
}

impl<'a> AgentTree<'a> {
    /// The tree with this mark below this process.
    pub(crate) fn new(
        orphan_parent: OrphanParent,
        mark: String,
        signals: &'a SignalReader,
    ) -> AgentTree<'a> {
        let (table, tracker) = (ProcessTable::system(), TreeTracker::default());
        AgentTree { table, orphan_parent, mark, signals, tracker }
    }

    pub(crate) fn table(&self) -> &ProcessTable {
        &self.table
    }

    /// Adds the agent itself.
    pub(crate) fn add_agent(&mut self, agent: u32) {
        if self.orphan_parent == OrphanParent::Init
            && let Some(row) = self.table.row(agent)
        {
            self.tracker.add(&row);
            self.signals.follow(row.process);
            // It may have started a process before it was followed.
            self.add_children(agent);
        }
    }

    /// Adds the processes that this member has started, and those below them.
    pub(crate) fn add_children(&mut self, member: u32) {
        let mut open = vec![member];
        while let Some(parent) = open.pop() {
            for row in self.table.children(parent) {
                if self.tracker.add(&row) {
                    self.signals.follow(row.process);
                    open.push(row.process.pid);
                }
            }
        }
    }

    /// All processes of the tree that are alive.
    pub(crate) fn processes(&mut self) -> Vec<ProcessIdentity> {
        let own = std::process::id();
        if self.orphan_parent == OrphanParent::Guard {
            return self.table.descendants(&[own]);
        }
        let marked = self.table.find_marked(&BTreeSet::from([self.mark.as_str()]));
        let marked = marked.into_iter().map(|(process, _)| process).collect();
        let rows = self.table.rows();
        for process in self.tracker.update(&rows, own, &marked) {
            self.signals.follow(process);
        }
        self.tracker.alive(&rows)
    }

    /// Whether no process is left, when this process has no child.
    pub(crate) fn is_empty_without_children(&mut self) -> bool {
        self.orphan_parent == OrphanParent::Guard || self.processes().is_empty()
    }

    /// How often to check whether the tree is empty while it is being ended; `None` if the exit of
    /// each process is reported.
    pub(crate) fn check_interval(&self) -> Option<Duration> {
        (self.orphan_parent == OrphanParent::Init).then_some(CHECK_INTERVAL)
    }
}

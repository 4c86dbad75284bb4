//! Kills processes that are proved to belong to an agent's tree, from outside of the tree: if the
//! guard can no longer do it, and for processes that were started by the tree but are not below it.

use crate::os::cgroup::ControlGroup;
use crate::os::{ORPHAN_PARENT, OrphanParent, ProcessIdentity, ProcessTable, Signal, signal_if};
use crate::tree_tracker::TreeTracker;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long KILL is repeated before the survivors are reported.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// The pause between rounds, in which killed processes exit.
const ROUND_PAUSE: Duration = Duration::from_millis(5);

/// A process tree: its mark, and its processes that are known for certain.
#[derive(Debug)]
pub(crate) struct SweepTarget {
    pub(crate) mark: String,
    pub(crate) known: Vec<ProcessIdentity>,
    /// The control group of the tree, if the system supports it. All its processes belong to the
    /// tree.
    pub(crate) group: Option<ControlGroup>,
}

#[derive(Debug, Default)]
pub(crate) struct SweepResult {
    pub(crate) ended: Vec<u32>,
    /// One list for each target.
    pub(crate) survivors: Vec<Vec<u32>>,
}

/// Kills every known process, every process with a target's mark, and all their descendants, in
/// rounds until none is left or the timeout has passed. Scans all processes of the machine, and
/// blocks.
pub(crate) fn sweep_trees(targets: &[SweepTarget]) -> SweepResult {
    let table = ProcessTable::system();
    let deadline = Instant::now() + KILL_TIMEOUT;
    let mut seen = BTreeSet::new();
    let mut trackers: Vec<TreeTracker> = targets.iter().map(|_| TreeTracker::default()).collect();
    loop {
        let mut found = find_processes(&table, targets);
        if ORPHAN_PARENT == OrphanParent::Init {
            add_orphans(&table, &mut found, &mut trackers);
        }
        let alive: BTreeSet<u32> = found.iter().flatten().map(|one| one.process.pid).collect();
        seen.extend(&alive);
        if alive.is_empty() || deadline <= Instant::now() {
            control_groups(targets).for_each(ControlGroup::remove);
            let ended = seen.difference(&alive).copied().collect();
            let pids =
                |tree: Vec<FoundProcess>| tree.into_iter().map(|one| one.process.pid).collect();
            return SweepResult { ended, survivors: found.into_iter().map(pids).collect() };
        }
        control_groups(targets).for_each(ControlGroup::kill);
        for (tree, target) in found.iter().zip(targets) {
            for FoundProcess { process, by_mark } in tree {
                if *by_mark {
                    let carries = || table.has_mark(process.pid, &target.mark);
                    signal_if(process.pid, Signal::KILL, carries);
                } else {
                    process.signal(Signal::KILL);
                }
            }
        }
        std::thread::sleep(ROUND_PAUSE);
    }
}

fn control_groups(targets: &[SweepTarget]) -> impl Iterator<Item = &ControlGroup> {
    targets.iter().filter_map(|it| it.group.as_ref())
}

struct FoundProcess {
    process: ProcessIdentity,
    /// Proved by its mark; otherwise by pid, start time and parents.
    by_mark: bool,
}

/// The living processes of each target.
fn find_processes(table: &ProcessTable, targets: &[SweepTarget]) -> Vec<Vec<FoundProcess>> {
    let us = std::process::id();
    let marks = targets.iter().map(|target| target.mark.as_str()).collect();
    let mut marked: BTreeMap<String, Vec<ProcessIdentity>> = BTreeMap::new();
    for (process, mark) in table.find_marked(&marks) {
        marked.entry(mark).or_default().push(process);
    }
    let tree = |target: &SweepTarget| {
        let known = target.known.iter().filter(|process| process.is_alive());
        let mut tree: BTreeMap<ProcessIdentity, bool> =
            known.map(|process| (*process, false)).collect();
        tree.extend(marked.remove(&target.mark).into_iter().flatten().map(|one| (one, true)));
        let grouped = target.group.iter().flat_map(ControlGroup::processes);
        tree.extend(grouped.map(|process| (process, false)));
        let roots: Vec<u32> = tree.keys().map(|process| process.pid).collect();
        for process in table.descendants(&roots) {
            tree.entry(process).or_insert(false);
        }
        tree.retain(|process, _| process.pid != us);
        tree.into_iter().map(|(process, by_mark)| FoundProcess { process, by_mark }).collect()
    };
    targets.iter().map(tree).collect()
}

/// Adds processes whose parents have exited, and which are in a process group that a process of the
/// target led during this sweep.
fn add_orphans(
    table: &ProcessTable,
    found: &mut [Vec<FoundProcess>],
    trackers: &mut [TreeTracker],
) {
    let (us, rows) = (std::process::id(), table.rows());
    for (tree, tracker) in found.iter_mut().zip(trackers) {
        let known = tree.iter().map(|it| it.process).collect();
        tracker.update(&rows, us, &known);
        let orphans = tracker.alive(&rows).into_iter().filter(|it| !known.contains(it));
        tree.extend(orphans.map(|process| FoundProcess { process, by_mark: false }));
    }
}

/// Combines the sweeps of agents that end at the same time, so that the processes of the machine
/// are scanned once or twice and not once for each agent.
#[derive(Debug, Default)]
pub(crate) struct ProcessSweeper {
    queue: Mutex<SweepQueue>,
}

#[derive(Debug, Default)]
struct SweepQueue {
    waiting: Vec<(SweepTarget, oneshot::Sender<Vec<u32>>)>,
    busy: bool,
}

impl ProcessSweeper {
    /// Returns the survivors.
    pub(crate) async fn sweep(self: Arc<Self>, target: SweepTarget) -> Vec<u32> {
        let (answer, answered) = oneshot::channel();
        let busy = self.with_queue(|queue| {
            queue.waiting.push((target, answer));
            mem::replace(&mut queue.busy, true)
        });
        if !busy {
            // On another thread, because a sweep blocks. The result comes through the channel.
            drop(tokio::task::spawn_blocking(move || self.sweep_waiting()));
        }
        answered.await.unwrap_or_default()
    }

    fn sweep_waiting(&self) {
        loop {
            let waiting = self.with_queue(|queue| {
                queue.busy = !queue.waiting.is_empty();
                mem::take(&mut queue.waiting)
            });
            if waiting.is_empty() {
                return;
            }
            let (targets, answers): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
            for (answer, survivors) in answers.into_iter().zip(sweep_trees(&targets).survivors) {
                // The receiver may have been dropped with the daemon.
                let _ = answer.send(survivors);
            }
        }
    }

    fn with_queue<T>(&self, work: impl FnOnce(&mut SweepQueue) -> T) -> T {
        work(&mut self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

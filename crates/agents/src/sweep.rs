//! Killing from outside a tree what is proved to belong to it: when the guard cannot do it any more,
//! and as the last resort for what was started by a tree but not below it.

use crate::os::cgroup::ControlGroup;
use crate::os::{Process, Signal, Table, signal_if};
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How long killing is repeated before the survivors are reported.
const PATIENCE: Duration = Duration::from_secs(2);
/// Killed processes need a moment to vanish.
const ROUND_PAUSE: Duration = Duration::from_millis(5);

/// A tree: its mark, and the processes of it that are known for sure.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) mark: String,
    pub(crate) known: Vec<Process>,
    /// Where the system has groups for us. Everything in it belongs to the tree.
    pub(crate) group: Option<ControlGroup>,
}

#[derive(Debug, Default)]
pub(crate) struct Swept {
    pub(crate) ended: Vec<u32>,
    /// One list for each target.
    pub(crate) survivors: Vec<Vec<u32>>,
}

/// Kills every process that carries a target's mark or is known, and everything below those, in
/// rounds until nobody is left or patience ends. Looks at every process of the machine, and blocks.
pub(crate) fn sweep(targets: &[Target]) -> Swept {
    let table = Table::system();
    let deadline = Instant::now() + PATIENCE;
    let mut met = BTreeSet::new();
    loop {
        let found = find(&table, targets);
        let alive: BTreeSet<u32> = found.iter().flatten().map(|one| one.process.pid).collect();
        met.extend(&alive);
        if alive.is_empty() || deadline <= Instant::now() {
            groups(targets).for_each(ControlGroup::remove);
            let ended = met.difference(&alive).copied().collect();
            let pids = |tree: Vec<Found>| tree.into_iter().map(|one| one.process.pid).collect();
            return Swept { ended, survivors: found.into_iter().map(pids).collect() };
        }
        groups(targets).for_each(ControlGroup::kill);
        for (tree, target) in found.iter().zip(targets) {
            for Found { process, by_mark } in tree {
                if *by_mark {
                    let carries = || table.carries(process.pid, &target.mark);
                    signal_if(process.pid, Signal::KILL, carries);
                } else {
                    process.signal(Signal::KILL);
                }
            }
        }
        std::thread::sleep(ROUND_PAUSE);
    }
}

fn groups(targets: &[Target]) -> impl Iterator<Item = &ControlGroup> {
    targets.iter().filter_map(|it| it.group.as_ref())
}

struct Found {
    process: Process,
    /// Proved by the mark, else by number, start time and parents.
    by_mark: bool,
}

/// Who is alive, for each target.
fn find(table: &Table, targets: &[Target]) -> Vec<Vec<Found>> {
    let us = std::process::id();
    let marks = targets.iter().map(|target| target.mark.as_str()).collect();
    let mut marked: BTreeMap<String, Vec<Process>> = BTreeMap::new();
    for (process, mark) in table.marked(&marks) {
        marked.entry(mark).or_default().push(process);
    }
    let tree = |target: &Target| {
        let known = target.known.iter().filter(|process| process.lives());
        let mut tree: BTreeMap<Process, bool> = known.map(|process| (*process, false)).collect();
        tree.extend(marked.remove(&target.mark).into_iter().flatten().map(|one| (one, true)));
        let grouped = target.group.iter().flat_map(ControlGroup::processes);
        tree.extend(grouped.map(|process| (process, false)));
        let roots: Vec<u32> = tree.keys().map(|process| process.pid).collect();
        for process in table.descendants(&roots) {
            tree.entry(process).or_insert(false);
        }
        tree.retain(|process, _| process.pid != us);
        tree.into_iter().map(|(process, by_mark)| Found { process, by_mark }).collect()
    };
    targets.iter().map(tree).collect()
}

/// Sweeps for many agents at once: however many end together, all processes of the machine are
/// looked at once or twice, not once for each of them.
#[derive(Debug, Default)]
pub(crate) struct Sweeper {
    desk: Mutex<Desk>,
}

#[derive(Debug, Default)]
struct Desk {
    waiting: Vec<(Target, oneshot::Sender<Vec<u32>>)>,
    busy: bool,
}

impl Sweeper {
    /// Returns the survivors.
    pub(crate) async fn sweep(self: Arc<Self>, target: Target) -> Vec<u32> {
        let (answer, answered) = oneshot::channel();
        let busy = self.with(|desk| {
            desk.waiting.push((target, answer));
            mem::replace(&mut desk.busy, true)
        });
        if !busy {
            // Not on the thread that serves everyone. It is not waited for: the answer is.
            drop(tokio::task::spawn_blocking(move || self.work()));
        }
        answered.await.unwrap_or_default()
    }

    fn work(&self) {
        loop {
            let waiting = self.with(|desk| {
                desk.busy = !desk.waiting.is_empty();
                mem::take(&mut desk.waiting)
            });
            if waiting.is_empty() {
                return;
            }
            let (targets, answers): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
            for (answer, survivors) in answers.into_iter().zip(sweep(&targets).survivors) {
                // Whoever asked may be gone with the daemon.
                let _ = answer.send(survivors);
            }
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Desk) -> T) -> T {
        work(&mut self.desk.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

//! Runs: prompts made through the API.
//!
//! Read in this order: `id` names a run, `course` follows it through its session's log, `events` is
//! what its readers hear. `key` recognizes requests that are sent again. `open` gets a session
//! ready for a prompt, `drive` sends it and follows it to its end, `approve` answers asks for it.
//! `follow` is one reader. [`Runs`] is a cache: all that is known of a run stands in the log, and
//! `find` reads it there.

mod approve;
mod course;
mod drive;
mod events;
mod find;
mod follow;
mod id;
mod key;
mod open;
mod routes;

pub(crate) use approve::Approve;
pub(crate) use course::Start;
pub(crate) use drive::{Begun, Goal, Order, begin};
pub(crate) use events::RunEvent;
pub(crate) use id::RunId;
pub(crate) use key::IdempotencyKey;
pub(crate) use open::Choices;
pub(crate) use routes::*;

use course::{Course, Status};
use key::OpenRequests;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::Notify;

/// Runs that are remembered: a screen full, many times over. All others are in the log.
const KNOWN_MAX: usize = 1000;
/// Runs that are under way at a time: each has a connection to the hub.
const DRIVEN_MAX: usize = 512;

/// A run that somebody has asked for since we started.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) id: RunId,
    course: Mutex<Course>,
    /// Somebody here stays with it to its end.
    driven: AtomicBool,
    /// Tells whoever drives it to end it.
    pub(crate) stop: Arc<Notify>,
}

impl Run {
    fn new(course: Course, id: RunId, driven: bool, stop: Arc<Notify>) -> Run {
        Run { id, course: Mutex::new(course), driven: driven.into(), stop }
    }

    fn course(&self) -> MutexGuard<'_, Course> {
        // A panic while it was held has been reported; the course is a value, and whole.
        self.course.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_driven(&self) -> bool {
        self.driven.load(Ordering::SeqCst)
    }

    fn status(&self) -> Option<Status> {
        self.course().status()
    }

    /// The fact behind which its own begin.
    fn before(&self) -> u64 {
        self.course().first.saturating_sub(1)
    }

    /// The number of its prompt, while it waits.
    fn waits(&self) -> Option<u64> {
        self.course().waits()
    }

    /// What is known of it will not change, or changes by itself.
    fn is_settled(&self) -> bool {
        self.is_driven() || self.course().outcome().is_some()
    }
}

/// The runs we know of.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    known: Mutex<Known>,
    open_requests: OpenRequests,
}

#[derive(Debug, Default)]
struct Known {
    runs: BTreeMap<RunId, Arc<Run>>,
    /// The oldest first.
    order: VecDeque<RunId>,
}

impl Runs {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, run: &Arc<Run>) {
        let mut known = self.known();
        if known.runs.insert(run.id.clone(), run.clone()).is_none() {
            known.order.push_back(run.id.clone());
        }
        // What is under way is never forgotten, and is bounded by itself.
        let old = known.order.len().saturating_sub(KNOWN_MAX);
        for _ in 0..old {
            let Some(id) = known.order.pop_front() else { return };
            if known.runs.get(&id).is_some_and(|it| it.is_driven()) {
                known.order.push_back(id);
            } else {
                known.runs.remove(&id);
            }
        }
    }

    fn get(&self, id: &RunId) -> Option<Arc<Run>> {
        self.known().runs.get(id).cloned()
    }

    /// Those we know of, the latest first.
    fn all(&self) -> Vec<Arc<Run>> {
        let known = self.known();
        known.order.iter().rev().filter_map(|it| known.runs.get(it).cloned()).collect()
    }

    /// Whether one more may be under way.
    fn has_room(&self) -> bool {
        self.known().runs.values().filter(|it| it.is_driven()).count() < DRIVEN_MAX
    }

    /// Its log is gone, and with it every run.
    pub(crate) fn forget(&self, session: &str) {
        let mut known = self.known();
        known.runs.retain(|id, _| id.session() != session);
        known.order.retain(|id| id.session() != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(driven: bool) -> Arc<Run> {
        let id = RunId::new("s-abcdefghijkl");
        Arc::new(Run::new(Course::new(id.clone()), id, driven, Arc::default()))
    }

    #[test]
    fn old_runs_are_forgotten_and_what_is_under_way_is_not() {
        let runs = Runs::default();
        let busy = run(true);
        runs.add(&busy);
        let first = run(false);
        runs.add(&first);
        for _ in 0..KNOWN_MAX {
            runs.add(&run(false));
        }
        assert!(runs.get(&busy.id).is_some());
        assert!(runs.get(&first.id).is_none());
        assert!(runs.all().len() <= KNOWN_MAX);
        runs.forget("s-abcdefghijkl");
        assert!(runs.all().is_empty());
    }
}

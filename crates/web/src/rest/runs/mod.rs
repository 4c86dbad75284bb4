//! Runs: prompts sent through the REST API.
//!
//! Read in this order: `id` is the id of a run, `progress` follows a run through its session's log to its
//! `outcome`, `opening` is a run before that, `events` are the events that clients receive. `pending` is a
//! requested run, `idempotency` recognizes repeated requests.
//! `session_setup` opens or resumes a session (`new_session` opens one without a run), `driver` sends the prompt and follows it to its end,
//! `approval` answers permission requests. `follow` streams a run to one client. [`RunRegistry`] is a
//! cache: the log has everything about a run, and `find` reads it there.

mod approval;
mod driver;
mod events;
mod find;
mod follow;
mod id;
mod idempotency;
mod new_session;
mod opening;
mod outcome;
mod pending;
mod progress;
mod routes;
mod session_setup;
mod shown;

pub(crate) use approval::RequestedApproval;

pub(crate) use driver::{RunPlan, RunTarget, start_run};
pub(crate) use events::RunEvent;
pub(crate) use id::{RunId, new_session_name, random_name};
pub(crate) use idempotency::IdempotencyKey;
pub(crate) use new_session::*;
pub(crate) use pending::PendingRun;
pub(crate) use progress::RunSettings;
pub(crate) use routes::*;
pub(crate) use session_setup::{SettingChoices, apply_choices};

use idempotency::OpenRequests;
use opening::OpeningStage;
use progress::{RunProgress, RunStatus};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::sync::{Notify, watch};

/// The number of cached runs. All others are read from the log.
const CACHED_MAX: usize = 1000;
/// The number of concurrent runs with a driver: each has a connection to the hub.
const DRIVEN_MAX: usize = 512;

/// A run that was started or requested since the daemon started.
#[derive(Debug)]
pub(crate) struct TrackedRun {
    pub(crate) id: RunId,
    progress: Mutex<RunProgress>,
    /// A driver in this process follows the run to its end.
    has_driver: AtomicBool,
    /// Tells the driver to cancel the run.
    pub(crate) stop: Arc<Notify>,
    /// How far the run is on the way to its prompt.
    opening: watch::Sender<OpeningStage>,
}

impl TrackedRun {
    fn new(progress: RunProgress, id: RunId, has_driver: bool, stop: Arc<Notify>) -> TrackedRun {
        let (progress, has_driver) = (Mutex::new(progress), has_driver.into());
        let opening = watch::Sender::new(OpeningStage::Logged);
        TrackedRun { id, progress, has_driver, stop, opening }
    }

    /// A run whose agent starts before its prompt is sent.
    fn opening(id: RunId, settings: RunSettings, opens_session: bool, stop: Arc<Notify>) -> Self {
        let progress = RunProgress::opening(id.clone(), settings, opening::now());
        let opening = watch::Sender::new(OpeningStage::Starting { opens_session });
        TrackedRun { opening, ..TrackedRun::new(progress, id, true, stop) }
    }

    fn progress(&self) -> MutexGuard<'_, RunProgress> {
        // The progress is a plain value, so it is consistent even after a panic.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_driver(&self) -> bool {
        self.has_driver.load(Ordering::SeqCst)
    }

    fn status(&self) -> Option<RunStatus> {
        self.progress().status()
    }

    /// The sequence number before its first event.
    fn read_after(&self) -> u64 {
        self.progress().first_seq.saturating_sub(1)
    }

    /// The number of its prompt while it is queued.
    fn queued_prompt(&self) -> Option<u64> {
        self.progress().queued_prompt()
    }

    /// Whether the cached state is final or kept current by a driver.
    fn is_current(&self) -> bool {
        self.has_driver() || self.progress().outcome().is_some()
    }
}

/// The cached runs.
#[derive(Debug, Default)]
pub(crate) struct RunRegistry {
    cache: Mutex<RunCache>,
    open_requests: OpenRequests,
}

#[derive(Debug, Default)]
struct RunCache {
    runs: BTreeMap<RunId, Arc<TrackedRun>>,
    /// The oldest first.
    order: VecDeque<RunId>,
}

impl RunRegistry {
    fn cache(&self) -> MutexGuard<'_, RunCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, run: &Arc<TrackedRun>) {
        let mut cache = self.cache();
        if cache.runs.insert(run.id.clone(), run.clone()).is_none() {
            cache.order.push_back(run.id.clone());
        }
        // A run with a driver is never evicted; their number is limited separately.
        let excess = cache.order.len().saturating_sub(CACHED_MAX);
        for _ in 0..excess {
            let Some(id) = cache.order.pop_front() else { return };
            if cache.runs.get(&id).is_some_and(|it| it.has_driver()) {
                cache.order.push_back(id);
            } else {
                cache.runs.remove(&id);
            }
        }
    }

    fn get(&self, id: &RunId) -> Option<Arc<TrackedRun>> {
        self.cache().runs.get(id).cloned()
    }

    /// The run that is opening this session.
    pub(crate) fn find_opening(&self, session: &str) -> Option<Arc<TrackedRun>> {
        let is_opening = |it: &&Arc<TrackedRun>| it.id.session() == session && it.is_opening();
        self.cache().runs.values().find(is_opening).cloned()
    }

    /// The cached runs, the latest first.
    fn list(&self) -> Vec<Arc<TrackedRun>> {
        let cache = self.cache();
        cache.order.iter().rev().filter_map(|it| cache.runs.get(it).cloned()).collect()
    }

    /// Whether one more run may have a driver.
    fn has_capacity(&self) -> bool {
        self.cache().runs.values().filter(|it| it.has_driver()).count() < DRIVEN_MAX
    }

    /// Removes the runs of a deleted session.
    pub(crate) fn remove_session(&self, session: &str) {
        let mut cache = self.cache();
        cache.runs.retain(|id, _| id.session() != session);
        cache.order.retain(|id| id.session() != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(has_driver: bool) -> Arc<TrackedRun> {
        let id = RunId::new("s-abcdefghijkl");
        Arc::new(TrackedRun::new(RunProgress::new(id.clone()), id, has_driver, Arc::default()))
    }

    #[test]
    fn old_runs_are_evicted_unless_they_have_a_driver() {
        let runs = RunRegistry::default();
        let busy = run(true);
        runs.add(&busy);
        let first = run(false);
        runs.add(&first);
        for _ in 0..CACHED_MAX {
            runs.add(&run(false));
        }
        assert!(runs.get(&busy.id).is_some());
        assert!(runs.get(&first.id).is_none());
        assert!(runs.list().len() <= CACHED_MAX);
        runs.remove_session("s-abcdefghijkl");
        assert!(runs.list().is_empty());
    }
}

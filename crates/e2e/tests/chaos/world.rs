//! What everybody in the chaos shares: the home, the clock, the sessions there are, what was counted
//! and what was found wrong.

use super::ear::Ear;
use jackfield_e2e::Home;
use std::{
    collections::BTreeMap,
    env,
    path::PathBuf,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How much chaos.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) seconds: u64,
    pub(super) sessions: u64,
}

impl Plan {
    pub(super) fn from_env() -> Plan {
        let number = |name: &str, default: u64| {
            let text = env::var(name).ok();
            text.map_or(default, |it| it.parse().unwrap_or_else(|_| panic!("{name} is no number")))
        };
        Plan {
            seed: number("CHAOS_SEED", 1),
            seconds: number("CHAOS_SECONDS", 15),
            sessions: number("CHAOS_SESSIONS", 40),
        }
    }

    pub(super) fn again(self) -> String {
        let Plan { seed, seconds, sessions } = self;
        format!("cargo xtask chaos --seed {seed} --seconds {seconds} --sessions {sessions}")
    }
}

pub(super) type Outcomes = BTreeMap<String, Result<String, String>>;

pub(super) struct World {
    pub(super) home: Home,
    pub(super) plan: Plan,
    pub(super) ear: Ear,
    sessions: Mutex<Vec<String>>,
    prompts: AtomicU64,
    /// What clients were told, by the prompt's token: a stop reason, or the code of an error.
    outcomes: Mutex<Outcomes>,
    tally: Mutex<BTreeMap<String, u64>>,
    faults: Mutex<Vec<String>>,
    calm_at: Instant,
    /// Trouble ended, in time or before.
    calm: Mutex<bool>,
    changed: Condvar,
}

/// Faults beyond this are the same again.
const FAULTS_MAX: usize = 20;

impl World {
    pub(super) fn new(plan: Plan) -> World {
        World {
            home: Home::new(),
            plan,
            ear: Ear::default(),
            sessions: Mutex::default(),
            prompts: AtomicU64::new(0),
            outcomes: Mutex::default(),
            tally: Mutex::default(),
            faults: Mutex::default(),
            calm_at: Instant::now() + Duration::from_secs(plan.seconds),
            calm: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    /// Where the agent of this actor keeps what it was told.
    pub(super) fn agent_state(&self, actor: u64) -> PathBuf {
        self.home.path().join(format!("agents/{actor}"))
    }

    pub(super) fn in_trouble(&self) -> bool {
        Instant::now() < self.calm_at && !*locked(&self.calm)
    }

    /// Nobody kills any more.
    pub(super) fn is_calm(&self) -> bool {
        *locked(&self.calm)
    }

    /// The pace of the chaos: passes time, less if trouble ends.
    pub(super) fn pass(&self, time: Duration) {
        let calm = locked(&self.calm);
        let _woken = self.changed.wait_timeout_while(calm, time, |it| !*it);
    }

    pub(super) fn calm_down(&self) {
        *locked(&self.calm) = true;
        self.changed.notify_all();
    }

    /// Something that must not be. Trouble ends, so that the report is about this.
    pub(super) fn fault(&self, what: String) {
        let mut faults = locked(&self.faults);
        if faults.len() < FAULTS_MAX {
            faults.push(what);
        }
        drop(faults);
        self.calm_down();
    }

    pub(super) fn faults(&self) -> Vec<String> {
        locked(&self.faults).clone()
    }

    pub(super) fn count(&self, what: &str) {
        *locked(&self.tally).entry(what.to_owned()).or_default() += 1;
    }

    pub(super) fn tally(&self) -> BTreeMap<String, u64> {
        locked(&self.tally).clone()
    }

    /// A mark for a prompt that no other prompt has.
    pub(super) fn token(&self) -> String {
        format!("t-{:06}", self.prompts.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn told(&self, token: String, outcome: Result<String, String>) {
        locked(&self.outcomes).insert(token, outcome);
    }

    pub(super) fn outcome(&self, token: &str) -> Option<Result<String, String>> {
        locked(&self.outcomes).get(token).cloned()
    }

    pub(super) fn outcomes(&self) -> Outcomes {
        locked(&self.outcomes).clone()
    }

    pub(super) fn add_session(&self, id: &str) {
        locked(&self.sessions).push(id.to_owned());
    }

    pub(super) fn sessions(&self) -> Vec<String> {
        locked(&self.sessions).clone()
    }
}

/// A thread that fails must not hide what the others found.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! How the hub of a world is told to keep house: who sleeps when, how many live, what is too long.

use super::agent::PROGRAMS;
use jackfield_hub::{AgentPool, Config, Liveness, PolicySet, Sleep};
use jackfield_test_support::rng::Rng;
use std::sync::Arc;

/// Which kinds of tools rules speak of in the worlds that have rules.
pub(super) const RULED: [&str; 2] = ["read", "delete"];

const RULES: &str = r#"
rule = [{ do = "allow", kind = "read" }, { do = "deny", kind = "delete" }]
"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Habits {
    pub(super) sleep: Sleep,
    pub(super) liveness: Liveness,
    warm: usize,
    /// So many sessions one process may serve.
    pub(super) seats: usize,
    /// Each agent has another that is used in its place; there is no end to that.
    pub(super) falls_back: bool,
    /// Rules answer what reads and what deletes.
    pub(super) rules: bool,
    /// Of ten thousand steps: the machine is short of memory.
    pub(super) pressure: u64,
    /// Sessions that nobody needs are let go.
    pub(super) forgets: bool,
}

impl Habits {
    pub(super) fn new(rng: &mut Rng) -> Habits {
        let idle_after_ms = rng.pick(&[None, None, Some(60), Some(400), Some(4_000)]);
        let max_live = rng.pick(&[None, None, Some(1), Some(2), Some(3)]);
        // Without the first, warm processes would stay for ever, and the world would not rest.
        let warm = if idle_after_ms.is_some() { rng.pick(&[0, 0, 1, 2]) } else { 0 };
        let (soft, hard) = rng.pick(&[(0, 0), (0, 0), (100, 0), (300, 0), (100, 600)]);
        let mut liveness = Liveness::default();
        if soft != 0 {
            liveness.thinking_ms = soft;
            liveness.tool_ms = 2 * soft;
            liveness.opening_ms = soft;
            liveness.initializing_ms = soft;
        }
        if hard != 0 {
            liveness.thinking_ms_max = Some(hard);
            liveness.tool_ms_max = Some(2 * hard);
        }
        let pressure = rng.pick(&[0, 0, 100]);
        let rules = rng.chance(50);
        let seats = rng.pick(&[1, 1, 2, 3, 4]);
        let falls_back = rng.chance(30);
        let sleep = Sleep { idle_after_ms, max_live };
        let forgets = rng.chance(20);
        Habits { sleep, liveness, warm, seats, falls_back, rules, pressure, forgets }
    }

    /// The agent that most clients want, where processes are shared.
    pub(super) fn favourite(&self) -> usize {
        self.seats % 3
    }

    pub(super) fn configure(&self, config: Config) -> Config {
        let pool = |at: usize| {
            let next = PROGRAMS[(at + 1) % PROGRAMS.len()].0;
            let fallback = self.falls_back.then(|| next.into());
            AgentPool { warm: self.warm, sessions_per_process: self.seats, fallback }
        };
        let pools = (0..PROGRAMS.len()).map(|at| (PROGRAMS[at].0.into(), pool(at))).collect();
        let rules = if self.rules { RULES } else { "" };
        let user =
            jackfield_policy::parse_policy(rules, "policy.toml").expect("these rules are valid");
        let policies = Arc::new(PolicySet { user, ..PolicySet::default() });
        let (sleep, liveness, keep_asleep) = (self.sleep, self.liveness, !self.forgets);
        let host = Some("east".into());
        Config { sleep, liveness, pools, policies, host, keep_asleep, ..config }
    }
}

//! The configuration of the simulated hub: sleep, pools, limits of live agents, timeouts and rules.

use super::agent::PROGRAMS;
use jackfield_hub::{AgentPool, Config, Liveness, PolicySet, Sleep};
use jackfield_test_support::rng::Rng;
use std::sync::Arc;

/// The tool kinds that rules answer, in worlds with rules.
pub(super) const RULED_KINDS: [&str; 2] = ["read", "delete"];

const RULES: &str = r#"
rule = [{ do = "allow", kind = "read" }, { do = "deny", kind = "delete" }]
"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HubSettings {
    pub(super) sleep: Sleep,
    pub(super) liveness: Liveness,
    warm: usize,
    /// The number of sessions that one process may serve.
    pub(super) sessions_per_process: usize,
    /// Each agent has a fallback; the fallbacks form a cycle.
    pub(super) has_fallback: bool,
    /// Rules answer permission requests to read and to delete.
    pub(super) has_rules: bool,
    /// Of ten thousand steps: the machine is short of memory.
    pub(super) pressure: u64,
    /// The hub releases sessions that are asleep and unused.
    pub(super) unloads_sleeping: bool,
}

impl HubSettings {
    pub(super) fn new(rng: &mut Rng) -> HubSettings {
        let idle_after_ms = rng.pick(&[None, None, Some(60), Some(400), Some(4_000)]);
        let max_live = rng.pick(&[None, None, Some(1), Some(2), Some(3)]);
        // Without the idle timeout, warm processes would never stop, and the world would not settle.
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
        let has_rules = rng.chance(50);
        let sessions_per_process = rng.pick(&[1, 1, 2, 3, 4]);
        let has_fallback = rng.chance(30);
        let sleep = Sleep { idle_after_ms, max_live };
        let unloads_sleeping = rng.chance(20);
        HubSettings {
            sleep,
            liveness,
            warm,
            sessions_per_process,
            has_fallback,
            has_rules,
            pressure,
            unloads_sleeping,
        }
    }

    /// The agent that most clients choose if processes are shared.
    pub(super) fn preferred_program(&self) -> usize {
        self.sessions_per_process % 3
    }

    pub(super) fn configure(&self, config: Config) -> Config {
        let pool = |at: usize| {
            let next = PROGRAMS[(at + 1) % PROGRAMS.len()].0;
            let fallback = self.has_fallback.then(|| next.into());
            AgentPool { warm: self.warm, sessions_per_process: self.sessions_per_process, fallback }
        };
        let pools = (0..PROGRAMS.len()).map(|at| (PROGRAMS[at].0.into(), pool(at))).collect();
        let rules = if self.has_rules { RULES } else { "" };
        let user =
            jackfield_policy::parse_policy(rules, "policy.toml").expect("these rules are valid");
        let policies = Arc::new(PolicySet { user, ..PolicySet::default() });
        let (sleep, liveness, keep_asleep) = (self.sleep, self.liveness, !self.unloads_sleeping);
        let host = Some("east".into());
        Config { sleep, liveness, pools, policies, host, keep_asleep, ..config }
    }
}

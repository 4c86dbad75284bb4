//! The configuration of the hub.

mod liveness;
mod unanswered_rule;

pub use liveness::Liveness;
pub(crate) use liveness::WaitPhase;
pub use unanswered_rule::{AskRule, Unanswered};

use crate::{Launch, Limits, PolicySet};
use jackfield_events::{AgentName, HostId, RawJson};
use jackfield_policy::PolicyDecision;
use jackfield_protocol::Fault;
use std::{collections::BTreeMap, sync::Arc};

#[derive(Debug, Clone)]
pub struct Config {
    /// Agents known by name.
    pub agents: BTreeMap<AgentName, Launch>,
    /// The agent of a session whose client names none.
    pub default_agent: Option<AgentName>,
    /// Where session ids are drawn from.
    pub seed: u64,
    pub limits: Limits,
    /// What agents may do without a person being asked, and what they may not do at all.
    pub policies: Arc<PolicySet>,
    /// What happens to asks nobody answers, in sessions that do not say.
    pub ask_rule: Option<AskRule>,
    pub sleep: Sleep,
    pub liveness: Liveness,
    /// How processes of an agent are kept, by its name.
    pub pools: BTreeMap<AgentName, AgentPool>,
    /// The name of this host, where there are several: the log says who adopted a session.
    pub host: Option<HostId>,
    /// Whether a session that sleeps and that nobody listens to is still known. Where sessions are
    /// adopted when they are asked for it need not be.
    pub keep_asleep: bool,
    /// Records that were acknowledged by an earlier daemon and are not in the journal.
    pub lost_records: Option<u64>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            agents: BTreeMap::new(),
            default_agent: None,
            seed: 0,
            limits: Limits::default(),
            policies: Arc::default(),
            ask_rule: None,
            sleep: Sleep::default(),
            liveness: Liveness::default(),
            pools: BTreeMap::new(),
            host: None,
            keep_asleep: true,
            lost_records: None,
        }
    }
}

impl Config {
    pub(crate) fn find_agent_launch(&self, name: &str) -> Result<Launch, Fault> {
        let why = || format!("no agent is called `{name}`");
        self.agents.get(name).cloned().ok_or_else(|| Fault::NoAgent { why: why() })
    }

    /// How many sessions a process of this agent may serve.
    pub(crate) fn sessions_per_process(&self, agent: &str) -> usize {
        self.pools.get(agent).map_or(1, |it| it.sessions_per_process.max(1))
    }

    /// How many processes of this agent are kept ready for new sessions.
    pub(crate) fn warm_process_count(&self, agent: &str) -> usize {
        self.pools.get(agent).map_or(0, |it| it.warm)
    }

    /// A decision as the log stores it; nothing if there are no rules.
    pub(crate) fn describe_decision(&self, decision: &PolicyDecision) -> Option<RawJson> {
        if decision.effect.is_none() && self.policies.is_empty() {
            return None;
        }
        Some(RawJson::trusted(decision.to_json().to_string()))
    }
}

/// How the processes of an agent are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPool {
    /// So many wait, started and introduced, for the next session.
    pub warm: usize,
    /// So many seats each has.
    pub sessions_per_process: usize,
    /// The agent that is used when this one cannot be had.
    pub fallback: Option<AgentName>,
}

impl Default for AgentPool {
    fn default() -> AgentPool {
        AgentPool { warm: 0, sessions_per_process: 1, fallback: None }
    }
}

/// When agents that are not used are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sleep {
    /// An agent that was not used for so long is stopped, if it can take its session up again.
    pub idle_after_ms: Option<u64>,
    /// So many agents are alive at a time; who needs one more waits.
    pub max_live: Option<usize>,
}

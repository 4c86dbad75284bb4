//! The configuration of the hub.

mod liveness;
mod mcp;
mod unanswered_rule;

pub use liveness::Liveness;
pub(crate) use liveness::{StartLimits, WaitPhase};
pub use mcp::McpConfig;
pub use unanswered_rule::{AskRule, Unanswered};

use crate::{Launch, Limits, PolicySet};
use jackfield_events::{AgentName, HostId, RawJson};
use jackfield_policy::PolicyDecision;
use jackfield_protocol::{Fault, suggest_name};
use std::{collections::BTreeMap, sync::Arc};

#[derive(Debug, Clone)]
pub struct Config {
    /// Agents by name. An alias leads to a launch with the agent's own name.
    pub agents: BTreeMap<AgentName, Launch>,
    /// The agent of sessions whose clients name none.
    pub default_agent: Option<AgentName>,
    /// The seed of session ids.
    pub seed: u64,
    pub limits: Limits,
    /// The policy rules.
    pub policies: Arc<PolicySet>,
    /// What happens to requests to the user that nobody answers, in sessions that do not choose.
    pub ask_rule: Option<AskRule>,
    pub sleep: Sleep,
    pub liveness: Liveness,
    /// The process pools of agents by name.
    pub pools: BTreeMap<AgentName, AgentPool>,
    /// The MCP servers that sessions and agents can name.
    pub mcp: Arc<McpConfig>,
    /// The name of this host in a fleet.
    pub host: Option<HostId>,
    /// Whether suspended sessions without subscribers stay in memory. In a fleet they are taken over again when they are
    /// used.
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
            mcp: Arc::default(),
            host: None,
            keep_asleep: true,
            lost_records: None,
        }
    }
}

impl Config {
    /// The sandbox profile of an agent in this folder, if no client chooses one.
    pub(crate) fn sandbox_profile(&self, agent: &str, cwd: &str) -> Option<Arc<str>> {
        let of_project = self.policies.project_sandbox(cwd).map(Into::into);
        of_project.or_else(|| self.agents.get(agent)?.sandbox.profile.clone())
    }

    /// The configuration was read again.
    pub(crate) fn change_settings(
        &mut self,
        default_agent: Option<AgentName>,
        sleep: Sleep,
        liveness: Liveness,
        mcp: Arc<McpConfig>,
    ) {
        (self.default_agent, self.mcp) = (default_agent, mcp);
        (self.sleep, self.liveness) = (sleep, liveness);
    }

    pub(crate) fn find_agent_launch(&self, name: &str) -> Result<Launch, Fault> {
        self.agents.get(name).cloned().ok_or_else(|| {
            let suggestion = suggest_name(name, self.agents.keys().map(|it| &**it));
            Fault::NoAgent { why: format!("unknown agent `{name}`{suggestion}") }
        })
    }

    /// Whether `name` is the name or an alias of this agent.
    pub(crate) fn is_name_of(&self, name: &str, agent: &str) -> bool {
        name == agent || self.agents.get(name).is_some_and(|it| &*it.name == agent)
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

/// The process pool of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPool {
    /// This many processes are started and initialized in advance.
    pub warm: usize,
    /// This many sessions may share a process.
    pub sessions_per_process: usize,
    /// The agent that is used if this one cannot be started.
    pub fallback: Option<AgentName>,
}

impl Default for AgentPool {
    fn default() -> AgentPool {
        AgentPool { warm: 0, sessions_per_process: 1, fallback: None }
    }
}

/// When idle agents are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sleep {
    /// An agent that was idle for this time is stopped, if it can restore its session.
    pub idle_after_ms: Option<u64>,
    /// This many agents may run at a time; further starts wait.
    pub max_live: Option<usize>,
}

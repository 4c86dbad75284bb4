//! What the hub is told once.

use crate::{AgentPool, AskRule, Launch, Limits, Liveness, PolicySet, Sleep};
use jackfield_events::{AgentName, HostId};
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

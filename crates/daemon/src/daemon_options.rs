//! What a daemon is started with.

use crate::{
    config::Settings, fleet_config::FleetConfig, observe::LogTarget, paths::Paths,
    web_routes::ExtraRoutes,
};
use jackfield_agents::GuardCommand;
use jackfield_transport::EndpointAddress;
use std::{path::PathBuf, time::Duration};

/// What a daemon is started with.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    pub paths: Paths,
    /// In addition to the socket in the runtime directory.
    pub listen: Vec<EndpointAddress>,
    /// Unencrypted addresses may be reachable from other machines.
    pub insecure: bool,
    pub idle_after: Option<Duration>,
    pub log: LogTarget,
    /// A filter such as `info`.
    pub log_level: String,
    pub guard: GuardCommand,
    pub settings: Settings,
    pub journal: JournalChoice,
    /// Set if the daemon is a member of a fleet, whose journal it uses.
    pub fleet: Option<FleetConfig>,
    /// The file with tenants that may connect over TCP and HTTP.
    pub tenants: Option<PathBuf>,
    /// Additional HTTP routes.
    pub routes: Option<ExtraRoutes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalChoice {
    Memory,
    Sqlite,
}

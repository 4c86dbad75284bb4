//! This daemon as a member of a fleet: a host publishes itself, accepts host connections, and adopts the
//! sessions that it is asked for or that a dead host owned.
//!
//! `membership.rs` joins and leaves, `adopt.rs` adopts sessions, `host_service.rs` handles requests and
//! watches the other hosts, `lease_loss.rs` ends everything when the lease is lost, `watchdog.rs` kills
//! a daemon that hangs, `log_maintenance.rs` maintains the logs, `metrics_collector.rs` collects the
//! metrics of all parts, `wait.rs` waits at the start for servers that are not available yet. The main
//! loop handles each [`FleetCall`].

mod adopt;
mod host_service;
mod lease_loss;
mod log_maintenance;
mod membership;
mod metrics_collector;
mod wait;
mod watchdog;

use crate::{boot_error::FleetError, fleet_config::FleetConfig};
use adopt::SessionAdopter;
use host_service::HostService;
use jackfield_events::{HostId, SessionSummary, TenantName};
use jackfield_fleet::{
    FleetConnection, HostDirectory, HostEntry, HostInstance, HostLease, TenantUsage,
};
use jackfield_hub::{SessionId, Usage};
use jackfield_journal::Journal;
use jackfield_transport::ClientStream;
use lease_loss::LeaseLossHandler;
use log_maintenance::LogMaintenance;
use membership::connect_fleet;
pub(crate) use membership::{FleetAccess, HostInputs};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};
pub(crate) use wait::open_when_ready;
use watchdog::HostWatchdog;

/// How often installed agents are looked up.
const AGENT_SCAN_INTERVAL: Duration = Duration::from_secs(30);

/// A call from the fleet to the main loop.
pub(crate) enum FleetCall {
    /// A client, through a gateway.
    HostConnection(ClientStream),
    /// Whether this host owns the session.
    HasSession(SessionId, oneshot::Sender<bool>),
    /// The session was adopted.
    Adopted(Box<AdoptedSession>, oneshot::Sender<()>),
    /// Release all sessions.
    Drain,
    /// The lease is lost: stop every agent and give up every session.
    StopEverything(oneshot::Sender<()>),
    /// The usage of tenants on the other hosts.
    UsageElsewhere(BTreeMap<TenantName, Usage>),
    /// Report the load of this host.
    ReportLoad(oneshot::Sender<HostLoad>),
}

pub(crate) struct AdoptedSession {
    pub(crate) session: SessionId,
    pub(crate) epoch: u64,
    pub(crate) state: SessionSummary,
    /// The host that owned the session and did not release it.
    pub(crate) from: Option<HostId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HostLoad {
    pub(crate) sessions: u32,
    pub(crate) live: u32,
    /// Processes that may still be started.
    pub(crate) free: Option<u32>,
    pub(crate) tenants: BTreeMap<Arc<str>, TenantUsage>,
}

/// Lists the agents that can be started here. It reads many files.
type AgentLister = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Acquires the lease of this host and keeps it as long as the loop runs. The returned task ends
/// after the lease is released.
async fn join(
    fleet: &FleetConfig,
    host: HostInstance,
    connection: FleetConnection,
    directory: &HostDirectory,
    journal: &Journal,
    list_agents: AgentLister,
    calls: mpsc::Sender<FleetCall>,
) -> Result<JoinHandle<()>, FleetError> {
    let entry = HostEntry {
        host: host.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        labels: fleet.labels.clone(),
        shared: fleet.shared.clone(),
        agents: list_agents(),
        free: None,
        sessions: 0,
        live: 0,
        tenants: BTreeMap::new(),
        draining: false,
        gone: false,
    };
    let requests = connection.listen_for_requests(&host).await?;
    let (lease_events_tx, lease_events) = mpsc::channel(4);
    let adopter = SessionAdopter::new(&entry, directory, journal.clone(), calls.clone());
    let watchdog = HostWatchdog::new().map_err(FleetError::NoWatchdog)?;
    let lease = HostLease::acquire(connection.clone(), entry, lease_events_tx).await?;
    tokio::spawn(watchdog.clone().follow_lease(lease.expires_at()));
    let hosts = directory.hosts();
    let (agents, new_agents) = mpsc::channel(1);
    tokio::spawn(watch_agents(list_agents, agents));
    let (lease_lost_tx, lease_lost) = watch::channel(false);
    let lease_loss_handler = LeaseLossHandler {
        lease_events,
        calls: calls.clone(),
        watchdog,
        lease_lost: lease_lost_tx,
    };
    tokio::spawn(lease_loss_handler.run());
    let service = HostService { host, connection, lease, hosts, adopter, calls, lease_lost };
    Ok(tokio::spawn(service.run(requests, new_agents)))
}

/// Agents that are installed while the host runs become available without a restart.
async fn watch_agents(list_agents: AgentLister, agents: mpsc::Sender<Vec<String>>) {
    loop {
        tokio::time::sleep(AGENT_SCAN_INTERVAL).await;
        let list_agents = list_agents.clone();
        let Ok(found) = tokio::task::spawn_blocking(move || list_agents()).await else { return };
        if agents.send(found).await.is_err() {
            return;
        }
    }
}

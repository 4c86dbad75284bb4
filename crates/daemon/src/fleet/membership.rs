//! Joins the fleet and leaves it.

use super::{AgentLister, FleetCall, LogMaintenance, join, metrics_collector::MetricsCollector};
use crate::{
    agent_registry::AgentRegistry,
    boot::random_seed,
    boot_error::{BootError, FleetError},
    daemon_options::DaemonOptions,
    environment,
    fleet_config::FleetConfig,
    metrics::SnapshotRequest,
    web_routes::FleetHosts,
};
use jackfield_fleet::{
    AuditLog, FleetConnection, HostDirectory, HostInstance,
    gateway::GatewayConfig,
    gateway_process::{GatewayProcess, GaugesRequest},
};
use jackfield_journal::{Journal, StreamArchiver};
use jackfield_transport::ClientStream;
use std::{sync::Arc, time::Duration};
use tokio::{sync::mpsc, task::JoinHandle};

/// How long closing the clients of a gateway and releasing the lease of a host may take.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The parts of a fleet member besides its loop.
pub(crate) struct FleetMembership {
    gateway: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
    host: Option<JoinHandle<()>>,
    _directory: HostDirectory,
}

impl FleetMembership {
    /// Closes the clients of the gateway, with a timeout for those that do not read.
    pub(crate) async fn finish(self) {
        if let Some(task) = self.host {
            let _timed_out = tokio::time::timeout(END_TIMEOUT, task).await;
        }
        if let Some((stop, task)) = self.gateway {
            let _ignored = stop.send(()).await;
            let _timed_out = tokio::time::timeout(END_TIMEOUT, task).await;
        }
    }
}

/// Channels into the main loop of a host.
pub(crate) struct HostInputs {
    /// Accepted clients, unless they connect to the gateway of this daemon.
    pub(crate) accepted: Option<mpsc::Receiver<ClientStream>>,
    pub(crate) snapshot_requests: mpsc::Receiver<SnapshotRequest>,
    pub(crate) calls: mpsc::Receiver<FleetCall>,
}

/// A connection to the fleet before this daemon has joined it.
pub(crate) struct FleetAccess {
    fleet: FleetConfig,
    host: HostInstance,
    connection: FleetConnection,
    directory: HostDirectory,
}

pub(crate) async fn connect_fleet(
    (fleet, host): (FleetConfig, HostInstance),
) -> Result<FleetAccess, BootError> {
    let connection = fleet.connect().await.map_err(|it| BootError::Fleet(it.into()))?;
    let directory = HostDirectory::open(connection.clone()).await;
    Ok(FleetAccess { fleet, host, connection, directory })
}

impl FleetAccess {
    /// The hosts on which sessions are placed, if this daemon is a gateway.
    pub(crate) fn hosts(&self) -> Option<FleetHosts> {
        self.fleet.role.is_gateway().then(|| FleetHosts {
            hosts: self.directory.hosts(),
            connection: self.connection.clone(),
        })
    }

    /// Joins the fleet. A gateway then handles all clients, and the loop gets host connections. A
    /// daemon that is only a gateway has no loop, hence no inputs for it.
    pub(crate) async fn join_fleet(
        self,
        journal: &Journal,
        options: &DaemonOptions,
        accepted: mpsc::Receiver<ClientStream>,
        snapshot_requests: mpsc::Receiver<SnapshotRequest>,
    ) -> Result<(FleetMembership, Option<HostInputs>), BootError> {
        let (mut gateway, mut gateway_gauges) = (None, None);
        let mut accepted = Some(accepted);
        if let Some(accepted) = accepted.take_if(|_| self.fleet.role.is_gateway()) {
            let (gauges_tx, gauges_requests) = mpsc::channel(4);
            gateway = Some(self.open_gateway(journal, options, accepted, gauges_requests)?);
            gateway_gauges = Some(gauges_tx);
        }
        let (mut host, mut host_inputs, mut hub, mut archiver) = (None, None, None, None);
        if self.fleet.role.is_host() {
            let (calls_tx, calls) = mpsc::channel(64);
            let (requests_tx, snapshot_requests) = mpsc::channel(4);
            let joined = self.join(journal, options, calls_tx).await.map_err(BootError::Fleet)?;
            host = Some(joined.task);
            (hub, archiver) = (Some(requests_tx), joined.archiver);
            host_inputs = Some(HostInputs { accepted, snapshot_requests, calls });
        }
        let hosts = self.directory.hosts();
        let metrics_collector = MetricsCollector {
            requests: snapshot_requests,
            hub,
            gateway: gateway_gauges,
            hosts,
            archiver,
        };
        tokio::spawn(metrics_collector.run());
        Ok((FleetMembership { gateway, host, _directory: self.directory }, host_inputs))
    }

    fn open_gateway(
        &self,
        journal: &Journal,
        options: &DaemonOptions,
        accepted: mpsc::Receiver<ClientStream>,
        gauges_requests: mpsc::Receiver<GaugesRequest>,
    ) -> Result<(mpsc::Sender<()>, JoinHandle<()>), BootError> {
        let (stop_tx, stop) = mpsc::channel(1);
        let agent = options.settings.default_agent.as_deref().map(Into::into);
        let process = GatewayProcess {
            config: GatewayConfig { seed: random_seed()?, agent, ..GatewayConfig::default() },
            connection: self.connection.clone(),
            ownership: journal.stream_ownership().expect("a fleet shares its journal"),
            hosts: self.directory.hosts(),
            audit_log: AuditLog::open(self.connection.clone(), &self.fleet.name),
            accepted,
            gauges_requests,
            stop,
        };
        Ok((stop_tx, tokio::spawn(process.run())))
    }

    async fn join(
        &self,
        journal: &Journal,
        options: &DaemonOptions,
        calls: mpsc::Sender<FleetCall>,
    ) -> Result<JoinedHost, FleetError> {
        let maintenance = LogMaintenance {
            host: self.host.clone(),
            hosts: self.directory.hosts(),
            archiver: journal.archiver().expect("a fleet shares its journal"),
            config: self.fleet.maintenance.clone(),
        };
        let has_archive = maintenance.config.archive.is_some();
        let archiver = has_archive.then(|| maintenance.archiver.clone());
        let (host, connection) = (self.host.clone(), self.connection.clone());
        let list_agents = list_agents(options);
        let task =
            join(&self.fleet, host, connection, &self.directory, journal, list_agents, calls)
                .await?;
        tokio::spawn(maintenance.run());
        Ok(JoinedHost { task, archiver })
    }
}

/// A host that has acquired its lease.
struct JoinedHost {
    /// Ends after the lease is released.
    task: JoinHandle<()>,
    /// The archiver, if there is an archive.
    archiver: Option<StreamArchiver>,
}

/// Returns a function that lists the agents that can be started on this machine.
fn list_agents(options: &DaemonOptions) -> AgentLister {
    let (settings, paths) = (options.settings.clone(), options.paths.clone());
    let program = options.guard.program.clone();
    Arc::new(move || {
        let registry = AgentRegistry::new(settings.clone(), paths.clone(), program.clone());
        registry.list_startable(&environment::process_env().collect::<Vec<_>>())
    })
}

//! Joins the fleet and leaves it.

use super::{
    AgentLister, FleetConfig, FleetError, LogMaintenance, join, metrics_collector::MetricsCollector,
};
use crate::{
    agent_registry::AgentRegistry,
    environment,
    serve::{BootError, DaemonOptions, LoopInputs, closed_channel, random_seed},
};
use jackfield_fleet::{
    AuditLog, FleetConnection, HostDirectory, HostEntry, HostInstance, gateway::GatewayConfig,
    gateway_process::GatewayProcess,
};
use jackfield_journal::Journal;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

/// How long closing the clients of a gateway and releasing the lease of a host may take.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The parts of a fleet member besides its loop.
pub(crate) struct FleetMembership {
    gateway: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
    host: Option<JoinHandle<()>>,
    _directory: HostDirectory,
}

impl FleetMembership {
    pub(crate) fn is_host(&self) -> bool {
        self.host.is_some()
    }

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
    pub(crate) fn hosts(&self) -> Option<watch::Receiver<Arc<Vec<HostEntry>>>> {
        self.fleet.role.is_gateway().then(|| self.directory.hosts())
    }

    /// Joins the fleet. A gateway then handles all clients, and the loop gets host connections.
    pub(crate) async fn join_fleet(
        self,
        journal: &Journal,
        options: &DaemonOptions,
        inputs: &mut LoopInputs,
    ) -> Result<FleetMembership, BootError> {
        let mut metrics_collector = MetricsCollector {
            requests: std::mem::replace(&mut inputs.snapshot_requests, closed_channel()),
            hub: None,
            gateway: None,
            hosts: self.directory.hosts(),
            archiver: None,
        };
        let (mut gateway, mut host) = (None, None);
        if self.fleet.role.is_gateway() {
            gateway = Some(self.open_gateway(journal, options, inputs, &mut metrics_collector)?);
        }
        if self.fleet.role.is_host() {
            let joined = self.join(journal, options, inputs, &mut metrics_collector).await;
            host = Some(joined.map_err(BootError::Fleet)?);
        }
        tokio::spawn(metrics_collector.run());
        Ok(FleetMembership { gateway, host, _directory: self.directory })
    }

    fn open_gateway(
        &self,
        journal: &Journal,
        options: &DaemonOptions,
        inputs: &mut LoopInputs,
        metrics_collector: &mut MetricsCollector,
    ) -> Result<(mpsc::Sender<()>, JoinHandle<()>), BootError> {
        let (stop_tx, stop) = mpsc::channel(1);
        let (requests_tx, requests) = mpsc::channel(4);
        metrics_collector.gateway = Some(requests_tx);
        let agent = options.settings.default_agent.as_deref().map(Into::into);
        let process = GatewayProcess {
            config: GatewayConfig { seed: random_seed()?, agent, ..GatewayConfig::default() },
            connection: self.connection.clone(),
            ownership: journal.stream_ownership().expect("a fleet shares its journal"),
            hosts: self.directory.hosts(),
            audit_log: AuditLog::open(self.connection.clone(), &self.fleet.name),
            accepted: std::mem::replace(&mut inputs.accepted, closed_channel()),
            gauges_requests: requests,
            stop,
        };
        Ok((stop_tx, tokio::spawn(process.run())))
    }

    async fn join(
        &self,
        journal: &Journal,
        options: &DaemonOptions,
        inputs: &mut LoopInputs,
        metrics_collector: &mut MetricsCollector,
    ) -> Result<JoinHandle<()>, FleetError> {
        let (calls_tx, calls) = mpsc::channel(64);
        inputs.fleet = calls;
        let (requests_tx, requests) = mpsc::channel(4);
        (metrics_collector.hub, inputs.snapshot_requests) = (Some(requests_tx), requests);
        let maintenance = LogMaintenance {
            host: self.host.clone(),
            hosts: self.directory.hosts(),
            archiver: journal.archiver().expect("a fleet shares its journal"),
            config: self.fleet.maintenance.clone(),
        };
        metrics_collector.archiver =
            maintenance.config.archive.is_some().then(|| maintenance.archiver.clone());
        let (host, connection) = (self.host.clone(), self.connection.clone());
        let list_agents = list_agents(options);
        let task =
            join(&self.fleet, host, connection, &self.directory, journal, list_agents, calls_tx)
                .await?;
        tokio::spawn(maintenance.run());
        Ok(task)
    }
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

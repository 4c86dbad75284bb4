//! The fleet that a daemon is a member of, and its role in it.

use jackfield_fleet::{FleetConnection, FleetConnectionError, HostInstance, random_id};
use jackfield_journal::{CellAddress, CellConfig, Journal, OpenError, RetentionLimits};
use jackfield_nats_access::NatsServers;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// The fleet, and the role of this daemon in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetConfig {
    pub servers: NatsServers,
    pub cell: CellConfig,
    pub role: MemberRole,
    /// The name of this host, unique among live hosts.
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// Directories that have the same content on all hosts that list them.
    pub shared: Vec<PathBuf>,
    pub maintenance: LogMaintenanceConfig,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberRole {
    /// Runs agents.
    Host,
    /// Relays clients to hosts.
    Gateway,
    Both,
}

impl MemberRole {
    pub(crate) fn is_host(self) -> bool {
        self != MemberRole::Gateway
    }

    pub(crate) fn is_gateway(self) -> bool {
        self != MemberRole::Host
    }
}

/// The maintenance settings of a cell, which are the same on all hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMaintenanceConfig {
    /// `file:///DIR` or `s3://BUCKET/PREFIX`.
    pub archive: Option<String>,
    /// Events of this age are archived.
    pub after: Duration,
    pub retention: RetentionLimits,
    /// The interval between two rounds.
    pub every: Duration,
}

impl FleetConfig {
    /// A new instance id of this host.
    pub(crate) fn new_instance(&self) -> HostInstance {
        HostInstance { name: self.name.as_str().into(), incarnation: random_id().into() }
    }

    fn address(&self, host: &HostInstance) -> CellAddress {
        let owner = self.role.is_host().then(|| host.to_string());
        CellAddress { servers: self.servers.clone(), cell: self.cell.clone(), owner }
    }

    /// The journal of the cell, with its archive.
    pub(crate) fn open_journal(&self, host: &HostInstance) -> Result<Journal, OpenError> {
        let journal = Journal::connect(self.address(host))?;
        if let Some(archive) = &self.maintenance.archive {
            journal.archiver().expect("a fleet shares its journal").open_archive(archive)?;
        }
        Ok(journal)
    }

    pub(crate) async fn connect(&self) -> Result<FleetConnection, FleetConnectionError> {
        let mut connection = FleetConnection::connect(&self.servers, &self.cell.name).await?;
        connection.create_streams(self.cell.replicas).await?;
        Ok(connection)
    }
}

//! This daemon as a host of a fleet: it says that it is there, takes host connections, and owns the sessions that it is
//! asked to, or that a dead host has left.
//!
//! `enter.rs` joins and leaves, `adopt.rs` takes sessions over, `office.rs` answers questions and watches who
//! lives, `sentry.rs` ends everything when we may be thought dead, `fuse.rs` a daemon that stands still,
//! `calls.rs` is what the loop does about it, `care.rs` looks after the logs, `clerk.rs` collects the numbers
//! of all parts, `wait.rs` waits at the start for servers that cannot be used yet.

mod adopt;
mod calls;
mod care;
mod clerk;
mod enter;
mod fuse;
mod office;
mod sentry;
mod wait;

use adopt::Adopter;
pub use care::Care;
use care::Caretaker;
use enter::reach;
pub(crate) use enter::{Entered, Reached};
use fuse::Fuse;
use jackfield_events::{HostId, SessionSummary, TenantName};
use jackfield_fleet::{
    FleetConnection, FleetConnectionError, HostDirectory, HostEntry, HostInstance, HostLease,
    LeaseError, TenantUsage, random_id,
};
use jackfield_hub::{SessionId, Usage};
use jackfield_journal::{CellAddress, CellConfig, Journal, OpenError};
use jackfield_nats_access::NatsServers;
use jackfield_transport::ClientStream;
use office::Office;
use sentry::Sentry;
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};
pub(crate) use wait::open_when_ready;

/// Between two looks at which agents are installed.
const LOOK: Duration = Duration::from_secs(30);

/// Which fleet, and what this daemon is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fleet {
    pub servers: NatsServers,
    pub cell: CellConfig,
    pub role: Role,
    /// The name of this host. No two that live have the same.
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// Directories that are the same on all hosts that name them.
    pub shared: Vec<PathBuf>,
    pub care: Care,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Runs agents.
    Host,
    /// Takes clients to the hosts.
    Gateway,
    Both,
}

impl Role {
    pub(crate) fn is_host(self) -> bool {
        self != Role::Gateway
    }

    pub(crate) fn is_gateway(self) -> bool {
        self != Role::Host
    }
}

#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error(transparent)]
    Link(#[from] FleetConnectionError),
    #[error(transparent)]
    Lease(#[from] LeaseError),
    #[error("the system has no timer left that would end this host if it stood still")]
    NoFuse(#[source] std::io::Error),
}

impl Fleet {
    /// This start of this host.
    pub(crate) fn host(&self) -> HostInstance {
        HostInstance { name: self.name.as_str().into(), incarnation: random_id().into() }
    }

    fn address(&self, host: &HostInstance) -> CellAddress {
        let owner = self.role.is_host().then(|| host.to_string());
        CellAddress { servers: self.servers.clone(), cell: self.cell.clone(), owner }
    }

    /// The journal of the cell, and its archive.
    pub(crate) fn journal(&self, host: &HostInstance) -> Result<Journal, OpenError> {
        let journal = Journal::connect(self.address(host))?;
        if let Some(archive) = &self.care.archive {
            journal.archiver().expect("a fleet shares its journal").open_archive(archive)?;
        }
        Ok(journal)
    }

    pub(crate) async fn link(&self) -> Result<FleetConnection, FleetConnectionError> {
        let mut link = FleetConnection::connect(&self.servers, &self.cell.name).await?;
        link.create_streams(self.cell.replicas).await?;
        Ok(link)
    }
}

/// What the fleet wants of the loop.
pub(crate) enum Call {
    /// A client, by way of a gateway.
    HostConnection(ClientStream),
    /// Whether this session is ours.
    Has(SessionId, oneshot::Sender<bool>),
    /// It is ours now.
    Adopted(Box<Taken>, oneshot::Sender<()>),
    /// Let everything go.
    Drain,
    /// Nobody may know any more that we are here: end every agent, and forget every session.
    CutOff(oneshot::Sender<()>),
    /// What tenants have on the other hosts.
    Elsewhere(BTreeMap<TenantName, Usage>),
    /// How much there is to do here.
    Report(oneshot::Sender<Load>),
}

pub(crate) struct Taken {
    pub(crate) session: SessionId,
    pub(crate) epoch: u64,
    pub(crate) state: SessionSummary,
    /// The host that had it and did not let it go.
    pub(crate) from: Option<HostId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) sessions: u32,
    pub(crate) live: u32,
    /// Processes that may still be started.
    pub(crate) free: Option<u32>,
    pub(crate) tenants: BTreeMap<Arc<str>, TenantUsage>,
}

/// Says which agents can be started here. It looks at many files.
type Known = Arc<dyn Fn() -> Vec<String> + Send + Sync>;

/// Takes our place in the fleet, and keeps it for as long as the loop listens. What is returned ends when
/// it is given back.
async fn join(
    fleet: &Fleet,
    host: HostInstance,
    link: FleetConnection,
    directory: &HostDirectory,
    journal: &Journal,
    known: Known,
    calls: mpsc::Sender<Call>,
) -> Result<JoinHandle<()>, FleetError> {
    let entry = HostEntry {
        host: host.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        labels: fleet.labels.clone(),
        shared: fleet.shared.clone(),
        agents: known(),
        free: None,
        sessions: 0,
        live: 0,
        tenants: BTreeMap::new(),
        draining: false,
        gone: false,
    };
    let questions = link.listen_for_requests(&host).await?;
    let (tell, leased) = mpsc::channel(4);
    let adopter = Adopter::new(&entry, directory, journal.clone(), calls.clone());
    let fuse = Fuse::new().map_err(FleetError::NoFuse)?;
    let lease = HostLease::acquire(link.clone(), entry, tell).await?;
    tokio::spawn(fuse.clone().tend(lease.expires_at()));
    let hosts = directory.hosts();
    let (agents, news) = mpsc::channel(1);
    tokio::spawn(look_for_agents(known, agents));
    let (cut, cut_off) = watch::channel(false);
    let sentry = Sentry { leased, calls: calls.clone(), fuse, cut_off: cut };
    tokio::spawn(sentry.run());
    let office = Office { host, link, lease, hosts, adopter, calls, cut_off };
    Ok(tokio::spawn(office.run(questions, news)))
}

/// What is installed while the host runs is of use without a restart.
async fn look_for_agents(known: Known, agents: mpsc::Sender<Vec<String>>) {
    loop {
        tokio::time::sleep(LOOK).await;
        let known = known.clone();
        let Ok(found) = tokio::task::spawn_blocking(move || known()).await else { return };
        if agents.send(found).await.is_err() {
            return;
        }
    }
}

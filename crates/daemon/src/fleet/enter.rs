//! Joining the fleet, and leaving it.

use super::{Caretaker, Fleet, FleetError, Known, clerk::Clerk, join};
use crate::{
    environment,
    roster::Roster,
    serve::{BootError, Calls, Options, nothing, seed},
};
use jackfield_fleet::gateway::GatewayConfig;
use jackfield_fleet::gateway_process::Front;
use jackfield_fleet::{AuditLog, FleetConnection, HostDirectory, HostEntry, HostInstance};
use jackfield_journal::Journal;
use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

/// How long the clients of a gateway have to hear that it ends, and a host to give its place back.
const END_MAX: Duration = Duration::from_secs(5);

/// What a daemon of a fleet has beside its loop.
pub(crate) struct Entered {
    gateway: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
    host: Option<JoinHandle<()>>,
    _directory: HostDirectory,
}

impl Entered {
    pub(crate) fn is_host(&self) -> bool {
        self.host.is_some()
    }

    /// The clients of the gateway are told, and those who do not listen are not waited for.
    pub(crate) async fn finish(self) {
        if let Some(task) = self.host {
            let _late = tokio::time::timeout(END_MAX, task).await;
        }
        if let Some((stop, task)) = self.gateway {
            let _ended = stop.send(()).await;
            let _late = tokio::time::timeout(END_MAX, task).await;
        }
    }
}

/// A fleet that this daemon knows, and has no part in yet.
pub(crate) struct Reached {
    fleet: Fleet,
    host: HostInstance,
    link: FleetConnection,
    directory: HostDirectory,
}

pub(crate) async fn reach((fleet, host): (Fleet, HostInstance)) -> Result<Reached, BootError> {
    let link = fleet.link().await.map_err(|it| BootError::Fleet(it.into()))?;
    let directory = HostDirectory::open(link.clone()).await;
    Ok(Reached { fleet, host, link, directory })
}

impl Reached {
    /// Those on which sessions are placed, if that is what this daemon does.
    pub(crate) fn hosts(&self) -> Option<watch::Receiver<Arc<Vec<HostEntry>>>> {
        self.fleet.role.is_gateway().then(|| self.directory.hosts())
    }

    /// Joins the fleet. A gateway takes all clients from then on, and the loop gets host connections.
    pub(crate) async fn enter(
        self,
        journal: &Journal,
        options: &Options,
        calls: &mut Calls,
    ) -> Result<Entered, BootError> {
        let mut clerk = Clerk {
            asked: std::mem::replace(&mut calls.scrapes, nothing()),
            hub: None,
            gateway: None,
            hosts: self.directory.hosts(),
            curator: None,
        };
        let (mut gateway, mut host) = (None, None);
        if self.fleet.role.is_gateway() {
            gateway = Some(self.open_gateway(journal, options, calls, &mut clerk)?);
        }
        if self.fleet.role.is_host() {
            let joined = self.join(journal, options, calls, &mut clerk).await;
            host = Some(joined.map_err(BootError::Fleet)?);
        }
        tokio::spawn(clerk.run());
        Ok(Entered { gateway, host, _directory: self.directory })
    }

    fn open_gateway(
        &self,
        journal: &Journal,
        options: &Options,
        calls: &mut Calls,
        clerk: &mut Clerk,
    ) -> Result<(mpsc::Sender<()>, JoinHandle<()>), BootError> {
        let (ask, stop) = mpsc::channel(1);
        let (scrape, scrapes) = mpsc::channel(4);
        clerk.gateway = Some(scrape);
        let agent = options.settings.default_agent.as_deref().map(Into::into);
        let front = Front {
            config: GatewayConfig { seed: seed()?, agent, ..GatewayConfig::default() },
            link: self.link.clone(),
            owners: journal.stream_ownership().expect("a fleet shares its journal"),
            hosts: self.directory.hosts(),
            trail: AuditLog::open(self.link.clone(), &self.fleet.name),
            accepted: std::mem::replace(&mut calls.accepted, nothing()),
            scrapes,
            stop,
        };
        Ok((ask, tokio::spawn(front.run())))
    }

    async fn join(
        &self,
        journal: &Journal,
        options: &Options,
        calls: &mut Calls,
        clerk: &mut Clerk,
    ) -> Result<JoinHandle<()>, FleetError> {
        let (asking, asked) = mpsc::channel(64);
        calls.fleet = asked;
        let (scrape, scrapes) = mpsc::channel(4);
        (clerk.hub, calls.scrapes) = (Some(scrape), scrapes);
        let caretaker = Caretaker {
            host: self.host.clone(),
            hosts: self.directory.hosts(),
            curator: journal.archiver().expect("a fleet shares its journal"),
            care: self.fleet.care.clone(),
        };
        clerk.curator = caretaker.care.archive.is_some().then(|| caretaker.curator.clone());
        let (host, link) = (self.host.clone(), self.link.clone());
        let known = known(options);
        let seat = join(&self.fleet, host, link, &self.directory, journal, known, asking).await?;
        tokio::spawn(caretaker.run());
        Ok(seat)
    }
}

/// Says which agents could be started here, each time as the machine is then.
fn known(options: &Options) -> Known {
    let (settings, paths) = (options.settings.clone(), options.paths.clone());
    let program = options.guard.program.clone();
    Arc::new(move || {
        let roster = Roster::new(settings.clone(), paths.clone(), program.clone());
        roster.startable(&environment::ours().collect::<Vec<_>>())
    })
}

//! Joining the fleet, and leaving it.

use super::{Caretaker, Fleet, FleetError, Known, clerk::Clerk, join};
use crate::{
    environment,
    roster::Roster,
    serve::{BootError, Calls, Options, nothing, seed},
};
use jackfield_core::gateway::Config;
use jackfield_fleet::{Directory, HostName, Trail};
use jackfield_gateway::Front;
use jackfield_journal::Journal;
use std::{sync::Arc, time::Duration};
use tokio::{sync::mpsc, task::JoinHandle};

/// How long the clients of a gateway have to hear that it ends, and a host to give its place back.
const END_MAX: Duration = Duration::from_secs(5);

/// What a daemon of a fleet has beside its loop.
pub(crate) struct Entered {
    gateway: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
    host: Option<JoinHandle<()>>,
    _directory: Directory,
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

/// Joins the fleet. A gateway takes all clients from then on, and the loop gets legs.
pub(crate) async fn enter(
    (fleet, host): (Fleet, HostName),
    journal: &Journal,
    options: &Options,
    calls: &mut Calls,
) -> Result<Entered, BootError> {
    let failed = |error: FleetError| BootError::Fleet(error);
    let link = fleet.link().await.map_err(|it| failed(it.into()))?;
    let directory = Directory::open(link.clone()).await;
    let (mut gateway, mut seat) = (None, None);
    let mut clerk = Clerk {
        asked: std::mem::replace(&mut calls.scrapes, nothing()),
        hub: None,
        gateway: None,
        hosts: directory.hosts(),
    };
    if fleet.role.is_gateway() {
        let (ask, stop) = mpsc::channel(1);
        let (scrape, scrapes) = mpsc::channel(4);
        clerk.gateway = Some(scrape);
        let agent = options.settings.default_agent.as_deref().map(Into::into);
        let front = Front {
            config: Config { seed: seed()?, agent, ..Config::default() },
            link: link.clone(),
            owners: journal.owners().expect("a fleet shares its journal"),
            hosts: directory.hosts(),
            trail: Trail::open(link.clone(), &fleet.name),
            accepted: std::mem::replace(&mut calls.accepted, nothing()),
            scrapes,
            stop,
        };
        gateway = Some((ask, tokio::spawn(front.run())));
    }
    if fleet.role.is_host() {
        let (asking, asked) = mpsc::channel(64);
        calls.fleet = asked;
        let (scrape, scrapes) = mpsc::channel(4);
        (clerk.hub, calls.scrapes) = (Some(scrape), scrapes);
        let caretaker = Caretaker {
            host: host.clone(),
            hosts: directory.hosts(),
            curator: journal.curator().expect("a fleet shares its journal"),
            care: fleet.care.clone(),
        };
        let joined = join(&fleet, host, link, &directory, journal, known(options), asking).await;
        seat = Some(joined.map_err(failed)?);
        tokio::spawn(caretaker.run());
    }
    tokio::spawn(clerk.run());
    Ok(Entered { gateway, host: seat, _directory: directory })
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

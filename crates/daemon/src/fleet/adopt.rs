//! Taking a session over: its log is claimed, read to its end, and handed to the loop.

use super::{Call, Taken};
use crate::recover::state;
use jackfield_events::SessionSummary;
use jackfield_fleet::gateway::Host;
use jackfield_fleet::gateway_process::{host_of, needs_of};
use jackfield_fleet::{HostDirectory, HostEntry, HostInstance, HostResponse};
use jackfield_hub::SessionId;
use jackfield_journal::{AdoptError, AdoptedStream, Journal, StreamInfo, StreamOwnership};
use jackfield_protocol::chain;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};
use tokio::sync::{mpsc, oneshot};

#[derive(Clone)]
pub(super) struct Adopter {
    host: HostInstance,
    /// The same as gateways know it.
    ours: Arc<Host>,
    is_alive: Arc<dyn Fn(&HostInstance) -> bool + Send + Sync>,
    journal: Journal,
    owners: StreamOwnership,
    calls: mpsc::Sender<Call>,
    /// Sessions that are being taken over right now.
    busy: Arc<Mutex<BTreeSet<SessionId>>>,
}

impl Adopter {
    pub(super) fn new(
        entry: &HostEntry,
        directory: &HostDirectory,
        journal: Journal,
        calls: mpsc::Sender<Call>,
    ) -> Adopter {
        let owners = journal.stream_ownership().expect("a fleet shares its journal");
        let (is_alive, busy) = (Arc::new(directory.liveness_check()), Arc::default());
        let (host, ours) = (entry.host.clone(), Arc::new(host_of(entry)));
        Adopter { host, ours, is_alive, journal, owners, calls, busy }
    }

    pub(super) fn owners(&self) -> &StreamOwnership {
        &self.owners
    }

    /// Makes the session ours, unless somebody living has it. If we are `draining`, only what is ours stays
    /// so: what we let go of must not come back, although the list of hosts may not tell everybody yet.
    pub(super) async fn adopt(&self, session: SessionId, draining: bool) -> HostResponse {
        if !self.busy.lock().expect(POISONED).insert(session.clone()) {
            return HostResponse::Refused("it is being adopted here already".to_owned());
        }
        let answer = self.try_adopt(&session, draining).await;
        self.busy.lock().expect(POISONED).remove(&session);
        answer.unwrap_or_else(|_| HostResponse::Refused("this host is about to end".to_owned()))
    }

    /// Fails only if the loop is gone.
    async fn try_adopt(
        &self,
        session: &SessionId,
        draining: bool,
    ) -> Result<HostResponse, oneshot::error::RecvError> {
        let (tell, has) = oneshot::channel();
        // If nobody listens, `tell` is dropped and the answer is an error.
        let _ended = self.calls.send(Call::Has(session.clone(), tell)).await;
        if has.await? {
            return Ok(HostResponse::Done);
        }
        if draining {
            return Ok(HostResponse::Draining);
        }
        let (this, name) = (self.clone(), session.clone());
        let taken = tokio::task::spawn_blocking(move || this.take(&name)).await;
        let taken = match taken {
            Ok(Ok(taken)) => taken,
            Ok(Err(answer)) => return Ok(answer),
            Err(error) => return Ok(HostResponse::Refused(error.to_string())),
        };
        let (tell, told) = oneshot::channel();
        let _ended = self.calls.send(Call::Adopted(Box::new(taken), tell)).await;
        told.await?;
        Ok(HostResponse::Done)
    }

    /// Waits for the servers; never on the loop's thread.
    fn take(&self, session: &SessionId) -> Result<Taken, HostResponse> {
        let refused = HostResponse::Refused;
        // Asked before it is claimed: what cannot be served here is left to those who can.
        self.may_take(session)?;
        let (ours, is_alive) = (self.host.clone(), self.is_alive.clone());
        // What was ours and is not known to the loop any more may be ours again.
        let lives = move |owner: &str| {
            HostInstance::parse(owner).is_some_and(|owner| owner != ours && is_alive(&owner))
        };
        let adopted = self.owners.adopt_stream(session, lives).map_err(not_adopted)?;
        self.read(session, adopted).map_err(refused)
    }

    /// Whether the session finds here what it needs.
    fn may_take(&self, session: &SessionId) -> Result<(), HostResponse> {
        let writer = self.owners.last_writer(session).map_err(not_adopted)?;
        let summary =
            self.owners.read_summary(session).map_err(|it| HostResponse::Refused(chain(&it)))?;
        let needs = needs_of(SessionSummary::from_summary(&summary).ok().as_ref(), &writer);
        let is_home = self.ours.is_home(&needs);
        let lacking = match self.ours.lacks(&needs) {
            Some(lack) => Some(format!("this host {lack}")),
            None => missing(&needs.dirs.unwrap_or_default(), &self.ours.shared, is_home),
        };
        lacking.map_or(Ok(()), |why| Err(HostResponse::Refused(why)))
    }

    fn read(&self, session: &SessionId, adopted: AdoptedStream) -> Result<Taken, String> {
        let AdoptedStream { claim, from, summary } = adopted;
        let (name, summary_upto) = (session.clone().into(), 0);
        let (epoch, head) = (claim.epoch, claim.head);
        let stream = StreamInfo { name, epoch, head, summary, summary_upto };
        let state = state(&self.journal, &stream)?;
        let from =
            from.map(|it| HostInstance::parse(&it).map_or(it.as_str().into(), |it| it.name.into()));
        Ok(Taken { session: session.clone(), epoch, state, from })
    }
}

fn not_adopted(error: AdoptError) -> HostResponse {
    match error {
        AdoptError::Owned { owner, .. } => HostResponse::OwnedBy(owner),
        AdoptError::Missing { .. } => HostResponse::Missing,
        AdoptError::Claim(error) => HostResponse::Refused(chain(&error)),
    }
}

/// What is wrong with the directories of a session on this machine. The first is the one that it works in.
fn missing(dirs: &[PathBuf], shared: &[PathBuf], is_home: bool) -> Option<String> {
    let cwd = dirs.first()?;
    if !cwd.is_dir() {
        return Some(format!("its directory `{}` is not on this host", cwd.display()));
    }
    let real = |it: &Path| it.canonicalize().ok();
    let shared: Vec<PathBuf> = shared.iter().filter_map(|it| real(it)).collect();
    let is_shared =
        |it: &Path| real(it).is_none_or(|it| shared.iter().any(|dir| it.starts_with(dir)));
    let strange = dirs.iter().find(|it| !is_home && !is_shared(it))?;
    Some(format!("its directory `{}` leads out of what this host shares", strange.display()))
}

const POISONED: &str = "nothing panics while it holds the list";

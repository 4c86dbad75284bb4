//! Taking a session over: its log is claimed, read to its end, and handed to the loop.

use super::{Call, Taken};
use crate::recover::state;
use jackfield_core::{SessionId, gateway::Host, log::State};
use jackfield_fleet::{Answer, Directory, Entry, HostName};
use jackfield_gateway::{host_of, needs_of};
use jackfield_journal::{AdoptError, Adopted, Journal, Owners, Stream};
use jackfield_wire::chain;
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};
use tokio::sync::{mpsc, oneshot};

#[derive(Clone)]
pub(super) struct Adopter {
    host: HostName,
    /// The same as gateways know it.
    ours: Arc<Host>,
    is_alive: Arc<dyn Fn(&HostName) -> bool + Send + Sync>,
    journal: Journal,
    owners: Owners,
    calls: mpsc::Sender<Call>,
    /// Sessions that are being taken over right now.
    busy: Arc<Mutex<BTreeSet<SessionId>>>,
}

impl Adopter {
    pub(super) fn new(
        entry: &Entry,
        directory: &Directory,
        journal: Journal,
        calls: mpsc::Sender<Call>,
    ) -> Adopter {
        let owners = journal.owners().expect("a fleet shares its journal");
        let (is_alive, busy) = (Arc::new(directory.knows()), Arc::default());
        let (host, ours) = (entry.host.clone(), Arc::new(host_of(entry)));
        Adopter { host, ours, is_alive, journal, owners, calls, busy }
    }

    pub(super) fn owners(&self) -> &Owners {
        &self.owners
    }

    /// Makes the session ours, unless somebody living has it. If we are `draining`, only what is ours stays
    /// so: what we let go of must not come back, although the list of hosts may not tell everybody yet.
    pub(super) async fn adopt(&self, session: SessionId, draining: bool) -> Answer {
        if !self.busy.lock().expect(POISONED).insert(session.clone()) {
            return Answer::Refused("it is being adopted here already".to_owned());
        }
        let answer = self.try_adopt(&session, draining).await;
        self.busy.lock().expect(POISONED).remove(&session);
        answer.unwrap_or_else(|_| Answer::Refused("this host is about to end".to_owned()))
    }

    /// Fails only if the loop is gone.
    async fn try_adopt(
        &self,
        session: &SessionId,
        draining: bool,
    ) -> Result<Answer, oneshot::error::RecvError> {
        let (tell, has) = oneshot::channel();
        // If nobody listens, `tell` is dropped and the answer is an error.
        let _ended = self.calls.send(Call::Has(session.clone(), tell)).await;
        if has.await? {
            return Ok(Answer::Done);
        }
        if draining {
            return Ok(Answer::Draining);
        }
        let (this, name) = (self.clone(), session.clone());
        let taken = tokio::task::spawn_blocking(move || this.take(&name)).await;
        let taken = match taken {
            Ok(Ok(taken)) => taken,
            Ok(Err(answer)) => return Ok(answer),
            Err(error) => return Ok(Answer::Refused(error.to_string())),
        };
        let (tell, told) = oneshot::channel();
        let _ended = self.calls.send(Call::Adopted(Box::new(taken), tell)).await;
        told.await?;
        Ok(Answer::Done)
    }

    /// Waits for the servers; never on the loop's thread.
    fn take(&self, session: &SessionId) -> Result<Taken, Answer> {
        let refused = Answer::Refused;
        // Asked before it is claimed: what cannot be served here is left to those who can.
        self.may_take(session)?;
        let (ours, is_alive) = (self.host.clone(), self.is_alive.clone());
        // What was ours and is not known to the loop any more may be ours again.
        let lives = move |owner: &str| {
            HostName::parse(owner).is_some_and(|owner| owner != ours && is_alive(&owner))
        };
        let adopted = self.owners.adopt(session, lives).map_err(not_adopted)?;
        self.read(session, adopted).map_err(refused)
    }

    /// Whether the session finds here what it needs.
    fn may_take(&self, session: &SessionId) -> Result<(), Answer> {
        let writer = self.owners.last_writer(session).map_err(not_adopted)?;
        let summary = self.owners.summary(session).map_err(|it| Answer::Refused(chain(&it)))?;
        let needs = needs_of(State::from_summary(&summary).ok().as_ref(), &writer);
        let is_home = self.ours.is_home(&needs);
        let lacking = match self.ours.lacks(&needs) {
            Some(lack) => Some(format!("this host {lack}")),
            None => missing(&needs.dirs.unwrap_or_default(), &self.ours.shared, is_home),
        };
        lacking.map_or(Ok(()), |why| Err(Answer::Refused(why)))
    }

    fn read(&self, session: &SessionId, adopted: Adopted) -> Result<Taken, String> {
        let Adopted { claim, from, summary } = adopted;
        let (name, summary_upto) = (session.clone(), 0);
        let (epoch, head) = (claim.epoch, claim.head);
        let stream = Stream { name, epoch, head, summary, summary_upto };
        let state = state(&self.journal, &stream)?;
        let from = from.map(|it| HostName::parse(&it).map_or(it.as_str().into(), |it| it.name));
        Ok(Taken { session: session.clone(), epoch, state, from })
    }
}

fn not_adopted(error: AdoptError) -> Answer {
    match error {
        AdoptError::Owned { owner, .. } => Answer::Owned(owner),
        AdoptError::Missing { .. } => Answer::Missing,
        AdoptError::Claim(error) => Answer::Refused(chain(&error)),
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

//! Adopts sessions: claims the log, reads it to its end, and hands the session to the loop.

use super::{AdoptedSession, FleetCall};
use crate::recover::read_state;
use jackfield_events::SessionSummary;
use jackfield_fleet::{
    HostDirectory, HostEntry, HostInstance, HostResponse,
    gateway::Host,
    gateway_process::{placement_needs, to_gateway_host},
};
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
pub(super) struct SessionAdopter {
    host: HostInstance,
    /// This host as gateways see it.
    this_host: Arc<Host>,
    is_alive: Arc<dyn Fn(&HostInstance) -> bool + Send + Sync>,
    journal: Journal,
    ownership: StreamOwnership,
    calls: mpsc::Sender<FleetCall>,
    /// Sessions that are being adopted.
    adopting: Arc<Mutex<BTreeSet<SessionId>>>,
}

impl SessionAdopter {
    pub(super) fn new(
        entry: &HostEntry,
        directory: &HostDirectory,
        journal: Journal,
        calls: mpsc::Sender<FleetCall>,
    ) -> SessionAdopter {
        let ownership = journal.stream_ownership().expect("a fleet shares its journal");
        let (is_alive, adopting) = (Arc::new(directory.liveness_check()), Arc::default());
        let (host, this_host) = (entry.host.clone(), Arc::new(to_gateway_host(entry)));
        SessionAdopter { host, this_host, is_alive, journal, ownership, calls, adopting }
    }

    pub(super) fn ownership(&self) -> &StreamOwnership {
        &self.ownership
    }

    /// Adopts the session unless a live host owns it. While this host is `draining`, only sessions
    /// that it still owns are confirmed: a released session must not come back, even if other
    /// members do not know of the drain yet.
    pub(super) async fn adopt(&self, session: SessionId, draining: bool) -> HostResponse {
        if !self.adopting.lock().expect(POISONED).insert(session.clone()) {
            return HostResponse::Refused("this host is already adopting it".to_owned());
        }
        let answer = self.try_adopt(&session, draining).await;
        self.adopting.lock().expect(POISONED).remove(&session);
        answer.unwrap_or_else(|_| HostResponse::Refused("this host is stopping".to_owned()))
    }

    /// Fails only if the loop has ended.
    async fn try_adopt(
        &self,
        session: &SessionId,
        draining: bool,
    ) -> Result<HostResponse, oneshot::error::RecvError> {
        let (response_tx, is_owned) = oneshot::channel();
        // If the loop has ended, the sender is dropped and the response is an error.
        let _ignored = self.calls.send(FleetCall::HasSession(session.clone(), response_tx)).await;
        if is_owned.await? {
            return Ok(HostResponse::Done);
        }
        if draining {
            return Ok(HostResponse::Draining);
        }
        let (this, name) = (self.clone(), session.clone());
        let adopted = tokio::task::spawn_blocking(move || this.claim_and_read(&name)).await;
        let adopted = match adopted {
            Ok(Ok(adopted)) => adopted,
            Ok(Err(answer)) => return Ok(answer),
            Err(error) => return Ok(HostResponse::Refused(error.to_string())),
        };
        let (response_tx, response) = oneshot::channel();
        let _ignored = self.calls.send(FleetCall::Adopted(Box::new(adopted), response_tx)).await;
        response.await?;
        Ok(HostResponse::Done)
    }

    /// Waits for the servers; never called on the thread of the loop.
    fn claim_and_read(&self, session: &SessionId) -> Result<AdoptedSession, HostResponse> {
        let refused = HostResponse::Refused;
        // Checked before the claim, so that another host can adopt a session that cannot run here.
        self.check_needs(session)?;
        let (own_instance, is_alive) = (self.host.clone(), self.is_alive.clone());
        // A session of this host that the loop does not have may be adopted again.
        let is_live_peer = move |owner: &str| {
            HostInstance::parse(owner)
                .is_some_and(|owner| owner != own_instance && is_alive(&owner))
        };
        let adopted = self.ownership.adopt_stream(session, is_live_peer).map_err(to_response)?;
        self.read(session, adopted).map_err(refused)
    }

    /// Whether this host meets the needs of the session.
    fn check_needs(&self, session: &SessionId) -> Result<(), HostResponse> {
        let writer = self.ownership.last_writer(session).map_err(to_response)?;
        let summary =
            self.ownership.read_summary(session).map_err(|it| HostResponse::Refused(chain(&it)))?;
        let needs = placement_needs(SessionSummary::from_summary(&summary).ok().as_ref(), &writer);
        let was_last_host = self.this_host.was_last_host(&needs);
        let unmet = match self.this_host.unmet_need(&needs) {
            Some(need) => Some(format!("this host {need}")),
            None => find_dir_problem(
                &needs.dirs.unwrap_or_default(),
                &self.this_host.shared,
                was_last_host,
            ),
        };
        unmet.map_or(Ok(()), |why| Err(HostResponse::Refused(why)))
    }

    fn read(&self, session: &SessionId, adopted: AdoptedStream) -> Result<AdoptedSession, String> {
        let AdoptedStream { claim, from, summary } = adopted;
        let (name, summary_upto) = (session.clone().into(), 0);
        let (epoch, head) = (claim.epoch, claim.head);
        let stream = StreamInfo { name, epoch, head, summary, summary_upto };
        let state = read_state(&self.journal, &stream)?;
        let from =
            from.map(|it| HostInstance::parse(&it).map_or(it.as_str().into(), |it| it.name.into()));
        Ok(AdoptedSession { session: session.clone(), epoch, state, from })
    }
}

fn to_response(error: AdoptError) -> HostResponse {
    match error {
        AdoptError::Owned { owner, .. } => HostResponse::OwnedBy(owner),
        AdoptError::Missing { .. } => HostResponse::Missing,
        AdoptError::Claim(error) => HostResponse::Refused(chain(&error)),
    }
}

/// What is wrong with the directories of a session on this machine. The first one is its working
/// directory.
fn find_dir_problem(dirs: &[PathBuf], shared: &[PathBuf], was_last_host: bool) -> Option<String> {
    let cwd = dirs.first()?;
    if !cwd.is_dir() {
        return Some(format!("its directory `{}` is not on this host", cwd.display()));
    }
    let canonicalize = |it: &Path| it.canonicalize().ok();
    let shared: Vec<PathBuf> = shared.iter().filter_map(|it| canonicalize(it)).collect();
    let is_shared =
        |it: &Path| canonicalize(it).is_none_or(|it| shared.iter().any(|dir| it.starts_with(dir)));
    let outside = dirs.iter().find(|it| !was_last_host && !is_shared(it))?;
    Some(format!(
        "its directory `{}` is outside the shared directories of this host",
        outside.display()
    ))
}

const POISONED: &str = "no thread panics while it holds the lock";

//! The duties of a host in the fleet: handles requests, reports its load, and takes over the
//! sessions of dead hosts.

use super::{FleetCall, HostLoad, adopt::SessionAdopter};
use jackfield_events::TenantName;
use jackfield_fleet::{
    FleetConnection, HostEntry, HostInstance, HostLease, HostRequest, HostResponse,
    ReceivedRequest, RequestListener, accept_host_connection,
};
use jackfield_hub::{SessionId, Usage};
use jackfield_journal::fnv1a_hash;
use jackfield_protocol::chain;
use jackfield_transport::ClientStream;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    net::UnixStream,
    sync::{Semaphore, mpsc, oneshot, watch},
};

const REPORT_INTERVAL: Duration = Duration::from_secs(1);
/// Sessions that are adopted at the same time.
const ADOPTIONS_MAX: usize = 16;

pub(super) struct HostService {
    pub(super) host: HostInstance,
    pub(super) connection: FleetConnection,
    pub(super) lease: HostLease,
    pub(super) hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    pub(super) adopter: SessionAdopter,
    pub(super) calls: mpsc::Sender<FleetCall>,
    /// The lease is lost: nothing is accepted.
    pub(super) lease_lost: watch::Receiver<bool>,
}

impl HostService {
    /// Runs until the loop has ended, and then releases the lease, so that other hosts can use the
    /// name and adopt the sessions.
    pub(super) async fn run(
        mut self,
        requests: RequestListener,
        agents: mpsc::Receiver<Vec<String>>,
    ) {
        self.serve(requests, agents).await;
        self.lease.release().await;
    }

    async fn serve(
        &mut self,
        mut requests: RequestListener,
        mut agents: mpsc::Receiver<Vec<String>>,
    ) {
        let mut report_timer = tokio::time::interval(REPORT_INTERVAL);
        let mut known_hosts: BTreeSet<HostInstance> = BTreeSet::new();
        self.adopt_own_sessions();
        loop {
            tokio::select! {
                biased;
                Ok(()) = self.lease_lost.changed() => {
                    if !*self.lease_lost.borrow_and_update() {
                        self.adopt_own_sessions();
                    }
                }
                Some(request) = requests.next_request() => self.on_request(request).await,
                Ok(()) = self.hosts.changed() => {
                    let live_hosts: BTreeSet<HostInstance> =
                        self.hosts.borrow_and_update().iter().map(|it| it.host.clone()).collect();
                    for dead in known_hosts.difference(&live_hosts).filter(|it| **it != self.host) {
                        self.take_over(dead);
                    }
                    known_hosts = live_hosts;
                    self.update_usage_elsewhere().await;
                }
                Some(agents) = agents.recv() => self.lease.update_entry(|it| it.agents = agents),
                _ = report_timer.tick() => if !self.report_load().await {
                    return;
                },
            }
        }
    }

    async fn on_request(&self, request: ReceivedRequest) {
        match &request.request {
            HostRequest::OpenConnection(_) | HostRequest::AdoptSession(_)
                if *self.lease_lost.borrow() =>
            {
                let why = "this host has lost its lease";
                request.respond(&HostResponse::Refused(why.to_owned())).await;
            }
            HostRequest::Ping => request.respond(&HostResponse::Done).await,
            HostRequest::OpenConnection(id) => {
                let answer = match self.accept_host_conn(id).await {
                    Ok(()) => HostResponse::Done,
                    Err(why) => HostResponse::Refused(why),
                };
                request.respond(&answer).await;
            }
            HostRequest::AdoptSession(session) => {
                let (adopter, draining) = (self.adopter.clone(), self.lease.is_draining());
                let session: SessionId = session.as_str().into();
                tokio::spawn(async move {
                    request.respond(&adopter.adopt(session, draining).await).await;
                });
            }
            HostRequest::SetDraining(drain) => {
                self.lease.update_entry(|it| it.draining = *drain);
                if *drain {
                    let _ignored = self.calls.send(FleetCall::Drain).await;
                }
                let answer = match self.request_load().await {
                    Some(load) => HostResponse::SessionsLeft(load.sessions),
                    None => HostResponse::Refused("this host is stopping".to_owned()),
                };
                request.respond(&answer).await;
            }
        }
    }

    async fn accept_host_conn(&self, id: &str) -> Result<(), String> {
        let (local, remote) = UnixStream::pair().map_err(|it| it.to_string())?;
        accept_host_connection(&self.connection, id, remote).await.map_err(|it| chain(&it))?;
        let sent = self.calls.send(FleetCall::HostConnection(ClientStream::from(local))).await;
        sent.map_err(|_| "this host is stopping".to_owned())
    }

    /// `None` after the loop has ended.
    async fn request_load(&self) -> Option<HostLoad> {
        let (response_tx, response) = oneshot::channel();
        self.calls.send(FleetCall::ReportLoad(response_tx)).await.ok()?;
        response.await.ok()
    }

    /// `false` after the loop has ended.
    async fn report_load(&self) -> bool {
        let Some(load) = self.request_load().await else { return false };
        self.lease.update_entry(|it| {
            (it.sessions, it.live, it.free) = (load.sessions, load.live, load.free);
            it.tenants.clone_from(&load.tenants);
        });
        true
    }

    /// Quotas apply to the whole fleet: the loop counts its own usage and is told the usage of
    /// other hosts.
    async fn update_usage_elsewhere(&self) {
        let tenants = sum_other_hosts(&self.hosts.borrow(), &self.host);
        let _ignored = self.calls.send(FleetCall::UsageElsewhere(tenants)).await;
    }

    /// Adopts sessions of this host, of this or an earlier instance, that no other host has
    /// adopted.
    fn adopt_own_sessions(&self) {
        self.adopt_all(self.host.name.to_string(), |_| true);
    }

    /// Takes over the sessions of a dead host that this host is responsible for; all live hosts
    /// choose in the same way. A host that restarted takes its sessions back itself.
    fn take_over(&self, dead: &HostInstance) {
        let mut candidates: Vec<HostInstance> = {
            let hosts = self.hosts.borrow();
            if hosts.iter().any(|it| it.host.name == dead.name) {
                return;
            }
            let eligible = hosts.iter().filter(|it| !it.draining && !it.shared.is_empty());
            with_free_processes(eligible)
        };
        candidates.sort();
        let this_host = self.host.clone();
        self.adopt_all(dead.to_string(), move |it| {
            rendezvous_owner(it, &candidates) == Some(&this_host)
        });
    }

    fn adopt_all(&self, owner: String, is_ours: impl Fn(&str) -> bool + Send + 'static) {
        let adopter = self.adopter.clone();
        tokio::spawn(async move {
            let (ownership, name) = (adopter.ownership().clone(), owner.clone());
            let sessions =
                tokio::task::spawn_blocking(move || ownership.list_owned_by(&name)).await;
            let sessions = match sessions {
                Ok(Ok(sessions)) => sessions,
                Ok(Err(error)) => {
                    let why = chain(&error);
                    tracing::error!(host = owner, why, "failed to list sessions of dead host");
                    return;
                }
                Err(_) => return,
            };
            let own = sessions.into_iter().filter(|it| is_ours(it)).map(SessionId::from);
            let own: Vec<SessionId> = own.collect();
            if !own.is_empty() {
                tracing::warn!(
                    host = owner,
                    sessions = own.len(),
                    "adopting sessions of dead host"
                );
            }
            let permits = Arc::new(Semaphore::new(ADOPTIONS_MAX));
            for session in own {
                let permit = permits.clone().acquire_owned().await;
                let adopter = adopter.clone();
                tokio::spawn(async move {
                    let answer = adopter.adopt(session.clone(), false).await;
                    if let HostResponse::Refused(why) = answer {
                        tracing::info!(%session, why, "failed to adopt session");
                    }
                    drop(permit);
                });
            }
        });
    }
}

/// The usage of each tenant on the other hosts.
fn sum_other_hosts(hosts: &[HostEntry], this_host: &HostInstance) -> BTreeMap<TenantName, Usage> {
    let mut tenants: BTreeMap<TenantName, Usage> = BTreeMap::new();
    let others = hosts.iter().filter(|it| it.host != *this_host);
    for (name, share) in others.flat_map(|it| &it.tenants) {
        let sum = tenants.entry(name.clone().into()).or_default();
        sum.sessions += share.sessions;
        sum.agents += share.agents;
        sum.hosts += usize::from(0 < share.agents);
    }
    tenants
}

/// Hosts that may start more processes; all hosts if none may. Two observers may see different
/// reports and choose differently; then the log decides which host owns a session.
fn with_free_processes<'a>(
    hosts: impl Iterator<Item = &'a HostEntry> + Clone,
) -> Vec<HostInstance> {
    let free: Vec<HostInstance> =
        hosts.clone().filter(|it| it.free != Some(0)).map(|it| it.host.clone()).collect();
    if free.is_empty() { hosts.map(|it| it.host.clone()).collect() } else { free }
}

/// Rendezvous hashing: the live host that is responsible for a name. All hosts agree on it, and
/// names are spread evenly.
pub(super) fn rendezvous_owner<'a>(
    name: &str,
    candidates: &'a [HostInstance],
) -> Option<&'a HostInstance> {
    candidates.iter().max_by_key(|host| (score(name, host), *host))
}

/// FNV-1a with the finalizer of `MurmurHash3`, so that every bit of the input changes every bit of
/// the result. Hosts of different versions must agree on it, so it must never change, which the
/// hash of the standard library may.
fn score(name: &str, host: &HostInstance) -> u64 {
    let mut hash = fnv1a_hash(format!("{name}\0{host}").as_bytes());
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash ^= hash >> 33;
        hash = hash.wrapping_mul(factor);
    }
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostInstance {
        HostInstance { name: name.into(), incarnation: "1".into() }
    }

    #[test]
    fn score_never_changes() {
        assert_eq!(score("s-1", &host("a")), 0x3adb_75be_235d_b379);
        assert_eq!(score("s-1", &host("b")), 0xb782_4c4d_b029_efb7);
        assert_eq!(score("s-2", &host("a")), 0x8654_755e_7f67_30e3);
    }

    #[test]
    fn sessions_are_spread_evenly_and_only_sessions_of_lost_hosts_move() {
        let hosts = ["a", "b", "c"].map(host);
        let names: Vec<String> = (0..3_000).map(|it| format!("s-{it}")).collect();
        for it in &hosts {
            let share =
                names.iter().filter(|name| rendezvous_owner(name, &hosts) == Some(it)).count();
            assert!((900..1_100).contains(&share), "{it}: {share}");
        }
        for name in &names {
            let before = rendezvous_owner(name, &hosts).unwrap();
            if *before != hosts[2] {
                assert_eq!(rendezvous_owner(name, &hosts[..2]), Some(before), "{name}");
            }
        }
    }
}

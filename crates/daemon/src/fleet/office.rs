//! What a host does for the fleet: it answers questions, tells how much it has to do, and takes over what a
//! dead host has left.

use super::{Call, Load, adopt::Adopter};
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

const REPORT: Duration = Duration::from_secs(1);
/// Sessions that are taken over at the same time.
const ADOPTIONS: usize = 16;

pub(super) struct Office {
    pub(super) host: HostInstance,
    pub(super) link: FleetConnection,
    pub(super) lease: HostLease,
    pub(super) hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    pub(super) adopter: Adopter,
    pub(super) calls: mpsc::Sender<Call>,
    /// Others may think us dead: nothing is taken.
    pub(super) cut_off: watch::Receiver<bool>,
}

impl Office {
    /// Until the loop is gone; then others may have the name, and what is left.
    pub(super) async fn run(
        mut self,
        questions: RequestListener,
        agents: mpsc::Receiver<Vec<String>>,
    ) {
        self.serve(questions, agents).await;
        self.lease.release().await;
    }

    async fn serve(
        &mut self,
        mut questions: RequestListener,
        mut agents: mpsc::Receiver<Vec<String>>,
    ) {
        let mut report = tokio::time::interval(REPORT);
        let mut known: BTreeSet<HostInstance> = BTreeSet::new();
        self.take_back();
        loop {
            tokio::select! {
                biased;
                Ok(()) = self.cut_off.changed() => {
                    if !*self.cut_off.borrow_and_update() {
                        self.take_back();
                    }
                }
                Some(asked) = questions.next_request() => self.on_question(asked).await,
                Ok(()) = self.hosts.changed() => {
                    let now: BTreeSet<HostInstance> =
                        self.hosts.borrow_and_update().iter().map(|it| it.host.clone()).collect();
                    for dead in known.difference(&now).filter(|it| **it != self.host) {
                        self.inherit(dead);
                    }
                    known = now;
                    self.tell_elsewhere().await;
                }
                Some(agents) = agents.recv() => self.lease.update_entry(|it| it.agents = agents),
                _ = report.tick() => if !self.report().await {
                    return;
                },
            }
        }
    }

    async fn on_question(&self, asked: ReceivedRequest) {
        match &asked.request {
            HostRequest::OpenConnection(_) | HostRequest::AdoptSession(_)
                if *self.cut_off.borrow() =>
            {
                let why = "this host is cut off from the list of hosts";
                asked.respond(&HostResponse::Refused(why.to_owned())).await;
            }
            HostRequest::Ping => asked.respond(&HostResponse::Done).await,
            HostRequest::OpenConnection(id) => {
                let answer = match self.take_host_conn(id).await {
                    Ok(()) => HostResponse::Done,
                    Err(why) => HostResponse::Refused(why),
                };
                asked.respond(&answer).await;
            }
            HostRequest::AdoptSession(session) => {
                let (adopter, draining) = (self.adopter.clone(), self.lease.is_draining());
                let session: SessionId = session.as_str().into();
                tokio::spawn(async move {
                    asked.respond(&adopter.adopt(session, draining).await).await;
                });
            }
            HostRequest::SetDraining(drain) => {
                self.lease.update_entry(|it| it.draining = *drain);
                if *drain {
                    let _ended = self.calls.send(Call::Drain).await;
                }
                let answer = match self.load().await {
                    Some(load) => HostResponse::SessionsLeft(load.sessions),
                    None => HostResponse::Refused("this host is about to end".to_owned()),
                };
                asked.respond(&answer).await;
            }
        }
    }

    async fn take_host_conn(&self, id: &str) -> Result<(), String> {
        let (ours, theirs) = UnixStream::pair().map_err(|it| it.to_string())?;
        accept_host_connection(&self.link, id, theirs).await.map_err(|it| chain(&it))?;
        let taken = self.calls.send(Call::HostConnection(ClientStream::from(ours))).await;
        taken.map_err(|_| "this host is about to end".to_owned())
    }

    /// None once nobody listens.
    async fn load(&self) -> Option<Load> {
        let (tell, told) = oneshot::channel();
        self.calls.send(Call::Report(tell)).await.ok()?;
        told.await.ok()
    }

    /// False once nobody listens.
    async fn report(&self) -> bool {
        let Some(load) = self.load().await else { return false };
        self.lease.update_entry(|it| {
            (it.sessions, it.live, it.free) = (load.sessions, load.live, load.free);
            it.tenants.clone_from(&load.tenants);
        });
        true
    }

    /// Quotas are those of the fleet: the loop counts what is here, and is told of the rest.
    async fn tell_elsewhere(&self) {
        let tenants = elsewhere(&self.hosts.borrow(), &self.host);
        let _ended = self.calls.send(Call::Elsewhere(tenants)).await;
    }

    /// Takes back what was ours, in this life or an earlier one, and nobody else has taken.
    fn take_back(&self) {
        self.adopt_all(self.host.name.to_string(), |_| true);
    }

    /// Takes over what a dead host had, as far as it falls to us: all who live choose in the same way. If it
    /// lives again, all of that is its own.
    fn inherit(&self, dead: &HostInstance) {
        let mut heirs: Vec<HostInstance> = {
            let hosts = self.hosts.borrow();
            if hosts.iter().any(|it| it.host.name == dead.name) {
                return;
            }
            let able = hosts.iter().filter(|it| !it.draining && !it.shared.is_empty());
            with_places(able)
        };
        heirs.sort();
        let ours = self.host.clone();
        self.adopt_all(dead.to_string(), move |it| heir(it, &heirs) == Some(&ours));
    }

    fn adopt_all(&self, of: String, is_ours: impl Fn(&str) -> bool + Send + 'static) {
        let adopter = self.adopter.clone();
        tokio::spawn(async move {
            let (owners, owner) = (adopter.owners().clone(), of.clone());
            let left = tokio::task::spawn_blocking(move || owners.list_owned_by(&owner)).await;
            let left = match left {
                Ok(Ok(left)) => left,
                Ok(Err(error)) => {
                    let why = chain(&error);
                    tracing::error!(host = of, why, "what a dead host has left is not known");
                    return;
                }
                Err(_) => return,
            };
            let mine = left.into_iter().filter(|it| is_ours(it)).map(SessionId::from);
            let mine: Vec<SessionId> = mine.collect();
            if !mine.is_empty() {
                tracing::warn!(host = of, sessions = mine.len(), "what a host has left is adopted");
            }
            let places = Arc::new(Semaphore::new(ADOPTIONS));
            for session in mine {
                let place = places.clone().acquire_owned().await;
                let adopter = adopter.clone();
                tokio::spawn(async move {
                    let answer = adopter.adopt(session.clone(), false).await;
                    if let HostResponse::Refused(why) = answer {
                        tracing::info!(%session, why, "a session was not adopted");
                    }
                    drop(place);
                });
            }
        });
    }
}

/// What each tenant has on other hosts than this one.
fn elsewhere(hosts: &[HostEntry], ours: &HostInstance) -> BTreeMap<TenantName, Usage> {
    let mut tenants: BTreeMap<TenantName, Usage> = BTreeMap::new();
    let others = hosts.iter().filter(|it| it.host != *ours);
    for (name, share) in others.flat_map(|it| &it.tenants) {
        let sum = tenants.entry(name.clone().into()).or_default();
        sum.sessions += share.sessions;
        sum.agents += share.agents;
        sum.hosts += usize::from(0 < share.agents);
    }
    tenants
}

/// Hosts that may start more processes; all of them if none may. Two observers may see another moment of a host
/// and choose differently: then the log decides who owns a session.
fn with_places<'a>(hosts: impl Iterator<Item = &'a HostEntry> + Clone) -> Vec<HostInstance> {
    let free: Vec<HostInstance> =
        hosts.clone().filter(|it| it.free != Some(0)).map(|it| it.host.clone()).collect();
    if free.is_empty() { hosts.map(|it| it.host.clone()).collect() } else { free }
}

/// Who among those who live gets something of this name: the same for everybody who asks, and spread
/// evenly.
pub(super) fn heir<'a>(name: &str, heirs: &'a [HostInstance]) -> Option<&'a HostInstance> {
    heirs.iter().max_by_key(|host| (score(name, host), *host))
}

/// FNV-1a with the last step of `MurmurHash3`, so that one letter changes every bit. Hosts of different versions must
/// agree on it: it never changes, which the hash of the standard library may.
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
    fn score_is_the_same_for_ever() {
        assert_eq!(score("s-1", &host("a")), 0x3adb_75be_235d_b379);
        assert_eq!(score("s-1", &host("b")), 0xb782_4c4d_b029_efb7);
        assert_eq!(score("s-2", &host("a")), 0x8654_755e_7f67_30e3);
    }

    #[test]
    fn sessions_are_spread_evenly_and_only_those_of_a_lost_host_move() {
        let hosts = ["a", "b", "c"].map(host);
        let names: Vec<String> = (0..3_000).map(|it| format!("s-{it}")).collect();
        for it in &hosts {
            let share = names.iter().filter(|name| heir(name, &hosts) == Some(it)).count();
            assert!((900..1_100).contains(&share), "{it}: {share}");
        }
        for name in &names {
            let before = heir(name, &hosts).unwrap();
            if *before != hosts[2] {
                assert_eq!(heir(name, &hosts[..2]), Some(before), "{name}");
            }
        }
    }
}

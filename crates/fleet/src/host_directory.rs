//! Observes the live hosts. The list of hosts is read every second from any replica; before a host
//! is considered dead, the leader is asked.

use crate::{
    connection::{FleetConnection, REQUEST_TIMEOUT},
    host_entry::{HostEntry, HostInstance},
    lease::{LEADERLESS_GRACE, LEASE_DURATION, RENEWAL_DEADLINE},
    renewal::read_entry,
};
use futures_util::StreamExt as _;
use jackfield_agents::time_since_boot;
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{sync::watch, task::JoinHandle};

const POLL_INTERVAL: Duration = Duration::from_secs(1);
const HOSTS_MAX: usize = 1024;

/// The live hosts. A background task updates them until this is dropped.
#[derive(Debug)]
pub struct HostDirectory {
    hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    task: JoinHandle<()>,
}

impl HostDirectory {
    /// Reads the list once before it returns.
    pub async fn open(connection: FleetConnection) -> HostDirectory {
        let (tx, hosts) = watch::channel(Arc::default());
        let mut watcher = DirectoryWatcher { connection, observed: BTreeMap::new(), tx };
        watcher.poll().await;
        HostDirectory { hosts, task: tokio::spawn(watcher.run()) }
    }

    /// The live hosts, and a notification of each change.
    pub fn hosts(&self) -> watch::Receiver<Arc<Vec<HostEntry>>> {
        self.hosts.clone()
    }

    /// A predicate for any thread: whether this incarnation of a host is alive, as far as we know.
    pub fn liveness_check(&self) -> impl Fn(&HostInstance) -> bool + Send + Sync + Clone + 'static {
        let hosts = self.hosts();
        move |host| hosts.borrow().iter().any(|it| it.host == *host)
    }
}

impl Drop for HostDirectory {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FleetConnection {
    /// When a host last renewed or released its lease. `None` if the list no longer contains the
    /// host, or cannot be read.
    pub async fn last_renewal(&self, host: &str) -> Option<SystemTime> {
        let entries = self.context.get_stream_no_info(self.hosts_stream()).await.ok()?;
        let last = entries.get_last_raw_message_by_subject(&self.host_subject(host)).await.ok()?;
        Some(last.time.into())
    }
}

struct ObservedHost {
    /// The position of its last entry.
    position: u64,
    /// When we first saw that entry; it was written before.
    since: Duration,
    entry: HostEntry,
    /// Its lease has expired, or it has released it. Its last entry still exists and must not
    /// revive it.
    is_dead: bool,
    /// Since when the leader has consistently reported no later entry.
    silent_since: Option<Duration>,
}

struct DirectoryWatcher {
    connection: FleetConnection,
    observed: BTreeMap<Arc<str>, ObservedHost>,
    tx: watch::Sender<Arc<Vec<HostEntry>>>,
}

impl DirectoryWatcher {
    async fn run(mut self) {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            self.poll().await;
        }
    }

    async fn poll(&mut self) {
        let mut outdated = BTreeSet::new();
        match self.read_list().await {
            Ok(entries) => {
                let older = |(position, entry)| self.observe_entry(position, entry);
                outdated.extend(entries.into_iter().filter_map(older));
            }
            Err(error) => tracing::warn!(error, "failed to read list of hosts"),
        }
        let now = time_since_boot();
        let age = |it: &ObservedHost| now.saturating_sub(it.since);
        // One poll before a host that cannot renew its lease ends its agents.
        let is_late =
            |it: &ObservedHost| !it.is_dead && RENEWAL_DEADLINE <= age(it) + POLL_INTERVAL;
        let late = self.observed.iter().filter(|(_, it)| is_late(it));
        let late: BTreeSet<Arc<str>> = late.map(|(name, _)| name.clone()).collect();
        for name in late.union(&outdated) {
            // The replica that we read may lag behind. A host is not dead if the leader cannot be
            // asked.
            let reply = read_entry(&self.connection, name).await;
            let host = self.observed.get_mut(name).expect("found above");
            match reply {
                // The leader never lags behind. A smaller position means that all servers were down
                // at once, and the list was created again.
                Ok(Some((position, entry))) if host.position != position => {
                    self.set_entry(position, entry);
                }
                Ok(_) if !late.contains(name) => {}
                Ok(_) => {
                    // While the list had no leader, a healthy host could not renew its lease.
                    let silent_since = *host.silent_since.get_or_insert(now);
                    host.is_dead = LEASE_DURATION <= age(host)
                        && LEADERLESS_GRACE <= now.saturating_sub(silent_since);
                }
                Err(error) => {
                    host.silent_since = None;
                    tracing::warn!(error, host = &**name, "failed to check whether host is alive");
                }
            }
        }
        self.publish_hosts();
    }

    /// Adds an entry that some replica has. Returns the name of the host if a later entry is known.
    fn observe_entry(&mut self, position: u64, entry: HostEntry) -> Option<Arc<str>> {
        match self.observed.get(&entry.host.name).map(|it| it.position) {
            Some(known) if position < known => return Some(entry.host.name.clone()),
            Some(known) if position == known => {}
            // The age of an entry is unknown when it is first seen, so its lease starts now.
            _ => self.set_entry(position, entry),
        }
        None
    }

    fn set_entry(&mut self, position: u64, entry: HostEntry) {
        let is_dead = entry.gone;
        let host =
            ObservedHost { position, since: time_since_boot(), entry, is_dead, silent_since: None };
        self.observed.insert(host.entry.host.name.clone(), host);
    }

    fn publish_hosts(&self) {
        let live = self.observed.values().filter(|it| !it.is_dead);
        let hosts: Vec<HostEntry> = live.map(|it| it.entry.clone()).collect();
        self.tx.send_if_modified(|before| {
            let is_changed = **before != hosts;
            if is_changed {
                *before = Arc::new(hosts);
            }
            is_changed
        });
    }

    async fn read_list(&self) -> Result<Vec<(u64, HostEntry)>, String> {
        let (client, inbox) = (&self.connection.client, self.connection.client.new_inbox());
        let mut replies = client.subscribe(inbox.clone()).await.map_err(|it| it.to_string())?;
        let pattern = self.connection.host_subject("*");
        let request = json!({ "seq": 1, "next_by_subj": pattern, "batch": HOSTS_MAX });
        let subject = format!("$JS.API.DIRECT.GET.{}", self.connection.hosts_stream());
        let published = client.publish_with_reply(subject, inbox, request.to_string().into()).await;
        published.map_err(|it| it.to_string())?;
        let mut entries = Vec::new();
        loop {
            let reply = tokio::time::timeout(REQUEST_TIMEOUT, replies.next()).await;
            let Ok(Some(reply)) = reply else { return Err("no reply".to_owned()) };
            if reply.status.is_some() {
                return match reply.status.map(|it| it.as_u16()) {
                    Some(204 | 404) => Ok(entries),
                    status => Err(format!("status {status:?}")),
                };
            }
            let position = reply.headers.as_ref().and_then(|it| it.get("Nats-Sequence"));
            let position = position.and_then(|it| it.as_str().parse().ok());
            if let (Some(position), Ok(entry)) = (position, serde_json::from_slice(&reply.payload))
            {
                entries.push((position, entry));
            }
        }
    }
}

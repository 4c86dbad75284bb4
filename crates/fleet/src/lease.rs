//! The lease of a host: the host renews its entry in the list of hosts, and detects when it cannot.

use crate::{
    connection::FleetConnection,
    host_entry::HostEntry,
    renewal::{LAST_ATTEMPT_TIMEOUT, RenewalError, read_entry, renew, renew_through_any_server},
};
// A lease also expires while the machine sleeps.
use jackfield_agents::time_since_boot;
use std::time::Duration;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

/// A host whose lease was not renewed for this long is dead.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(10);
const RENEWAL_INTERVAL: Duration = Duration::from_secs(3);
/// A host whose renewals were not acknowledged for this long ends its agents, so that they have
/// ended when the lease expires.
pub(crate) const RENEWAL_DEADLINE: Duration = Duration::from_millis(6_600);
/// The rest of the lease at the deadline. A host that could not renew because the list had no
/// leader has this long once there is a leader again.
pub(crate) const LEADERLESS_GRACE: Duration = Duration::from_millis(3_400);
/// How long a new list of hosts may take to elect a leader.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(15);
const RETRY_DELAY: Duration = Duration::from_millis(200);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEvent {
    /// The lease could not be renewed and is about to expire: end every agent now.
    Lost,
    /// The lease was renewed again.
    Regained,
}

#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    #[error(
        "a host named `{name}` is alive: stop it, wait {} s if it was killed, or choose another --host-name",
        LEASE_DURATION.as_secs()
    )]
    NameInUse { name: String },
    #[error("failed to write the entry in the list of hosts: {0}")]
    Refused(String),
}

/// Renews the entry of a host until it is dropped.
#[derive(Debug)]
pub struct HostLease {
    connection: FleetConnection,
    entry: watch::Sender<HostEntry>,
    expires_at: watch::Receiver<Duration>,
    task: JoinHandle<()>,
}

impl HostLease {
    /// Acquires the lease for the name of the host. Fails if another live host has the name.
    pub async fn acquire(
        connection: FleetConnection,
        entry: HostEntry,
        events: mpsc::Sender<LeaseEvent>,
    ) -> Result<HostLease, LeaseError> {
        let name = entry.host.name.to_string();
        let read_name = async || read_name_state(&connection, &name).await;
        let (mut last, mut is_free) = retry_until_leader(&read_name).await?;
        if !is_free {
            // If the previous holder of the name is alive, it renews its lease within this time.
            tokio::time::sleep(LEASE_DURATION).await;
            let previous = last;
            (last, is_free) = read_name().await?;
            if !is_free && last != previous {
                return Err(LeaseError::NameInUse { name });
            }
        }
        let started_at = time_since_boot();
        let write_first = async || {
            renew(&connection, &entry, last).await.map_err(|error| match error {
                RenewalError::Superseded => LeaseError::NameInUse { name: name.clone() },
                other => LeaseError::Refused(other.to_string()),
            })
        };
        let last = retry_until_leader(write_first).await?;
        let (entry, entries) = watch::channel(entry);
        let (extend, expires_at) = watch::channel(started_at + LEASE_DURATION);
        let renewer = LeaseRenewer {
            connection: connection.clone(),
            entries,
            events,
            extend,
            last,
            renewed_at: started_at,
            is_lost: false,
        };
        Ok(HostLease { connection, entry, expires_at, task: tokio::spawn(renewer.run()) })
    }

    /// When the lease expires, on the clock that includes suspend. Each renewal extends it. No
    /// other host considers us dead before.
    pub fn expires_at(&self) -> watch::Receiver<Duration> {
        self.expires_at.clone()
    }

    /// Releases the lease of a host that ends regularly, so that others need not wait until it
    /// expires.
    pub async fn release(self) {
        self.task.abort();
        let last_entry = HostEntry { gone: true, ..self.entry.borrow().clone() };
        if let Ok(Some((position, entry))) =
            read_entry(&self.connection, &last_entry.host.name).await
            && entry.host == last_entry.host
        {
            // If this fails, the lease expires by itself.
            let _ = renew(&self.connection, &last_entry, position).await;
        }
    }

    pub fn is_draining(&self) -> bool {
        self.entry.borrow().draining
    }

    /// Changes the entry and publishes it at once.
    pub fn update_entry(&self, change: impl FnOnce(&mut HostEntry)) {
        self.entry.send_if_modified(|entry| {
            let before = entry.clone();
            change(entry);
            *entry != before
        });
    }
}

impl Drop for HostLease {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct LeaseRenewer {
    connection: FleetConnection,
    entries: watch::Receiver<HostEntry>,
    events: mpsc::Sender<LeaseEvent>,
    /// Sets the time at which the lease expires.
    extend: watch::Sender<Duration>,
    /// The position of our last entry. If it is not the last one of our name, another host has the
    /// name.
    last: u64,
    /// When the last acknowledged renewal started.
    renewed_at: Duration,
    is_lost: bool,
}

impl LeaseRenewer {
    async fn run(mut self) {
        loop {
            let since = time_since_boot().saturating_sub(self.renewed_at);
            let delay = RENEWAL_INTERVAL.checked_sub(since).unwrap_or(RETRY_DELAY);
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                changed = self.entries.changed() => if changed.is_err() { return },
            }
            let entry = self.entries.borrow_and_update().clone();
            let started_at = time_since_boot();
            let elapsed = started_at.saturating_sub(self.renewed_at);
            let remaining = RENEWAL_DEADLINE.checked_sub(LAST_ATTEMPT_TIMEOUT + elapsed);
            let renewal = match remaining {
                _ if self.is_lost => renew(&self.connection, &entry, self.last).await,
                // The reply may take longer than the remaining time.
                Some(remaining) => {
                    let renewal = renew(&self.connection, &entry, self.last);
                    let renewal = tokio::time::timeout(remaining, renewal).await;
                    renewal.unwrap_or(Err(RenewalError::TimedOut))
                }
                None => renew_through_any_server(&self.connection, &entry, self.last).await,
            };
            let is_last_attempt = remaining.is_none();
            self.on_renewal(renewal, &entry, started_at, is_last_attempt).await;
        }
    }

    async fn on_renewal(
        &mut self,
        renewal: Result<u64, RenewalError>,
        entry: &HostEntry,
        started_at: Duration,
        is_last_attempt: bool,
    ) {
        match renewal {
            Ok(position) => {
                (self.last, self.renewed_at) = (position, started_at);
                self.extend.send_replace(started_at + LEASE_DURATION);
                self.set_state(LeaseEvent::Regained).await;
            }
            Err(RenewalError::Superseded) => self.on_superseded(entry).await,
            // While the list has no leader, no host is considered dead, nor for a while after that.
            Err(RenewalError::NoLeader) if is_last_attempt => {
                if !self.is_lost {
                    self.extend.send_replace(started_at + LEADERLESS_GRACE);
                }
            }
            Err(error) => {
                if self.is_past_deadline() {
                    tracing::error!(%error, "failed to renew lease");
                    self.set_state(LeaseEvent::Lost).await;
                }
            }
        }
    }

    /// The last entry is not the one that we know: it is ours and its reply was lost, or another
    /// host took our name while we were disconnected.
    async fn on_superseded(&mut self, entry: &HostEntry) {
        let reading = read_entry(&self.connection, &entry.host.name);
        match tokio::time::timeout(LAST_ATTEMPT_TIMEOUT, reading).await {
            Ok(Ok(Some((position, last)))) if last.host == entry.host => self.last = position,
            // We were disconnected for so long that the servers removed our entry.
            Ok(Ok(None)) => self.last = 0,
            _ if self.is_past_deadline() => self.set_state(LeaseEvent::Lost).await,
            _ => {}
        }
    }

    fn is_past_deadline(&self) -> bool {
        RENEWAL_DEADLINE <= time_since_boot().saturating_sub(self.renewed_at)
    }

    /// Sends the event if it changes the state.
    async fn set_state(&mut self, event: LeaseEvent) {
        let is_lost = event == LeaseEvent::Lost;
        if std::mem::replace(&mut self.is_lost, is_lost) != is_lost {
            // A closed channel means that the host is ending.
            let _ = self.events.send(event).await;
        }
    }
}

/// Retries while a new list of hosts has no leader.
async fn retry_until_leader<T>(
    step: impl AsyncFn() -> Result<T, LeaseError>,
) -> Result<T, LeaseError> {
    let started_at = tokio::time::Instant::now();
    loop {
        match step().await {
            Err(LeaseError::Refused(_)) if started_at.elapsed() < ELECTION_TIMEOUT => {
                tokio::time::sleep(RETRY_DELAY).await;
            }
            result => return result,
        }
    }
}

/// The position of the last entry of a name, and whether the name is free.
async fn read_name_state(
    connection: &FleetConnection,
    name: &str,
) -> Result<(u64, bool), LeaseError> {
    let entry = read_entry(connection, name).await.map_err(LeaseError::Refused)?;
    Ok(entry.map_or((0, true), |(position, entry)| (position, entry.gone)))
}

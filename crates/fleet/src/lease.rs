//! A host goes on saying that it is there, and notices when nobody can have heard it.

use crate::{
    entry::Entry,
    link::{Link, REQUEST_TIMEOUT},
};
use async_nats::{HeaderMap, Request};
use serde::Deserialize;
use std::time::Duration;
use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
};

/// A host that was not heard for so long is dead.
pub(crate) const LEASE: Duration = Duration::from_secs(10);
const RENEW: Duration = Duration::from_secs(3);
/// A host that was not acknowledged for so long ends its agents: they must be gone when the lease is over.
const GIVE_UP: Duration = Duration::from_millis(6_600);
const RETRY: Duration = Duration::from_millis(200);

const EXPECTED_LAST: &str = "Nats-Expected-Last-Subject-Sequence";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseEvent {
    /// Nobody may have heard of us for so long that they will soon think us dead: end every agent now.
    CutOff,
    /// We are heard again.
    Back,
}

#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    #[error(
        "a host named `{name}` is alive: stop it, wait {} s if it was killed, or choose another --host-name",
        LEASE.as_secs()
    )]
    Taken { name: String },
    #[error("the servers did not take our entry in the list of hosts: {0}")]
    Refused(String),
}

/// Keeps the entry of a host fresh for as long as it lives.
#[derive(Debug)]
pub struct Lease {
    link: Link,
    entry: watch::Sender<Entry>,
    task: JoinHandle<()>,
}

impl Lease {
    /// Takes the name, which nobody living may have.
    pub async fn take(
        link: Link,
        entry: Entry,
        events: mpsc::Sender<LeaseEvent>,
    ) -> Result<Lease, LeaseError> {
        let name = entry.host.name.to_string();
        let mut last = current(&link, &name).await?;
        if last != 0 {
            // Somebody had this name. If it lives, it says so within its lease.
            tokio::time::sleep(LEASE).await;
            let now = current(&link, &name).await?;
            if now != 0 && now != last {
                return Err(LeaseError::Taken { name });
            }
            last = now;
        }
        let taken = boottime();
        last = renew(&link, &entry, last).await.map_err(|why| match why {
            Failure::Taken => LeaseError::Taken { name },
            Failure::Away(why) => LeaseError::Refused(why),
        })?;
        let (entry, entries) = watch::channel(entry);
        let keeper =
            Keeper { link: link.clone(), entries, events, last, heard: taken, cut_off: false };
        Ok(Lease { link, entry, task: tokio::spawn(keeper.run()) })
    }

    /// Gives the name back, for who ends on purpose: others need not wait until the lease is over.
    pub async fn give_back(self) {
        self.task.abort();
        let subject = self.link.entry(&self.entry.borrow().host.name);
        if let Ok(entries) = self.link.context.get_stream_no_info(self.link.entries()).await {
            let _forgotten_later = entries.purge().filter(subject).await;
        }
    }

    /// Says something new, at once.
    pub fn update(&self, change: impl FnOnce(&mut Entry)) {
        self.entry.send_if_modified(|entry| {
            let before = entry.clone();
            change(entry);
            *entry != before
        });
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Keeper {
    link: Link,
    entries: watch::Receiver<Entry>,
    events: mpsc::Sender<LeaseEvent>,
    /// The place of our last entry: if it is not the last one of our name, somebody else has it.
    last: u64,
    /// When the renewal began that was acknowledged last.
    heard: Duration,
    cut_off: bool,
}

impl Keeper {
    async fn run(mut self) {
        loop {
            let since = boottime().saturating_sub(self.heard);
            let pause = RENEW.checked_sub(since).unwrap_or(RETRY);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                changed = self.entries.changed() => if changed.is_err() { return },
            }
            let entry = self.entries.borrow_and_update().clone();
            let began = boottime();
            let deadline = GIVE_UP.saturating_sub(began.saturating_sub(self.heard));
            let renewal = renew(&self.link, &entry, self.last);
            let renewed = if self.cut_off {
                renewal.await
            } else {
                // The answer may take longer than there is time for it.
                let waited = tokio::time::timeout(deadline, renewal).await;
                waited.unwrap_or_else(|_| Err(Failure::Away("no answer in time".to_owned())))
            };
            match renewed {
                Ok(last) => {
                    (self.last, self.heard) = (last, began);
                    self.tell(false).await;
                }
                Err(Failure::Taken) => {
                    // Ours, perhaps, whose answer was lost; or a host of our name while we were away.
                    let name = entry.host.name.to_string();
                    if let Ok(Some(theirs)) = holder(&self.link, &name).await
                        && theirs.1.host == entry.host
                    {
                        self.last = theirs.0;
                    } else if GIVE_UP <= boottime().saturating_sub(self.heard) {
                        self.tell(true).await;
                    }
                }
                Err(Failure::Away(why)) => {
                    if GIVE_UP <= boottime().saturating_sub(self.heard) {
                        tracing::error!(why, "the lease could not be renewed");
                        self.tell(true).await;
                    }
                }
            }
        }
    }

    async fn tell(&mut self, cut_off: bool) {
        if std::mem::replace(&mut self.cut_off, cut_off) != cut_off {
            let event = if cut_off { LeaseEvent::CutOff } else { LeaseEvent::Back };
            let _unheard = self.events.send(event).await;
        }
    }
}

enum Failure {
    Taken,
    Away(String),
}

#[derive(Deserialize)]
struct Answer {
    seq: Option<u64>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    err_code: u64,
    description: String,
}

/// "Wrong last sequence", and the same while another is under way.
const STALE: [u64; 2] = [10071, 10164];

/// Writes the entry if the last one of this name is the one we know; returns its place.
async fn renew(link: &Link, entry: &Entry, last: u64) -> Result<u64, Failure> {
    let body = serde_json::to_vec(entry).expect("an entry is plain data");
    let mut headers = HeaderMap::new();
    headers.insert(EXPECTED_LAST, last.to_string());
    let request =
        Request::new().headers(headers).payload(body.into()).timeout(Some(REQUEST_TIMEOUT));
    let answer = link.client.send_request(link.entry(&entry.host.name), request).await;
    let answer = answer.map_err(|it| Failure::Away(it.to_string()))?;
    let answer: Answer =
        serde_json::from_slice(&answer.payload).map_err(|it| Failure::Away(it.to_string()))?;
    match (answer.seq, answer.error) {
        (_, Some(it)) if STALE.contains(&it.err_code) => Err(Failure::Taken),
        (_, Some(it)) => Err(Failure::Away(it.description)),
        (Some(seq), None) => Ok(seq),
        (None, None) => Err(Failure::Away("the server's answer makes no sense".to_owned())),
    }
}

async fn current(link: &Link, name: &str) -> Result<u64, LeaseError> {
    let holder = holder(link, name).await.map_err(LeaseError::Refused)?;
    Ok(holder.map_or(0, |it| it.0))
}

/// The last entry of a name and its place, as the leader has it.
pub(crate) async fn holder(link: &Link, name: &str) -> Result<Option<(u64, Entry)>, String> {
    use async_nats::jetstream::stream::LastRawMessageErrorKind as Kind;
    let entries = link.context.get_stream_no_info(link.entries()).await;
    let entries = entries.map_err(|it| it.to_string())?;
    match entries.get_last_raw_message_by_subject(&link.entry(name)).await {
        Ok(it) => {
            let entry = serde_json::from_slice(&it.payload).map_err(|it| it.to_string())?;
            Ok(Some((it.sequence, entry)))
        }
        Err(it) if it.kind() == Kind::NoMessageFound => Ok(None),
        Err(it) => Err(it.to_string()),
    }
}

/// Time that goes on while the machine sleeps: a lease does, too.
pub(crate) fn boottime() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).expect("since the machine was started");
    let nanos = u32::try_from(now.tv_nsec).expect("less than a second");
    Duration::new(seconds, nanos)
}

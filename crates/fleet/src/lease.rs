//! A host goes on saying that it is there, and notices when nobody can have heard it.

use crate::{
    entry::Entry,
    link::{Link, REQUEST_TIMEOUT},
};
use async_nats::{
    Client, HeaderMap, Request,
    client::RequestErrorKind,
    jetstream::{self, Context},
};
use serde::Deserialize;
use std::{collections::BTreeSet, time::Duration};
use tokio::{
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
};

/// A host that was not heard for so long is dead.
pub(crate) const LEASE: Duration = Duration::from_secs(10);
const RENEW: Duration = Duration::from_secs(3);
/// A host that was not acknowledged for so long ends its agents: they must be gone when the lease is over.
pub(crate) const GIVE_UP: Duration = Duration::from_millis(6_600);
/// What is left of the lease then. Who was not heard because nobody led the list has so long from when
/// somebody does.
pub(crate) const SILENCE: Duration = Duration::from_millis(3_400);
/// How long a list of hosts that was just created may take to have a leader.
const START_PATIENCE: Duration = Duration::from_secs(15);
/// How long a try may take when there is no time to lose.
const LAST_TRY: Duration = Duration::from_millis(700);
/// The same for an answer, once a server is reached.
const LAST_ANSWER: Duration = Duration::from_millis(400);
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
    ends: watch::Receiver<Duration>,
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
        let (mut last, gone) = start(async || current(&link, &name).await).await?;
        if !gone {
            // Somebody had this name. If it lives, it says so within its lease.
            tokio::time::sleep(LEASE).await;
            let (now, gone) = current(&link, &name).await?;
            if !gone && now != last {
                return Err(LeaseError::Taken { name });
            }
            last = now;
        }
        let taken = boottime();
        let first = async || {
            renew(&link, &entry, last).await.map_err(|why| match why {
                Failure::Taken => LeaseError::Taken { name: name.clone() },
                other => LeaseError::Refused(other.to_string()),
            })
        };
        last = start(first).await?;
        let (entry, entries) = watch::channel(entry);
        let (put_off, ends) = watch::channel(taken + LEASE);
        let keeper = Keeper {
            link: link.clone(),
            entries,
            events,
            put_off,
            last,
            heard: taken,
            cut_off: false,
        };
        Ok(Lease { link, entry, ends, task: tokio::spawn(keeper.run()) })
    }

    /// Nobody thinks us dead before that, on the clock that goes on while the machine sleeps. It is put off
    /// again and again.
    pub fn ends(&self) -> watch::Receiver<Duration> {
        self.ends.clone()
    }

    /// Gives the name back, for who ends on purpose: others need not wait until the lease is over.
    pub async fn give_back(self) {
        self.task.abort();
        let last = Entry { gone: true, ..self.entry.borrow().clone() };
        if let Ok(Some((at, theirs))) = holder(&self.link, &last.host.name).await
            && theirs.host == last.host
        {
            let _forgotten_later = renew(&self.link, &last, at).await;
        }
    }

    /// Whether we take nothing new.
    pub fn is_draining(&self) -> bool {
        self.entry.borrow().draining
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
    put_off: watch::Sender<Duration>,
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
            let left = GIVE_UP.checked_sub(LAST_TRY + began.saturating_sub(self.heard));
            let renewed = match left {
                _ if self.cut_off => renew(&self.link, &entry, self.last).await,
                // The answer may take longer than there is time for it.
                Some(left) => within(left, renew(&self.link, &entry, self.last)).await,
                None => renew_by_any(&self.link, &entry, self.last).await,
            };
            match renewed {
                Ok(last) => {
                    (self.last, self.heard) = (last, began);
                    self.put_off.send_replace(began + LEASE);
                    self.tell(false).await;
                }
                Err(Failure::Taken) => {
                    // Ours, perhaps, whose answer was lost; or a host of our name while we were away.
                    let name = entry.host.name.to_string();
                    match tokio::time::timeout(LAST_TRY, holder(&self.link, &name)).await {
                        Ok(Ok(Some((at, theirs)))) if theirs.host == entry.host => self.last = at,
                        // We were away for so long that our entry is no more kept.
                        Ok(Ok(None)) => self.last = 0,
                        _ if self.is_late() => self.tell(true).await,
                        _ => {}
                    }
                }
                // While nobody leads the list, nobody is called dead, nor for a while after that.
                Err(Failure::Nobody) if left.is_none() => {
                    if !self.cut_off {
                        self.put_off.send_replace(began + SILENCE);
                    }
                }
                Err(why) => {
                    if self.is_late() {
                        tracing::error!(%why, "the lease could not be renewed");
                        self.tell(true).await;
                    }
                }
            }
        }
    }

    fn is_late(&self) -> bool {
        GIVE_UP <= boottime().saturating_sub(self.heard)
    }

    async fn tell(&mut self, cut_off: bool) {
        if std::mem::replace(&mut self.cut_off, cut_off) != cut_off {
            let event = if cut_off { LeaseEvent::CutOff } else { LeaseEvent::Back };
            let _unheard = self.events.send(event).await;
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("somebody else has the name")]
    Taken,
    #[error("nobody leads the list of hosts")]
    Nobody,
    #[error("no answer in time")]
    Late,
    #[error("{0}")]
    Away(String),
}

async fn within(
    time: Duration,
    renewal: impl Future<Output = Result<u64, Failure>>,
) -> Result<u64, Failure> {
    let waited = tokio::time::timeout(time, renewal).await;
    waited.unwrap_or(Err(Failure::Late))
}

/// A list that was just made may have no leader yet.
async fn start<T>(step: impl AsyncFn() -> Result<T, LeaseError>) -> Result<T, LeaseError> {
    let since = tokio::time::Instant::now();
    loop {
        match step().await {
            Err(LeaseError::Refused(_)) if since.elapsed() < START_PATIENCE => {
                tokio::time::sleep(RETRY).await;
            }
            done => return done,
        }
    }
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

/// "Wrong last sequence".
const STALE: u64 = 10071;
/// The same while an earlier one is under way. A leader that has lost its majority says so until it steps
/// down: it is no more than an answer that is late.
const UNDER_WAY: u64 = 10164;

/// Writes the entry if the last one of this name is the one we know; returns its place.
async fn renew(link: &Link, entry: &Entry, last: u64) -> Result<u64, Failure> {
    renew_by(&link.client, REQUEST_TIMEOUT, link, entry, last).await
}

/// The same by every server that is reached, each asked for itself. `Nobody` means more here: by so many
/// servers no leader was found that those that were not reached are too few to have chosen one. A leader
/// that is only slow has our entry before it can say that there is none.
///
/// This is as true as `--fleet` names all servers that may have the list.
async fn renew_by_any(link: &Link, entry: &Entry, last: u64) -> Result<u64, Failure> {
    let told = link.client.server_info().connect_urls;
    let servers: BTreeSet<String> = link.servers.urls().iter().cloned().chain(told).collect();
    let mut tries: JoinSet<_> = servers
        .into_iter()
        .map(|server| {
            let (link, entry) = (link.clone(), entry.clone());
            async move {
                let client = link.servers.options().connect(server).await.ok()?;
                let mut answer = renew_by(&client, LAST_ANSWER, &link, &entry, last).await;
                if let Err(Failure::Taken) = answer {
                    let context = jetstream::new(client.clone());
                    match holder_by(&context, &link, &entry.host.name).await {
                        // An earlier try of ours, whose answer was lost.
                        Ok(Some((at, theirs))) if theirs.host == entry.host => {
                            answer = renew_by(&client, LAST_ANSWER, &link, &entry, at).await;
                        }
                        Ok(None) => answer = renew_by(&client, LAST_ANSWER, &link, &entry, 0).await,
                        Ok(Some(_)) => {}
                        Err(why) => answer = Err(Failure::Away(why)),
                    }
                }
                Some((client.server_info().server_id, answer))
            }
        })
        .collect();
    let size = link.servers.urls().len().max(link.replicas);
    let majority = link.replicas / 2 + 1;
    let mut leaderless = BTreeSet::new();
    let deadline = tokio::time::Instant::now() + LAST_TRY;
    while let Ok(Some(tried)) = tokio::time::timeout_at(deadline, tries.join_next()).await {
        match tried {
            Ok(Some((server, Err(Failure::Nobody | Failure::Late)))) => {
                leaderless.insert(server);
            }
            Ok(Some((_, Err(Failure::Away(_)))) | None) | Err(_) => {}
            Ok(Some((_, answer))) => return answer,
        }
        if size < leaderless.len() + majority {
            return Err(Failure::Nobody);
        }
    }
    Err(Failure::Away("too few servers are reached".to_owned()))
}

async fn renew_by(
    client: &Client,
    timeout: Duration,
    link: &Link,
    entry: &Entry,
    last: u64,
) -> Result<u64, Failure> {
    let body = serde_json::to_vec(entry).expect("an entry is plain data");
    let mut headers = HeaderMap::new();
    headers.insert(EXPECTED_LAST, last.to_string());
    let request = Request::new().headers(headers).payload(body.into()).timeout(Some(timeout));
    let answer = client.send_request(link.entry(&entry.host.name), request).await;
    let answer = answer.map_err(|it| match it.kind() {
        RequestErrorKind::NoResponders => Failure::Nobody,
        RequestErrorKind::TimedOut => Failure::Late,
        _ => Failure::Away(it.to_string()),
    })?;
    let answer: Answer =
        serde_json::from_slice(&answer.payload).map_err(|it| Failure::Away(it.to_string()))?;
    match (answer.seq, answer.error) {
        (_, Some(it)) if it.err_code == STALE => Err(Failure::Taken),
        (_, Some(it)) if it.err_code == UNDER_WAY => Err(Failure::Late),
        (_, Some(it)) => Err(Failure::Away(it.description)),
        (Some(seq), None) => Ok(seq),
        (None, None) => Err(Failure::Away("the server's answer makes no sense".to_owned())),
    }
}

/// The place of the last entry of a name, and whether nobody has the name now.
async fn current(link: &Link, name: &str) -> Result<(u64, bool), LeaseError> {
    let holder = holder(link, name).await.map_err(LeaseError::Refused)?;
    Ok(holder.map_or((0, true), |(at, entry)| (at, entry.gone)))
}

/// The last entry of a name and its place, as the leader has it.
pub(crate) async fn holder(link: &Link, name: &str) -> Result<Option<(u64, Entry)>, String> {
    holder_by(&link.context, link, name).await
}

async fn holder_by(
    context: &Context,
    link: &Link,
    name: &str,
) -> Result<Option<(u64, Entry)>, String> {
    use jetstream::stream::LastRawMessageErrorKind as Kind;
    let entries = context.get_stream_no_info(link.entries()).await;
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

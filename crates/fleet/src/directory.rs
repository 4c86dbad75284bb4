//! Who is there. The list is read every second from whichever server is near; before a host is called dead,
//! the leader is asked.

use crate::{
    entry::{Entry, HostName},
    lease::{GIVE_UP, LEASE, SILENCE, boottime, holder},
    link::{Link, REQUEST_TIMEOUT},
};
use futures_util::StreamExt as _;
use serde_json::json;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{sync::watch, task::JoinHandle};

const LOOK: Duration = Duration::from_secs(1);
const HOSTS_MAX: usize = 1024;

/// The hosts that live, kept up to date for as long as this is.
#[derive(Debug)]
pub struct Directory {
    hosts: watch::Receiver<Arc<Vec<Entry>>>,
    task: JoinHandle<()>,
}

impl Directory {
    /// The first look is made before this returns.
    pub async fn open(link: Link) -> Directory {
        let (tx, hosts) = watch::channel(Arc::default());
        let mut watcher = Watcher { link, seen: BTreeMap::new(), tx };
        watcher.look().await;
        Directory { hosts, task: tokio::spawn(watcher.run()) }
    }

    /// All that live, whenever that changes.
    pub fn hosts(&self) -> watch::Receiver<Arc<Vec<Entry>>> {
        self.hosts.clone()
    }

    /// Whether this very start of a host lives, as far as we know. The answer may be asked for on any
    /// thread.
    pub fn knows(&self) -> impl Fn(&HostName) -> bool + Send + Sync + Clone + 'static {
        let hosts = self.hosts();
        move |host| hosts.borrow().iter().any(|it| it.host == *host)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Link {
    /// When a host renewed its lease last, or gave its name back. `None` if the list of hosts does not know it any
    /// more, or cannot be asked.
    pub async fn last_heard(&self, host: &str) -> Option<SystemTime> {
        let entries = self.context.get_stream_no_info(self.entries()).await.ok()?;
        let last = entries.get_last_raw_message_by_subject(&self.entry(host)).await.ok()?;
        Some(last.time.into())
    }
}

struct Seen {
    /// The place of its last entry, and when we saw that first: it was written before.
    at: u64,
    since: Duration,
    entry: Entry,
    /// Its lease is over, or it has said so itself. Its last entry is still there, and must not bring it
    /// back.
    dead: bool,
    /// Since when the leader has said, each time it was asked, that there is none after it.
    silent: Option<Duration>,
}

struct Watcher {
    link: Link,
    seen: BTreeMap<Arc<str>, Seen>,
    tx: watch::Sender<Arc<Vec<Entry>>>,
}

impl Watcher {
    async fn run(mut self) {
        loop {
            tokio::time::sleep(LOOK).await;
            self.look().await;
        }
    }

    async fn look(&mut self) {
        let mut odd = BTreeSet::new();
        match self.read().await {
            Ok(found) => odd.extend(found.into_iter().filter_map(|(at, it)| self.saw(at, it))),
            Err(why) => tracing::warn!(why, "the list of hosts cannot be read"),
        }
        let now = boottime();
        let age = |it: &Seen| now.saturating_sub(it.since);
        // One look earlier than a host that is not heard gives up.
        let late = self.seen.iter().filter(|(_, it)| !it.dead && GIVE_UP <= age(it) + LOOK);
        let late: BTreeSet<Arc<str>> = late.map(|(name, _)| name.clone()).collect();
        for name in late.union(&odd) {
            // The server that we read from may be late itself. Who cannot be asked about is not dead.
            let answer = holder(&self.link, name).await;
            let seen = self.seen.get_mut(name).expect("found above");
            match answer {
                // Who leads is never behind: if its number is smaller, all servers were away at once, and the
                // list has begun anew.
                Ok(Some((at, entry))) if seen.at != at => self.heard(at, entry),
                Ok(_) if !late.contains(name) => {}
                Ok(_) => {
                    // While nobody led the list a host could not be heard, however well it was.
                    let silent = *seen.silent.get_or_insert(now);
                    seen.dead = LEASE <= age(seen) && SILENCE <= now.saturating_sub(silent);
                }
                Err(why) => {
                    seen.silent = None;
                    tracing::warn!(why, host = &**name, "cannot tell whether a host lives");
                }
            }
        }
        self.publish();
    }

    /// Takes in what some server has. Returns whose entry is older than the one that we know.
    fn saw(&mut self, at: u64, entry: Entry) -> Option<Arc<str>> {
        match self.seen.get(&entry.host.name).map(|it| it.at) {
            Some(known) if at < known => return Some(entry.host.name.clone()),
            Some(known) if at == known => {}
            // An entry that is old when it is seen first is not told from a fresh one; it gets its time.
            _ => self.heard(at, entry),
        }
        None
    }

    fn heard(&mut self, at: u64, entry: Entry) {
        let dead = entry.gone;
        let seen = Seen { at, since: boottime(), entry, dead, silent: None };
        self.seen.insert(seen.entry.host.name.clone(), seen);
    }

    fn publish(&self) {
        let living = self.seen.values().filter(|it| !it.dead);
        let hosts: Vec<Entry> = living.map(|it| it.entry.clone()).collect();
        self.tx.send_if_modified(|before| {
            let changed = **before != hosts;
            if changed {
                *before = Arc::new(hosts);
            }
            changed
        });
    }

    async fn read(&self) -> Result<Vec<(u64, Entry)>, String> {
        let (client, inbox) = (&self.link.client, self.link.client.new_inbox());
        let mut answers = client.subscribe(inbox.clone()).await.map_err(|it| it.to_string())?;
        let all = self.link.entry("*");
        let wanted = json!({ "seq": 1, "next_by_subj": all, "batch": HOSTS_MAX });
        let asked = format!("$JS.API.DIRECT.GET.{}", self.link.entries());
        let asked = client.publish_with_reply(asked, inbox, wanted.to_string().into()).await;
        asked.map_err(|it| it.to_string())?;
        let mut found = Vec::new();
        loop {
            let answer = tokio::time::timeout(REQUEST_TIMEOUT, answers.next()).await;
            let Ok(Some(answer)) = answer else { return Err("no answer".to_owned()) };
            if answer.status.is_some() {
                return match answer.status.map(|it| it.as_u16()) {
                    Some(204 | 404) => Ok(found),
                    status => Err(format!("status {status:?}")),
                };
            }
            let at = answer.headers.as_ref().and_then(|it| it.get("Nats-Sequence"));
            let at = at.and_then(|it| it.as_str().parse().ok());
            if let (Some(at), Ok(entry)) = (at, serde_json::from_slice(&answer.payload)) {
                found.push((at, entry));
            }
        }
    }
}

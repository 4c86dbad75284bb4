//! What is counted, and how it gets from the loop to whoever asks: a scrape is a letter to the loop,
//! the answer a snapshot, and the page is written where it is read. The loop writes no text and
//! looks at no process. In a fleet a clerk takes the letter first, and asks the gateway too.

mod fleet;
mod page;

use jackfield_fleet::HostEntry;
use jackfield_fleet::gateway;
use jackfield_hub::{AgentId, Gauges, Note};
use jackfield_journal::ArchiveGauges;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use std::{collections::BTreeMap, sync::Arc, time::Instant};
use tokio::sync::{mpsc, oneshot};

/// A question for the numbers of this moment.
pub(crate) type Scrape = oneshot::Sender<Snapshot>;

/// What the loop counts while it runs.
#[derive(Debug, Clone)]
pub(crate) struct Meters {
    /// Events that sessions have logged.
    pub(crate) events: u64,
    /// Events that were said and could never be logged.
    lost: u64,
    /// Turns by how they ended.
    turns: BTreeMap<&'static str, u64>,
    spawns: u64,
    ends: u64,
    fell_behind: u64,
    append_retries: u64,
    spawn_seconds: Histogram,
    starting: BTreeMap<AgentId, Instant>,
}

impl Default for Meters {
    fn default() -> Meters {
        Meters {
            events: 0,
            lost: 0,
            turns: BTreeMap::new(),
            spawns: 0,
            ends: 0,
            fell_behind: 0,
            append_retries: 0,
            // From one millisecond, which a fork takes, to eight seconds.
            spawn_seconds: Histogram::new(exponential_buckets(0.001, 2.0, 14)),
            starting: BTreeMap::new(),
        }
    }
}

impl Meters {
    pub(crate) fn on_spawn(&mut self, agent: AgentId) {
        self.spawns += 1;
        self.starting.insert(agent, Instant::now());
    }

    pub(crate) fn on_started(&mut self, agent: AgentId) {
        if let Some(begun) = self.starting.remove(&agent) {
            self.spawn_seconds.observe(begun.elapsed().as_secs_f64());
        }
    }

    pub(crate) fn on_note(&mut self, note: &Note) {
        match note {
            Note::TurnEnded { how, .. } => *self.turns.entry(how).or_default() += 1,
            Note::ClientBehind { .. } => self.fell_behind += 1,
            Note::AppendRetried { .. } => self.append_retries += 1,
            Note::SessionFenced { held, .. } => self.lost += *held as u64,
            Note::AgentEnded { agent, .. } => {
                self.ends += 1;
                self.starting.remove(agent);
            }
            _ => {}
        }
    }
}

/// Everything that is known at one moment.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// Where there are agents.
    pub(crate) hub: Option<(Gauges, Meters)>,
    /// Where there is a gateway.
    pub(crate) gateway: Option<gateway::GatewayGauges>,
    /// In a fleet: the hosts that live.
    pub(crate) hosts: Option<Arc<Vec<HostEntry>>>,
    /// On a host that has an archive.
    pub(crate) archive: Option<ArchiveGauges>,
}

impl Snapshot {
    pub(crate) fn new(gauges: Gauges, meters: &Meters) -> Snapshot {
        Snapshot { hub: Some((gauges, meters.clone())), ..Snapshot::default() }
    }
}

/// Asks the loop for its numbers.
#[derive(Debug, Clone)]
pub struct Metrics(mpsc::Sender<Scrape>);

/// Both ends: for the front, and for the loop.
pub(crate) fn channel() -> (Metrics, mpsc::Receiver<Scrape>) {
    let (ask, asked) = mpsc::channel(4);
    (Metrics(ask), asked)
}

impl Metrics {
    /// The page, as Prometheus reads it; `None` when the daemon is ending.
    pub async fn page(&self) -> Option<String> {
        let (answer, answered) = oneshot::channel();
        self.0.send(answer).await.ok()?;
        let snapshot = answered.await.ok()?;
        // Looking at processes reads many small files.
        tokio::task::spawn_blocking(move || page::write(&snapshot)).await.ok()
    }
}

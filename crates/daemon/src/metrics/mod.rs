//! Metrics. A scrape sends a request to the loop, the loop responds with a snapshot, and the
//! handler formats the page. The loop formats no text and reads no process information. In a fleet
//! the metrics collector receives the request and also asks the gateway.

mod fleet;
mod page;

use jackfield_fleet::{HostEntry, gateway};
use jackfield_hub::{AgentId, Gauges, Note};
use jackfield_journal::ArchiveGauges;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use std::{collections::BTreeMap, sync::Arc, time::Instant};
use tokio::sync::{mpsc, oneshot};

/// A request for a snapshot.
pub(crate) type SnapshotRequest = oneshot::Sender<MetricsSnapshot>;

/// Counters of the loop.
#[derive(Debug, Clone)]
pub(crate) struct LoopCounters {
    /// Events that sessions have logged.
    pub(crate) events: u64,
    /// Events that were delivered and could not be logged.
    lost: u64,
    /// Turns by outcome.
    turns: BTreeMap<&'static str, u64>,
    spawns: u64,
    ends: u64,
    fell_behind: u64,
    append_retries: u64,
    spawn_seconds: Histogram,
    starting: BTreeMap<AgentId, Instant>,
}

impl Default for LoopCounters {
    fn default() -> LoopCounters {
        LoopCounters {
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

impl LoopCounters {
    pub(crate) fn on_spawn(&mut self, agent: AgentId) {
        self.spawns += 1;
        self.starting.insert(agent, Instant::now());
    }

    pub(crate) fn on_started(&mut self, agent: AgentId) {
        if let Some(started_at) = self.starting.remove(&agent) {
            self.spawn_seconds.observe(started_at.elapsed().as_secs_f64());
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

/// All values at one moment.
#[derive(Debug, Default)]
pub(crate) struct MetricsSnapshot {
    /// Set on a daemon with a hub.
    pub(crate) hub: Option<(Gauges, LoopCounters)>,
    /// Set on a gateway.
    pub(crate) gateway: Option<gateway::GatewayGauges>,
    /// The live hosts, in a fleet.
    pub(crate) hosts: Option<Arc<Vec<HostEntry>>>,
    /// Set on a host with an archive.
    pub(crate) archive: Option<ArchiveGauges>,
}

impl MetricsSnapshot {
    pub(crate) fn new(gauges: Gauges, counters: &LoopCounters) -> MetricsSnapshot {
        MetricsSnapshot { hub: Some((gauges, counters.clone())), ..MetricsSnapshot::default() }
    }
}

/// Requests snapshots from the loop.
#[derive(Debug, Clone)]
pub struct MetricsSource(mpsc::Sender<SnapshotRequest>);

/// The ends for the web server and for the loop.
pub(crate) fn channel() -> (MetricsSource, mpsc::Receiver<SnapshotRequest>) {
    let (requests_tx, requests) = mpsc::channel(4);
    (MetricsSource(requests_tx), requests)
}

impl MetricsSource {
    /// The page in the `OpenMetrics` format; `None` while the daemon stops.
    pub async fn render_page(&self) -> Option<String> {
        let (request, response) = oneshot::channel();
        self.0.send(request).await.ok()?;
        let snapshot = response.await.ok()?;
        // Reading process information opens many small files.
        tokio::task::spawn_blocking(move || page::render_page(&snapshot)).await.ok()
    }
}

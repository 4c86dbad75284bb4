//! What is counted, and how it gets from the loop to whoever asks: a scrape is a letter to the loop,
//! the answer a snapshot, and the page is written where it is read. The loop writes no text and
//! looks at no process.

mod page;

use crate::effects::Effects;
use crate::routing::{BusGauges, BusNote, WorkerId};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// A question for the numbers of this moment.
pub(crate) type Scrape = oneshot::Sender<Snapshot>;

/// What the loop counts while it runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meters {
    /// By pool.
    starts: BTreeMap<Arc<str>, u64>,
    ends: BTreeMap<Arc<str>, u64>,
    restarts: BTreeMap<Arc<str>, u64>,
    gave_up: BTreeMap<Arc<str>, u64>,
    unhealthy: BTreeMap<Arc<str>, u64>,
    slow_clients: u64,
    reloads: u64,
}

impl Meters {
    pub(crate) fn on_note(&mut self, note: &BusNote) {
        let (by_pool, pool) = match note {
            BusNote::WorkerStarted { pool, .. } => (&mut self.starts, pool),
            BusNote::WorkerEnded { pool, .. } => (&mut self.ends, pool),
            BusNote::Restarting { pool, .. } => (&mut self.restarts, pool),
            BusNote::GaveUp { pool, .. } => (&mut self.gave_up, pool),
            BusNote::Unhealthy { pool, .. } => (&mut self.unhealthy, pool),
            BusNote::ClientSlow { .. } => return self.slow_clients += 1,
            BusNote::Reloaded { .. } => return self.reloads += 1,
            _ => return,
        };
        *by_pool.entry(Arc::clone(pool)).or_default() += 1;
    }
}

/// One worker at one moment.
#[derive(Debug)]
struct Worker {
    id: WorkerId,
    pool: Arc<str>,
    pid: Option<u32>,
    backlog: usize,
}

/// Everything that is known at one moment.
#[derive(Debug)]
pub(crate) struct Snapshot {
    gauges: BusGauges,
    meters: Meters,
    workers: Vec<Worker>,
}

impl Snapshot {
    pub(crate) fn new(gauges: BusGauges, effects: &Effects) -> Snapshot {
        let workers = effects.workers.iter().map(|(id, it)| Worker {
            id: *id,
            pool: Arc::clone(&it.pool),
            pid: it.pid,
            backlog: it.edge.handle.backlog(),
        });
        Snapshot { gauges, meters: effects.meters.clone(), workers: workers.collect() }
    }
}

/// Both ends: for the page, and for the loop.
pub(crate) fn channel() -> (mpsc::Sender<Scrape>, mpsc::Receiver<Scrape>) {
    mpsc::channel(4)
}

/// Opens the address of the page.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Serves the page until the loop is gone.
pub(crate) async fn serve(listener: TcpListener, loops: mpsc::Sender<Scrape>) {
    let routes = Router::new().route("/metrics", get(page)).with_state(loops);
    if let Err(error) = axum::serve(listener, routes).await {
        tracing::error!(%error, "the page of metrics is no longer served");
    }
}

async fn page(State(loops): State<mpsc::Sender<Scrape>>, headers: HeaderMap) -> Response {
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    if !host.is_some_and(is_this_machine) {
        return (StatusCode::MISDIRECTED_REQUEST, "ask for 127.0.0.1\n").into_response();
    }
    let asked = async {
        let (answer, answered) = oneshot::channel();
        loops.send(answer).await.ok()?;
        let snapshot = answered.await.ok()?;
        // Looking at processes reads many small files.
        tokio::task::spawn_blocking(move || page::write(&snapshot)).await.ok()
    };
    let kind = [(header::CONTENT_TYPE, page::CONTENT_TYPE)];
    match asked.await {
        Some(page) => (kind, page).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the bus is ending\n").into_response(),
    }
}

/// A web page cannot give its own name another address and read ours through a browser.
fn is_this_machine(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
    let name = name.map_or(host, |(name, _)| name);
    name == "localhost" || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_this_machine;

    #[test]
    fn only_addresses_are_this_machine_and_no_names_but_one() {
        for host in ["localhost", "localhost:9100", "127.0.0.1:9100", "[::1]:9100", "[::1]"] {
            assert!(is_this_machine(host), "{host}");
        }
        for host in ["", "evil.example", "evil.example:9100", "localhost.evil.example:9100"] {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}

//! Metrics. A scrape sends a request to the loop, the loop responds with a snapshot, and the
//! handler formats the page. The loop formats no text and reads no process information.

mod page;

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

/// A request for a snapshot.
pub(crate) type SnapshotRequest = oneshot::Sender<BusMetricsSnapshot>;

/// Counters that are derived from notes.
#[derive(Debug, Clone, Default)]
pub(crate) struct NoteCounters {
    /// By pool.
    starts: BTreeMap<Arc<str>, u64>,
    ends: BTreeMap<Arc<str>, u64>,
    restarts: BTreeMap<Arc<str>, u64>,
    gave_up: BTreeMap<Arc<str>, u64>,
    unhealthy: BTreeMap<Arc<str>, u64>,
    slow_clients: u64,
    reloads: u64,
}

impl NoteCounters {
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

/// One worker in a snapshot.
#[derive(Debug)]
pub(crate) struct WorkerSample {
    pub(crate) id: WorkerId,
    pub(crate) pool: Arc<str>,
    pub(crate) pid: Option<u32>,
    pub(crate) backlog: usize,
}

/// All values at one moment.
#[derive(Debug)]
pub(crate) struct BusMetricsSnapshot {
    pub(crate) gauges: BusGauges,
    pub(crate) note_counters: NoteCounters,
    pub(crate) workers: Vec<WorkerSample>,
}

/// The ends for the page and for the loop.
pub(crate) fn channel() -> (mpsc::Sender<SnapshotRequest>, mpsc::Receiver<SnapshotRequest>) {
    mpsc::channel(4)
}

/// Binds the address of the page.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Serves the page until the loop has ended.
pub(crate) async fn serve_page(
    listener: TcpListener,
    snapshot_requests: mpsc::Sender<SnapshotRequest>,
) {
    let is_private = listener.local_addr().is_ok_and(|it| it.ip().to_canonical().is_loopback());
    let page = MetricsPage { snapshot_requests, is_private };
    let routes = Router::new().route("/metrics", get(get_page)).with_state(page);
    if let Err(error) = axum::serve(listener, routes).await {
        tracing::error!(%error, "metrics server failed");
    }
}

/// What a request for the page needs.
#[derive(Clone)]
struct MetricsPage {
    snapshot_requests: mpsc::Sender<SnapshotRequest>,
    /// The page is served on loopback, where a web page could reach it by DNS rebinding.
    is_private: bool,
}

async fn get_page(State(page): State<MetricsPage>, headers: HeaderMap) -> Response {
    let MetricsPage { snapshot_requests, is_private } = page;
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    if is_private && !host.is_some_and(is_local_host) {
        return (StatusCode::MISDIRECTED_REQUEST, "use the address 127.0.0.1\n").into_response();
    }
    let render = async {
        let (request, response) = oneshot::channel();
        snapshot_requests.send(request).await.ok()?;
        let snapshot = response.await.ok()?;
        // Reading process information opens many small files.
        tokio::task::spawn_blocking(move || page::render_page(&snapshot)).await.ok()
    };
    let content_type = [(header::CONTENT_TYPE, page::CONTENT_TYPE)];
    match render.await {
        Some(page) => (content_type, page).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the bus is stopping\n").into_response(),
    }
}

/// Refuses other host names, so that a web page cannot read the metrics by DNS rebinding.
fn is_local_host(host: &str) -> bool {
    let name = host.rsplit_once(':').filter(|(_, port)| !port.contains(']'));
    let name = name.map_or(host, |(name, _)| name);
    name == "localhost" || name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_local_host;

    #[test]
    fn only_addresses_and_localhost_are_local() {
        for host in ["localhost", "localhost:9100", "127.0.0.1:9100", "[::1]:9100", "[::1]"] {
            assert!(is_local_host(host), "{host}");
        }
        for host in ["", "evil.example", "evil.example:9100", "localhost.evil.example:9100"] {
            assert!(!is_local_host(host), "{host}");
        }
    }
}

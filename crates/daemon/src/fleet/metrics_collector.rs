//! Collects the metrics of the parts of this daemon: the hub, the gateway, or both.

use crate::metrics::{MetricsSnapshot, SnapshotRequest};
use jackfield_fleet::HostEntry;
use jackfield_journal::StreamArchiver;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

pub(super) struct MetricsCollector {
    pub(super) requests: mpsc::Receiver<SnapshotRequest>,
    pub(super) hub: Option<mpsc::Sender<SnapshotRequest>>,
    pub(super) gateway: Option<mpsc::Sender<jackfield_fleet::gateway_process::GaugesRequest>>,
    pub(super) hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    /// The archiver, if there is an archive.
    pub(super) archiver: Option<StreamArchiver>,
}

impl MetricsCollector {
    /// Runs until no more requests can come.
    pub(super) async fn run(mut self) {
        while let Some(request) = self.requests.recv().await {
            // A part that has ended has no metrics; the others are still reported.
            let hub = request_from(self.hub.as_ref()).await.unwrap_or_default();
            let gateway = request_from(self.gateway.as_ref()).await;
            let hosts = Some(self.hosts.borrow().clone());
            let archive = self.archiver.as_ref().map(StreamArchiver::gauges);
            let _ignored = request.send(MetricsSnapshot { gateway, hosts, archive, ..hub });
        }
    }
}

async fn request_from<T>(sender: Option<&mpsc::Sender<oneshot::Sender<T>>>) -> Option<T> {
    let (response_tx, response) = oneshot::channel();
    sender?.send(response_tx).await.ok()?;
    response.await.ok()
}

//! Collects the numbers of this daemon's parts for whoever asks: it may have a hub, a gateway, or both.

use crate::metrics::{Scrape, Snapshot};
use jackfield_fleet::HostEntry;
use jackfield_journal::Archiver;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot, watch};

pub(super) struct Clerk {
    pub(super) asked: mpsc::Receiver<Scrape>,
    pub(super) hub: Option<mpsc::Sender<Scrape>>,
    pub(super) gateway: Option<mpsc::Sender<jackfield_fleet::gateway_process::Scrape>>,
    pub(super) hosts: watch::Receiver<Arc<Vec<HostEntry>>>,
    /// Who fills the archive, if there is one.
    pub(super) curator: Option<Archiver>,
}

impl Clerk {
    /// Until nobody asks any more.
    pub(super) async fn run(mut self) {
        while let Some(scrape) = self.asked.recv().await {
            // A part that has ended has no numbers; the others still do.
            let hub = ask(self.hub.as_ref()).await.unwrap_or_default();
            let gateway = ask(self.gateway.as_ref()).await;
            let hosts = Some(self.hosts.borrow().clone());
            let archive = self.curator.as_ref().map(Archiver::gauges);
            let _unheard = scrape.send(Snapshot { gateway, hosts, archive, ..hub });
        }
    }
}

async fn ask<T>(part: Option<&mpsc::Sender<oneshot::Sender<T>>>) -> Option<T> {
    let (answer, answered) = oneshot::channel();
    part?.send(answer).await.ok()?;
    answered.await.ok()
}

//! Ends everything when the lease is lost and other hosts may consider this one dead, without
//! waiting for requests or servers.

use super::{FleetCall, watchdog::HostWatchdog};
use jackfield_fleet::LeaseEvent;
use std::time::Duration;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::MissedTickBehavior,
};

/// Repeated, since a connected client may have started something.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct LeaseLossHandler {
    pub(super) lease_events: mpsc::Receiver<LeaseEvent>,
    pub(super) calls: mpsc::Sender<FleetCall>,
    pub(super) watchdog: HostWatchdog,
    /// While it is true, nothing is accepted, and whatever starts is ended.
    pub(super) lease_lost: watch::Sender<bool>,
}

impl LeaseLossHandler {
    /// Runs as long as there is a lease.
    pub(super) async fn run(mut self) {
        let mut retry = tokio::time::interval(RETRY_INTERVAL);
        retry.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let lease_lost = *self.lease_lost.borrow();
            tokio::select! {
                biased;
                event = self.lease_events.recv() => match event {
                    Some(LeaseEvent::Lost) => {
                        tracing::error!("lost the lease of this host; ending every agent");
                        self.lease_lost.send_replace(true);
                        self.end_all().await;
                        self.watchdog.disarm();
                    }
                    Some(LeaseEvent::Regained) => {
                        tracing::info!("regained the lease of this host");
                        self.lease_lost.send_replace(false);
                    }
                    None => return,
                },
                _ = retry.tick(), if lease_lost => self.end_all().await,
            }
        }
    }

    /// Returns when everything has ended, or the loop has.
    async fn end_all(&self) {
        let (response_tx, done) = oneshot::channel();
        let _ignored = self.calls.send(FleetCall::StopEverything(response_tx)).await;
        let _ignored = done.await;
    }
}

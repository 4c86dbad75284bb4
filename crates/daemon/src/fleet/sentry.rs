//! When others may think us dead, everything here is ended before anything else is done: no question and no
//! server is waited for.

use super::{Call, fuse::Fuse};
use jackfield_fleet::LeaseEvent;
use std::time::Duration;
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::MissedTickBehavior,
};

/// A client that is still connected may have begun something.
const AGAIN: Duration = Duration::from_secs(1);

pub(super) struct Sentry {
    pub(super) leased: mpsc::Receiver<LeaseEvent>,
    pub(super) calls: mpsc::Sender<Call>,
    pub(super) fuse: Fuse,
    /// Nothing is taken meanwhile, and nothing that begins here lives on.
    pub(super) cut_off: watch::Sender<bool>,
}

impl Sentry {
    /// For as long as there is a lease.
    pub(super) async fn run(mut self) {
        let mut again = tokio::time::interval(AGAIN);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let cut_off = *self.cut_off.borrow();
            tokio::select! {
                biased;
                event = self.leased.recv() => match event {
                    Some(LeaseEvent::Lost) => {
                        tracing::error!("cut off from the fleet: every agent is ended");
                        self.cut_off.send_replace(true);
                        self.end_all().await;
                        self.fuse.put_out();
                    }
                    Some(LeaseEvent::Regained) => {
                        tracing::info!("the fleet knows of this host again");
                        self.cut_off.send_replace(false);
                    }
                    None => return,
                },
                _ = again.tick(), if cut_off => self.end_all().await,
            }
        }
    }

    /// It is done when this returns, or the loop has ended.
    async fn end_all(&self) {
        let (tell, done) = oneshot::channel();
        let _ended = self.calls.send(Call::CutOff(tell)).await;
        let _ended = done.await;
    }
}

//! The watchdog: the kernel kills a host that hangs before other hosts adopt its sessions. Its agents do
//! not hang with it, and a hanging daemon cannot end them; their guards do when the daemon is gone.
//!
//! A daemon hangs when it is stopped, when it is deadlocked, when it waits for swapped memory, and when
//! its machine sleeps.

use jackfield_agents::KillTimer;
use std::{io, sync::mpsc, thread, time::Duration};
use tokio::sync::watch;

/// How long guards need to end everything after the daemon is gone.
const GUARD_SWEEP: Duration = Duration::from_millis(1_600);
/// Disarms a timer.
const DISARMED: Duration = Duration::ZERO;

/// Kills this process at a deadline unless it is extended. Clones share the timer, which is
/// disarmed with the last one.
#[derive(Clone)]
pub(super) struct HostWatchdog {
    /// Sends deadlines to the thread that owns the timer, which is not `Send`.
    deadlines: mpsc::Sender<Duration>,
}

impl HostWatchdog {
    /// Creates a disarmed watchdog. Fails on systems without such a timer.
    pub(super) fn new() -> io::Result<HostWatchdog> {
        let (deadlines, received) = mpsc::channel();
        let (result_tx, result) = mpsc::sync_channel(1);
        let own_timer = move || match KillTimer::new() {
            Ok(mut timer) => {
                let _ignored = result_tx.send(Ok(()));
                for deadline in received {
                    timer.set_deadline(deadline);
                }
            }
            Err(error) => _ = result_tx.send(Err(error)),
        };
        thread::Builder::new().name("watchdog".to_owned()).spawn(own_timer)?;
        result.recv().expect("the thread reports whether it has a timer")?;
        Ok(HostWatchdog { deadlines })
    }

    /// Extends the deadline each time the lease is extended, until the lease ends. Both clocks
    /// include the time in which the machine sleeps.
    pub(super) async fn follow_lease(self, mut lease: watch::Receiver<Duration>) {
        loop {
            let end = *lease.borrow_and_update();
            self.send_deadline(end.saturating_sub(GUARD_SWEEP));
            if lease.changed().await.is_err() {
                return self.disarm();
            }
        }
    }

    /// Disarms the watchdog: no agents are left that would have to end.
    pub(super) fn disarm(&self) {
        self.send_deadline(DISARMED);
    }

    fn send_deadline(&self, deadline: Duration) {
        self.deadlines.send(deadline).expect("the thread runs as long as there is a sender");
    }
}

//! Stopping: nothing new, what is asked is answered, then the workers end, then the clients go.

use super::{Bus, BusNote, BusOutput, Timer, WorkerId, calls::Peer};
use jackfield_hub::ConnId;
use jackfield_protocol::{Fault, Frame};

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopping {
    /// What is asked is still answered.
    Draining,
    /// The workers end.
    Ending,
    Stopped,
}

impl Bus {
    pub(super) fn on_stop(&mut self) {
        if self.stopping.is_some() {
            return self.end_workers(true);
        }
        self.stopping = Some(Stopping::Draining);
        self.note(BusNote::Draining { pending: self.pending });
        self.timers.set(self.now.plus(self.limits.drain_ms), Timer::Drain);
        self.stop_if_drained();
    }

    pub(super) fn on_drained_long_enough(&mut self) {
        if self.stopping == Some(Stopping::Draining) {
            self.end_workers(false);
        }
    }

    pub(super) fn stop_if_drained(&mut self) {
        match self.stopping {
            Some(Stopping::Draining) if self.pending == 0 => self.end_workers(false),
            Some(Stopping::Ending) if self.workers.is_empty() => {
                self.stopping = Some(Stopping::Stopped);
                let conns: Vec<ConnId> = self.clients.keys().copied().collect();
                for conn in conns {
                    self.hang_up(conn);
                }
                self.outputs.push_back(BusOutput::Stopped);
            }
            _ => {}
        }
    }

    fn end_workers(&mut self, now: bool) {
        if self.stopping == Some(Stopping::Stopped) {
            return;
        }
        self.stopping = Some(Stopping::Ending);
        let workers: Vec<WorkerId> = self.workers.keys().copied().collect();
        for worker in workers {
            self.refuse_pending(worker);
            self.stop_worker(worker, now);
        }
        self.stop_if_drained();
    }

    /// It had its time.
    fn refuse_pending(&mut self, worker: WorkerId) {
        let it = self.workers.get_mut(&worker).expect("the caller found it");
        for (ours, call) in it.calls.take_owed() {
            let Peer::Client(conn) = call.by else { continue };
            self.pending -= 1;
            let Some(client) = self.clients.get_mut(&conn) else { continue };
            client.calls.settled(&call.id, ours);
            self.say(conn, &Frame::error_for(&call.id, &Fault::Stopping));
        }
    }
}

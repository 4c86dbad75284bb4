//! Stopping: no new requests, then pending requests are answered, workers stopped, clients closed.

use super::{Bus, BusNote, BusOutput, Timer, WorkerId, pending_calls::CallPeer};
use jackfield_hub::ConnId;
use jackfield_protocol::{Fault, Frame};

/// The phase of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopPhase {
    /// Pending requests are still answered.
    Draining,
    /// The workers are stopping.
    Ending,
    Stopped,
}

impl Bus {
    pub(super) fn on_stop(&mut self) {
        if self.stopping.is_some() {
            return self.end_workers(true);
        }
        self.stopping = Some(StopPhase::Draining);
        self.note(BusNote::Draining { pending: self.pending });
        self.timers.set(self.now.plus(self.limits.drain_ms), Timer::Drain);
        self.advance_stop();
    }

    pub(super) fn expire_drain(&mut self) {
        if self.stopping == Some(StopPhase::Draining) {
            self.end_workers(false);
        }
    }

    pub(super) fn advance_stop(&mut self) {
        match self.stopping {
            Some(StopPhase::Draining) if self.pending == 0 => self.end_workers(false),
            Some(StopPhase::Ending) if self.workers.is_empty() => {
                self.stopping = Some(StopPhase::Stopped);
                let conns: Vec<ConnId> = self.clients.keys().copied().collect();
                for conn in conns {
                    self.close_client(conn);
                }
                self.outputs.push_back(BusOutput::Stopped);
            }
            _ => {}
        }
    }

    fn end_workers(&mut self, now: bool) {
        if self.stopping == Some(StopPhase::Stopped) {
            return;
        }
        self.stopping = Some(StopPhase::Ending);
        let workers: Vec<WorkerId> = self.workers.keys().copied().collect();
        for worker in workers {
            self.refuse_pending(worker);
            self.stop_worker(worker, now);
        }
        self.advance_stop();
    }

    /// Refuses the pending requests of a worker.
    fn refuse_pending(&mut self, worker: WorkerId) {
        let it = self.workers.get_mut(&worker).expect("the caller found it");
        for (bus_id, call) in it.pending_calls.take_all_received() {
            let CallPeer::Client(conn) = call.caller else { continue };
            self.pending -= 1;
            let Some(client) = self.clients.get_mut(&conn) else { continue };
            client.pending_calls.remove_sent(&call.id, bus_id);
            self.send_own_frame(conn, &Frame::error_for(&call.id, &Fault::Stopping));
        }
    }
}

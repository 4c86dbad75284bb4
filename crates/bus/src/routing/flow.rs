//! Flow control: a client that does not read is not read, and a worker that does not read slows its
//! clients. `slow_clients` decides which workers wait for a slow client, and for how long.

use super::{BACKLOG_LIMITS, Bus, BusOutput, UNSENT_BYTES_MAX, WorkerId, client::Client};
use bytes::Bytes;
use jackfield_hub::ConnId;
use jackfield_protocol::{Fault, Frame};

impl Bus {
    /// Sends a frame that the bus created.
    pub(super) fn send_own_frame(&mut self, conn: ConnId, frame: &Frame) {
        self.send_to_client(conn, frame.bytes().clone(), None);
    }

    pub(super) fn send_to_client(&mut self, conn: ConnId, text: Bytes, from: Option<WorkerId>) {
        let Some(client) = self.clients.get_mut(&conn).filter(|it| !it.closing) else { return };
        self.counters.count_sent(text.len());
        let unwritten = client.outbox.bytes() + text.len();
        if client.outbox.bytes() == 0 {
            client.last_read_at = self.now;
        }
        client.outbox.resize(unwritten);
        let is_over =
            self.limits.outbox_bytes_max < unwritten || self.outboxes.is_exceeded_by(unwritten);
        self.outputs.push_back(BusOutput::SendToClient { conn, text });
        if self.limits.outbox_bytes_max / 2 < unwritten {
            self.update_client_pause(conn);
        }
        if is_over {
            self.hold_sender(conn, from);
        }
    }

    pub(super) fn on_client_wrote(&mut self, conn: ConnId, bytes: usize) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let unwritten = client.outbox.bytes().saturating_sub(bytes);
        client.outbox.resize(unwritten);
        client.last_read_at = self.now;
        let outbox_threshold = self.limits.outbox_bytes_max / 2;
        if !client.held.is_empty()
            && unwritten < outbox_threshold
            && !self.outboxes.is_exceeded_by(unwritten)
        {
            self.release_workers_of(conn);
        }
        self.update_client_pause(conn);
    }

    pub(super) fn send_to_worker(&mut self, worker: WorkerId, text: Bytes, from: Option<ConnId>) {
        let Some(it) = self.workers.get_mut(&worker).filter(|it| !it.stopping) else { return };
        self.counters.count_sent(text.len());
        let bytes = text.len() + 1;
        it.backlog.resize(it.backlog.bytes() + bytes);
        match it.sent.back_mut() {
            Some((conn, sum)) if *conn == from => *sum += bytes,
            _ => it.sent.push_back((from, bytes)),
        }
        self.outputs.push_back(BusOutput::SendToWorker { worker, text });
        let Some(conn) = from else { return };
        if let Some(client) = self.clients.get_mut(&conn) {
            client.unwritten_to_workers += bytes;
            if UNSENT_BYTES_MAX < client.unwritten_to_workers {
                self.update_client_pause(conn);
            }
        }
    }

    pub(super) fn on_worker_wrote(&mut self, worker: WorkerId, bytes: usize) {
        let Some(it) = self.workers.get_mut(&worker) else { return };
        it.backlog.resize(it.backlog.bytes().saturating_sub(bytes));
        let mut left = bytes;
        while 0 < left
            && let Some(it) = self.workers.get_mut(&worker)
            && let Some((conn, sum)) = it.sent.front_mut()
        {
            let (conn, written) = (*conn, left.min(*sum));
            left -= written;
            *sum -= written;
            if *sum == 0 {
                it.sent.pop_front();
            }
            if let Some(conn) = conn {
                self.on_written(conn, written);
            }
        }
    }

    /// These bytes of the client were written, or never will be.
    pub(super) fn on_written(&mut self, conn: ConnId, bytes: usize) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.unwritten_to_workers -= bytes;
        if client.paused {
            self.update_client_pause(conn);
        }
    }

    /// Pauses or resumes reading the client, by the bytes that are not yet written to it and to its
    /// workers.
    fn update_client_pause(&mut self, conn: ConnId) {
        let outbox_threshold = self.limits.outbox_bytes_max / 2;
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let Client { paused, outbox, unwritten_to_workers, .. } = client;
        let unwritten = outbox.bytes();
        if !*paused && (outbox_threshold < unwritten || UNSENT_BYTES_MAX < *unwritten_to_workers) {
            *paused = true;
            self.outputs.push_back(BusOutput::PauseClient { conn });
        } else if *paused
            && unwritten <= outbox_threshold / 2
            && *unwritten_to_workers <= UNSENT_BYTES_MAX / 2
        {
            *paused = false;
            self.outputs.push_back(BusOutput::ResumeClient { conn });
        }
    }

    /// Refuses messages while too many bytes are not yet written to the worker.
    pub(super) fn check_backlog(&self, worker: WorkerId) -> Result<(), Fault> {
        let waiting = self.workers[&worker].backlog.bytes();
        if waiting <= BACKLOG_LIMITS.own_max && !self.backlogs.is_exceeded_by(waiting) {
            return Ok(());
        }
        let what = format!("{waiting} bytes are not yet read by the worker; try again later");
        Err(Fault::Overloaded { what })
    }
}

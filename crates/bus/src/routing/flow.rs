//! Flow control: a client that does not read is not read, and a worker that does not read slows the clients
//! that speak to it. `slow` has which workers wait for a client that does not read, and for how long.

use super::{BACKLOG, Bus, BusOutput, UNTAKEN_BYTES_MAX, WorkerId, client::Client};
use bytes::Bytes;
use jackfield_hub::ConnId;
use jackfield_protocol::{Fault, Frame};

impl Bus {
    /// Something of our own.
    pub(super) fn say(&mut self, conn: ConnId, frame: &Frame) {
        self.tell_client(conn, frame.bytes().clone(), None);
    }

    pub(super) fn tell_client(&mut self, conn: ConnId, text: Bytes, from: Option<WorkerId>) {
        let Some(client) = self.clients.get_mut(&conn).filter(|it| !it.closing) else { return };
        self.counters.sent(text.len());
        let unwritten = client.outbox.bytes() + text.len();
        if client.outbox.bytes() == 0 {
            client.took = self.now;
        }
        client.outbox.resize(unwritten);
        let over =
            self.limits.outbox_bytes_max < unwritten || self.outboxes.is_exceeded_by(unwritten);
        self.outputs.push_back(BusOutput::ToClient { conn, text });
        if self.limits.outbox_bytes_max / 2 < unwritten {
            self.pace(conn);
        }
        if over {
            self.hold_back(conn, from);
        }
    }

    pub(super) fn on_client_wrote(&mut self, conn: ConnId, bytes: usize) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let unwritten = client.outbox.bytes().saturating_sub(bytes);
        client.outbox.resize(unwritten);
        client.took = self.now;
        let low = self.limits.outbox_bytes_max / 2;
        if !client.held.is_empty() && unwritten < low && !self.outboxes.is_exceeded_by(unwritten) {
            self.let_go_of(conn);
        }
        self.pace(conn);
    }

    pub(super) fn tell_worker(&mut self, worker: WorkerId, text: Bytes, from: Option<ConnId>) {
        let Some(it) = self.workers.get_mut(&worker).filter(|it| !it.stopping) else { return };
        self.counters.sent(text.len());
        let bytes = text.len() + 1;
        it.backlog.resize(it.backlog.bytes() + bytes);
        match it.sent.back_mut() {
            Some((conn, sum)) if *conn == from => *sum += bytes,
            _ => it.sent.push_back((from, bytes)),
        }
        self.outputs.push_back(BusOutput::ToWorker { worker, text });
        let Some(conn) = from else { return };
        if let Some(client) = self.clients.get_mut(&conn) {
            client.untaken += bytes;
            if UNTAKEN_BYTES_MAX < client.untaken {
                self.pace(conn);
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
            let (conn, taken) = (*conn, left.min(*sum));
            left -= taken;
            *sum -= taken;
            if *sum == 0 {
                it.sent.pop_front();
            }
            if let Some(conn) = conn {
                self.taken(conn, taken);
            }
        }
    }

    /// So many bytes of this client have left, or never will.
    pub(super) fn taken(&mut self, conn: ConnId, bytes: usize) {
        let Some(client) = self.clients.get_mut(&conn) else { return };
        client.untaken -= bytes;
        if client.paused {
            self.pace(conn);
        }
    }

    /// Whether this client is read, by what it has not taken and what was not taken of it.
    fn pace(&mut self, conn: ConnId) {
        let half = self.limits.outbox_bytes_max / 2;
        let Some(client) = self.clients.get_mut(&conn) else { return };
        let Client { paused, outbox, untaken, .. } = client;
        let unwritten = outbox.bytes();
        if !*paused && (half < unwritten || UNTAKEN_BYTES_MAX < *untaken) {
            *paused = true;
            self.outputs.push_back(BusOutput::PauseClient { conn });
        } else if *paused && unwritten <= half / 2 && *untaken <= UNTAKEN_BYTES_MAX / 2 {
            *paused = false;
            self.outputs.push_back(BusOutput::ResumeClient { conn });
        }
    }

    /// All clients together are more than a worker can take.
    pub(super) fn check_backlog(&self, worker: WorkerId) -> Result<(), Fault> {
        let waiting = self.workers[&worker].backlog.bytes();
        if waiting <= BACKLOG.own_max && !self.backlogs.is_exceeded_by(waiting) {
            return Ok(());
        }
        let what = format!("{waiting} bytes wait for the worker, which does not read");
        Err(Fault::Overloaded { what })
    }
}

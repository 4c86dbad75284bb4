//! Clients: their connections, and the cleanup when one disconnects.

mod frames;
mod outbox;
mod slow_clients;

use super::{
    context::BusContext,
    ids::WorkerId,
    output::{BusNote, BusOutput, MessageSender},
    parts::BusParts,
    tables::{CallPeer, PendingCalls},
    worker::Worker,
};
use bytes::Bytes;
use jackfield_hub::{
    ConnId, Time,
    budget::{ByteCharge, ByteOwner},
};
use jackfield_protocol::{Fault, Frame};
use slow_clients::HeldWorkers;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Clients {
    by_id: BTreeMap<ConnId, Client>,
}

#[derive(Debug)]
pub(super) struct Client {
    conn: ConnId,
    /// Bytes that were sent to it and are not yet written, and when it last read some of them.
    outbox: ByteCharge,
    last_read_at: Time,
    /// Bytes of the client that are not yet written to workers.
    unwritten_to_workers: usize,
    /// Its socket is not read at the moment.
    paused: bool,
    /// Workers that wait until it has read.
    held: HeldWorkers,
    /// It has closed its sending side.
    finished: bool,
    /// The bus is closing it; further frames are ignored.
    closing: bool,
    /// Number of messages that could not be routed.
    unrouted: u64,
}

impl Clients {
    pub(super) fn get(&self, conn: ConnId) -> Option<&Client> {
        self.by_id.get(&conn)
    }

    pub(super) fn get_mut(&mut self, conn: ConnId) -> Option<&mut Client> {
        self.by_id.get_mut(&conn)
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn on_client_opened(&mut self, cx: &mut BusContext, conn: ConnId) {
        cx.count_client_opened();
        assert!(!self.by_id.contains_key(&conn), "a conn id is used once");
        let open = self.by_id.len();
        let client = self.by_id.entry(conn).or_insert(Client::new(cx, conn));
        if cx.limits().clients_max <= open {
            let what = format!("{open} clients are connected, which is the limit");
            client.send_own_frame(cx, &Frame::error_for("null", &Fault::Overloaded { what }));
            client.close(cx);
        } else if cx.is_stopping() {
            client.close(cx);
        }
    }

    /// Answers a line that is not a JSON-RPC message. The connection stays open.
    pub(super) fn on_invalid_frame(&mut self, cx: &mut BusContext, conn: ConnId, fault: &Fault) {
        cx.count_refused();
        if let Some(client) = self.by_id.get_mut(&conn) {
            client.send_own_frame(cx, &Frame::error_for(fault.request_id(), fault));
        }
    }

    pub(super) fn on_client_gone(&mut self, parts: &mut BusParts, conn: ConnId) {
        let Some(mut client) = self.by_id.remove(&conn) else { return };
        parts.cx.count_client_closed();
        client.refuse_worker_requests(parts);
        client.release_workers(parts);
        let BusParts { cx, workers, tables, .. } = parts;
        // The responses to its requests will be discarded.
        while let Some((callee, _, call)) = tables.calls.take_next_sent(CallPeer::Client(conn)) {
            let CallPeer::Worker(id) = callee else { continue };
            let Some(worker) = workers.get_mut(id) else { continue };
            worker.on_call_taken(&call);
            worker.drop_deferred_updates(cx);
            workers.stop_if_retired(cx, tables, id);
        }
        for key in tables.sessions.take_of_client(conn) {
            if let Some(worker) = tables.sessions.release_session(conn, key) {
                workers.stop_if_retired(cx, tables, worker);
            }
        }
        tables.outer_ids.remove_client(conn);
        for worker in tables.bindings.unbind_client(conn) {
            workers.stop_if_retired(cx, tables, worker);
        }
    }

    /// Sends a message of a worker.
    pub(super) fn send_from_worker(
        &mut self,
        parts: &mut BusParts,
        conn: ConnId,
        worker: WorkerId,
        text: Bytes,
    ) {
        if let Some(client) = self.by_id.get_mut(&conn) {
            client.send_from_worker(parts, worker, text);
        }
    }

    /// The next bytes for this worker were written, or never will be.
    pub(super) fn on_written_to_worker(
        &mut self,
        cx: &mut BusContext,
        worker: &mut Worker,
        bytes: usize,
    ) {
        let mut left = bytes;
        while let Some((sender, written)) = worker.take_written(&mut left) {
            if let Some(client) = sender.and_then(|it| self.by_id.get_mut(&it)) {
                client.on_written_to_worker(cx, written);
            }
        }
    }

    /// A worker that clients held has ended.
    pub(super) fn remove_held_worker(&mut self, worker: WorkerId) {
        self.by_id.values_mut().for_each(|it| it.held.remove_worker(worker));
    }

    pub(super) fn close_all(&mut self, cx: &mut BusContext) {
        self.by_id.values_mut().for_each(|it| it.close(cx));
    }
}

impl Client {
    fn new(cx: &BusContext, conn: ConnId) -> Client {
        Client {
            conn,
            outbox: cx.outboxes().charge_unchecked(&ByteOwner::default(), 0),
            last_read_at: cx.now(),
            unwritten_to_workers: 0,
            paused: false,
            held: HeldWorkers::default(),
            finished: false,
            closing: false,
            unrouted: 0,
        }
    }

    /// Whether it can answer a request.
    pub(super) fn can_answer(&self) -> bool {
        !self.finished && !self.closing
    }

    /// The client has closed its sending side: it still gets its responses, but cannot answer
    /// requests.
    pub(super) fn on_finished(&mut self, parts: &mut BusParts) {
        self.finished = true;
        self.refuse_worker_requests(parts);
        self.close_if_finished(&mut parts.cx, &parts.tables.calls);
    }

    /// Closes a client that has closed its sending side and has all its responses.
    pub(super) fn close_if_finished(&mut self, cx: &mut BusContext, calls: &PendingCalls) {
        if self.finished && !calls.has_sent(CallPeer::Client(self.conn)) {
            self.close(cx);
        }
    }

    fn close(&mut self, cx: &mut BusContext) {
        if !self.closing {
            self.closing = true;
            cx.push_output(BusOutput::CloseClient { conn: self.conn });
        }
    }

    /// Refuses the requests of workers that the client did not answer.
    fn refuse_worker_requests(&mut self, parts: &mut BusParts) {
        let BusParts { cx, workers, tables, .. } = parts;
        while let Some(call) = tables.calls.take_next_received(CallPeer::Client(self.conn)) {
            let CallPeer::Worker(worker) = call.caller else { continue };
            let Some(worker) = workers.get_mut(worker) else { continue };
            let fault =
                Fault::NoClient { why: "the client disconnected before it answered".to_owned() };
            worker.send_own_frame(cx, Frame::error_for(&call.id, &fault));
        }
    }

    /// Answers a request that cannot be routed.
    fn refuse_request(&mut self, cx: &mut BusContext, frame: &Frame, fault: &Fault) {
        let id = frame.id().expect("a request has an id");
        self.send_own_frame(cx, &Frame::error_for(id, fault));
        self.report_unrouted(cx, frame, fault);
    }

    /// Logged at powers of two, so that one client cannot fill the log.
    fn report_unrouted(&mut self, cx: &mut BusContext, frame: &Frame, fault: &Fault) {
        cx.count_refused();
        self.unrouted += 1;
        if self.unrouted.is_power_of_two() {
            let method = frame.method().unwrap_or_default().into_owned();
            let from = MessageSender::Client(self.conn);
            cx.push_note(BusNote::Unrouted { from, method, reason: fault.to_string() });
        }
    }
}

//! Frames from clients.

use super::{
    super::{
        context::BusContext,
        methods,
        parts::BusParts,
        tables::{CallKind, CallPeer, PendingCall},
        worker::Worker,
    },
    Client,
};
use bytes::Bytes;
use jackfield_protocol::{Fault, Frame, Kind, Splice, is_planted};

impl Client {
    pub(in super::super) fn on_frame(&mut self, parts: &mut BusParts, frame: &Frame) {
        if self.closing {
            return;
        }
        parts.cx.count_received(frame);
        match frame.kind() {
            Kind::Request => match self.relay_request(parts, frame) {
                Ok(()) => {}
                Err(fault) => self.refuse_request(&mut parts.cx, frame, &fault),
            },
            Kind::Notification if methods::cancels_request(frame) => {
                self.relay_cancellation(parts, frame);
            }
            Kind::Notification => self.relay_notification(parts, frame),
            Kind::Response => self.relay_response(parts, frame),
        }
    }

    fn relay_request(&mut self, parts: &mut BusParts, frame: &Frame) -> Result<(), Fault> {
        let BusParts { cx, workers, pools, tables } = parts;
        let pending = tables.calls.pending_count();
        if cx.limits().pending_max <= pending {
            let what = format!("{pending} requests are pending, which is the limit");
            return Err(Fault::Overloaded { what });
        }
        let worker = pools.route_message(cx, workers, tables, self.conn, frame)?;
        worker.check_backlog(cx)?;
        let kind = call_kind(frame);
        worker.on_call_added(&kind);
        let id = frame.id().expect("a request has an id").into();
        let (frame, outer_id) = worker.remove_outer_id(tables, self.conn, frame);
        let call = PendingCall { caller: CallPeer::Client(self.conn), id, kind, outer_id };
        let bus_id = tables.calls.add_call(CallPeer::Worker(worker.id()), call);
        let text = if is_planted("bus-keeps-client-request-id") {
            frame.bytes().clone()
        } else {
            frame.with_id(&bus_id.to_string()).into_bytes()
        };
        self.send_to_worker(cx, worker, text);
        Ok(())
    }

    /// Without effect if the request was already answered.
    fn relay_cancellation(&mut self, parts: &mut BusParts, frame: &Frame) {
        let caller = CallPeer::Client(self.conn);
        let callee = frame.request_id().and_then(|id| parts.tables.calls.find_sent(caller, id));
        let Some((CallPeer::Worker(worker), bus_id)) = callee else { return };
        let Some(worker) = parts.workers.get_mut(worker) else { return };
        let bus_id = bus_id.to_string();
        let splice = Splice { request_id: Some(&bus_id), ..Splice::default() };
        self.send_to_worker(&mut parts.cx, worker, frame.spliced(splice).into_bytes());
    }

    fn relay_notification(&mut self, parts: &mut BusParts, frame: &Frame) {
        let BusParts { cx, workers, pools, tables } = parts;
        let worker = pools.route_message(cx, workers, tables, self.conn, frame);
        match worker.and_then(|it| it.check_backlog(cx).map(|()| it)) {
            Ok(worker) => {
                let (frame, _) = worker.remove_outer_id(tables, self.conn, frame);
                self.send_to_worker(cx, worker, frame.bytes().clone());
            }
            Err(fault) => self.report_unrouted(cx, frame, &fault),
        }
    }

    fn relay_response(&mut self, parts: &mut BusParts, frame: &Frame) {
        let BusParts { cx, workers, tables, .. } = parts;
        let call = tables.calls.take_answered(CallPeer::Client(self.conn), frame);
        let Some(PendingCall { caller: CallPeer::Worker(worker), id, .. }) = call else {
            return cx.count_stray_response();
        };
        if let Some(worker) = workers.get_mut(worker) {
            let (frame, _) = worker.remove_outer_id(tables, self.conn, frame);
            self.send_to_worker(cx, worker, frame.with_id(&id).into_bytes());
        }
    }

    fn send_to_worker(&mut self, cx: &mut BusContext, worker: &mut Worker, text: Bytes) {
        let bytes = worker.send_text(cx, text, Some(self.conn));
        self.on_queued_to_worker(cx, bytes);
    }
}

/// What the response to a request of a client means to the bus.
fn call_kind(frame: &Frame) -> CallKind {
    if methods::opens_session(frame) {
        return CallKind::Opens;
    }
    match frame.session_id() {
        Some(id) if methods::closes_session(frame) => CallKind::Closes(id.as_ref().into()),
        _ => CallKind::Plain,
    }
}

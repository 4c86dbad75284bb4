//! Inputs from workers that concern clients too: frames, written bytes, and the end of a worker.

use super::{
    Bus,
    client::Client,
    ids::WorkerId,
    methods,
    output::BusNote,
    parts::BusParts,
    tables::{CallKind, CallPeer, PendingCall, SessionRoute},
    worker::MessageRecipients,
};
use jackfield_hub::{ConnId, Exit};
use jackfield_protocol::acp::Method;
use jackfield_protocol::{Fault, Frame, Kind, Splice, is_planted};
use std::sync::Arc;

impl Bus {
    pub(super) fn on_worker_frame(&mut self, worker: WorkerId, frame: &Frame) {
        let Some(it) = self.parts.workers.get_mut(worker) else { return };
        it.on_frame(&self.parts.cx);
        self.parts.cx.count_received(frame);
        match frame.kind() {
            Kind::Response => self.on_worker_response(worker, frame),
            Kind::Notification if methods::cancels_request(frame) => {
                self.forward_cancellation(worker, frame);
            }
            Kind::Notification => self.forward_notification(worker, frame),
            Kind::Request => match self.forward_request(worker, frame) {
                Ok(()) => {}
                Err(why) => self.refuse_worker_request(worker, frame, why),
            },
        }
    }

    fn on_worker_response(&mut self, worker: WorkerId, frame: &Frame) {
        let BusParts { cx, workers, tables, .. } = &mut self.parts;
        let Some(call) = tables.calls.take_answered(CallPeer::Worker(worker), frame) else {
            // Often the response to a client that has disconnected.
            return cx.count_stray_response();
        };
        if let Some(it) = workers.get_mut(worker) {
            it.on_call_taken(&call);
        }
        let CallPeer::Client(conn) = call.caller else {
            return workers.stop_if_retired(cx, tables, worker);
        };
        self.forward_response(worker, conn, frame, &call);
        let BusParts { cx, workers, tables, .. } = &mut self.parts;
        workers.stop_if_retired(cx, tables, worker);
        self.advance_stop();
    }

    /// Sends a response to the client that sent the request.
    fn forward_response(
        &mut self,
        worker: WorkerId,
        conn: ConnId,
        frame: &Frame,
        call: &PendingCall,
    ) {
        match self.apply_response(worker, conn, frame, call) {
            Ok(()) => {
                let response = frame.with_id(&call.id);
                let text = match &call.outer_id {
                    Some(outer) => response.with_outer_session_id(outer),
                    None => response,
                }
                .into_bytes();
                self.clients.send_from_worker(&mut self.parts, conn, worker, text);
            }
            Err(fault) => {
                if let Some(client) = self.clients.get_mut(conn) {
                    client.send_own_frame(&mut self.parts.cx, &Frame::error_for(&call.id, &fault));
                }
            }
        }
        let BusParts { cx, workers, tables, .. } = &mut self.parts;
        if let Some(it) = workers.get_mut(worker) {
            it.drop_deferred_updates(cx);
        }
        if let Some(client) = self.clients.get_mut(conn) {
            client.close_if_finished(cx, &tables.calls);
        }
    }

    /// Updates the sessions from a response.
    fn apply_response(
        &mut self,
        worker: WorkerId,
        conn: ConnId,
        frame: &Frame,
        call: &PendingCall,
    ) -> Result<(), Fault> {
        let BusParts { cx, workers, tables, .. } = &mut self.parts;
        let Some(it) = workers.get(worker) else { return Ok(()) };
        let (scope, sessions) = (it.scope(), &mut tables.sessions);
        if let CallKind::Closes(id) = &call.kind
            && frame.result().is_some()
        {
            sessions.remove_session(scope, id);
            tables.outer_ids.remove_session(scope, id);
        }
        let Some(id) = frame.session_id() else { return Ok(()) };
        let other = sessions.find_route(scope, &id).map(SessionRoute::worker);
        if other.is_some_and(|it| it != worker && workers.is_alive(it)) {
            let why = format!(
                "the worker chose the session id `{id}`, which another worker uses: give \
                 the pool one instance, or `\"affinity\": \"connection\"`"
            );
            return Err(Fault::Internal { why });
        }
        sessions.reserve_sessions(scope, [Some(&id), None], cx.limits().sessions_max)?;
        sessions.assign_session(scope, &id, worker, conn);
        if let Some(outer) = &call.outer_id {
            tables.outer_ids.set_outer_id(conn, scope, &id, outer);
        }
        if !is_planted("bus-drops-early-updates") {
            self.send_deferred_updates(worker, &id);
        }
        Ok(())
    }

    /// The session has a name now: earlier updates are delivered before the response.
    fn send_deferred_updates(&mut self, worker: WorkerId, session: &str) {
        let Some(it) = self.parts.workers.get_mut(worker) else { return };
        let (scope, updates) = (it.scope(), it.take_deferred_updates(session));
        if updates.is_empty() {
            return;
        }
        let route = self.parts.tables.sessions.find_route(scope, session);
        let conns = route.map_or_else(Vec::new, |it| it.clients().to_vec());
        for update in updates {
            for conn in &conns {
                self.send_notification(worker, *conn, &update);
            }
        }
    }

    fn forward_notification(&mut self, worker: WorkerId, frame: &Frame) {
        let BusParts { cx, workers, tables, .. } = &mut self.parts;
        let Some(it) = workers.get_mut(worker) else { return };
        let conns = match it.find_recipients(tables, frame) {
            MessageRecipients::One(conn) => return self.send_notification(worker, conn, frame),
            MessageRecipients::Many(conns) => conns,
            MessageRecipients::Deferred(id) => return it.defer_update(cx, id, frame),
            MessageRecipients::Unknown(why) => return it.report_undelivered(cx, frame, why),
        };
        if conns.is_empty() {
            return it.report_undelivered(cx, frame, "no client uses its session any more");
        }
        for conn in conns {
            self.send_notification(worker, conn, frame);
        }
    }

    fn send_notification(&mut self, worker: WorkerId, conn: ConnId, frame: &Frame) {
        let BusParts { workers, tables, .. } = &self.parts;
        let Some(it) = workers.get(worker) else { return };
        let text = it.add_outer_id(tables, conn, frame);
        self.clients.send_from_worker(&mut self.parts, conn, worker, text);
    }

    /// A worker cancels its request.
    fn forward_cancellation(&mut self, worker: WorkerId, frame: &Frame) {
        let (caller, calls) = (CallPeer::Worker(worker), &self.parts.tables.calls);
        let callee = frame.request_id().and_then(|id| calls.find_sent(caller, id));
        let Some((CallPeer::Client(conn), bus_id)) = callee else { return };
        let bus_id = bus_id.to_string();
        let splice = Splice { request_id: Some(&bus_id), ..Splice::default() };
        let text = frame.spliced(splice).into_bytes();
        self.clients.send_from_worker(&mut self.parts, conn, worker, text);
    }

    /// Forwards a request of a worker to the client that used the session last, or returns why
    /// there is none.
    fn forward_request(&mut self, worker: WorkerId, frame: &Frame) -> Result<(), &'static str> {
        let tables = &mut self.parts.tables;
        let Some(it) = self.parts.workers.get(worker) else { return Ok(()) };
        // The request may refer to a pending request instead of a session.
        let related_id = frame.request_id().filter(|_| methods::may_refer_to_request(frame));
        let related_call = related_id
            .and_then(|it| it.parse().ok())
            .and_then(|it| tables.calls.find_received(CallPeer::Worker(worker), it));
        let (conn, request_id) = match related_call {
            Some(PendingCall { caller: CallPeer::Client(conn), id, .. }) => {
                (*conn, Some(Arc::clone(id)))
            }
            _ => (last_recipient(it.find_recipients(tables, frame))?, None),
        };
        if !self.clients.get(conn).is_some_and(Client::can_answer) {
            return Err("its client disconnected");
        }
        let id = frame.id().expect("a request has an id").into();
        let (caller, kind) = (CallPeer::Worker(worker), CallKind::Plain);
        let call = PendingCall { caller, id, kind, outer_id: None };
        let bus_id = tables.calls.add_call(CallPeer::Client(conn), call).to_string();
        let request_id = request_id.as_deref();
        let splice = Splice { id: Some(&bus_id), request_id, ..Splice::default() };
        let text = it.add_outer_id(tables, conn, &frame.spliced(splice));
        self.clients.send_from_worker(&mut self.parts, conn, worker, text);
        Ok(())
    }

    fn refuse_worker_request(&mut self, worker: WorkerId, frame: &Frame, why: &str) {
        if let Some(it) = self.parts.workers.get_mut(worker) {
            it.refuse_request(&mut self.parts.cx, frame, why);
        }
    }

    pub(super) fn on_worker_wrote(&mut self, worker: WorkerId, bytes: usize) {
        let BusParts { cx, workers, .. } = &mut self.parts;
        if let Some(it) = workers.get_mut(worker) {
            it.reduce_backlog(bytes);
            self.clients.on_written_to_worker(cx, it, bytes);
        }
    }

    /// Answers all requests to the worker at once.
    pub(super) fn on_worker_gone(&mut self, worker: WorkerId, exit: &Exit, clean: bool) {
        let Some(mut ended) = self.parts.workers.remove_worker(worker) else { return };
        self.parts.tables.remove_worker(worker);
        let pool = Arc::clone(ended.pool_name());
        let pending = self.fail_requests_to(worker, &pool, exit);
        self.cancel_requests_of(worker);
        // The remaining bytes will never be written.
        self.clients.on_written_to_worker(&mut self.parts.cx, &mut ended, usize::MAX);
        if ended.is_held() {
            self.clients.remove_held_worker(worker);
        }
        let BusParts { cx, workers, pools, tables } = &mut self.parts;
        let status = exit.status.clone();
        cx.push_note(BusNote::WorkerEnded { pool, worker, status, pending });
        pools.on_worker_ended(cx, workers, tables, &ended, exit, clean);
        self.advance_stop();
    }

    /// Answers the requests to a worker that ended with an error. Returns how many.
    fn fail_requests_to(&mut self, worker: WorkerId, pool: &str, exit: &Exit) -> usize {
        let BusParts { cx, tables, .. } = &mut self.parts;
        let fault = Fault::WorkerGone {
            pool: pool.to_owned(),
            status: exit.status.clone(),
            stderr: exit.stderr.clone(),
        };
        let mut refused = 0;
        while let Some(call) = tables.calls.take_next_received(CallPeer::Worker(worker)) {
            let CallPeer::Client(conn) = call.caller else { continue };
            refused += 1;
            let Some(client) = self.clients.get_mut(conn) else { continue };
            if !is_planted("bus-forgets-requests-to-dead-worker") {
                client.send_own_frame(cx, &Frame::error_for(&call.id, &fault));
            }
            client.close_if_finished(cx, &tables.calls);
        }
        refused
    }

    /// Cancels the requests of a worker that ended.
    fn cancel_requests_of(&mut self, worker: WorkerId) {
        let BusParts { cx, tables, .. } = &mut self.parts;
        while let Some((callee, bus_id, _)) = tables.calls.take_next_sent(CallPeer::Worker(worker))
        {
            let CallPeer::Client(conn) = callee else { continue };
            let Some(client) = self.clients.get_mut(conn) else { continue };
            let params = format!(r#"{{"requestId":{bus_id}}}"#);
            let frame = Frame::notification(Method::CancelRequest.name(), &params);
            client.send_own_frame(cx, &frame);
        }
    }
}

/// The client that used the session last.
fn last_recipient(recipients: MessageRecipients) -> Result<ConnId, &'static str> {
    match recipients {
        MessageRecipients::One(conn) => Ok(conn),
        MessageRecipients::Many(conns) => conns.last().copied().ok_or("its client disconnected"),
        MessageRecipients::Deferred(_) => Err("the session has no id yet"),
        MessageRecipients::Unknown(why) => Err(why),
    }
}

//! Output of the hub to clients: each message is checked and put into the outbox of its client.

use super::{
    HubWorld,
    check::{
        self, DeliveryPosition, EventRendering, ReceivedResponse, RequestKind, SessionSubscriber,
        check_invariant,
    },
    client::MessageEffect,
    markers,
};
use bytes::Bytes;
use jackfield_hub::{ConnId, SessionId};
use jackfield_protocol::{self as wire, Frame};

impl HubWorld {
    pub(super) fn on_client_message(&mut self, conn: ConnId, text: &Bytes) {
        check_invariant(
            "closed_connection_receives_nothing",
            self.conns.contains_key(&conn),
            || format!("{conn} is closed and was sent {text:?}"),
        );
        let frame = Frame::parse(text.clone());
        check_invariant("hub_output_is_a_valid_frame", frame.is_ok(), || format!("{text:?}"));
        let frame = frame.expect("checked above");
        check::session_ids_are_translated(&self.conns[&conn], conn, &frame);
        if frame.error().is_none() {
            self.messages_name_no_foreign_session(conn, text);
        }
        let means = match frame.kind() {
            wire::Kind::Response => self.on_response(conn, &frame),
            wire::Kind::Request => self.on_ask(conn, &frame),
            wire::Kind::Notification => self.on_notification(conn, &frame),
        };
        self.enqueue_message(conn, text, means);
    }

    fn on_response(&mut self, conn: ConnId, frame: &Frame) -> MessageEffect {
        let id = frame.id().expect("a response has an id");
        if id == "null" {
            return MessageEffect::None; // The response to an invalid frame.
        }
        let it = self.conns.get_mut(&conn).expect("checked by the caller");
        let open = id.parse::<u64>().ok().and_then(|it_id| it.pending.remove(&it_id));
        let answer =
            ReceivedResponse { conn, id, text: frame.bytes(), is_result: frame.result().is_some() };
        let request = answer.request_gets_exactly_one_response(open);
        if markers::contains(answer.text, "\"code\":\"quota\"") {
            self.tally.count("quotas reached");
        }
        if request.session.as_ref().is_some_and(|it| self.is_foreign(conn, it)) {
            self.foreign_session_is_reported_as_missing(&answer);
            return MessageEffect::None;
        }
        if markers::contains(answer.text, "\"overloaded\"") {
            self.tally.count("overloaded");
        } else if markers::contains(answer.text, "\"stopReason\":\"cancelled\"") {
            self.tally.count("prompts cancelled");
        }
        self.relay_requests_are_not_refused(conn, &request, frame);
        answer.response_reaches_its_requester(&request);
        answer.forwarded_result_comes_from_the_agent(&request);
        self.only_failing_agents_are_suspended(&answer);
        if request.kind == RequestKind::New
            && let Some(session) = frame.session_id()
        {
            let session: SessionId = session.into();
            self.fallback_is_always_reported(&answer, request.token, &session);
            self.session_is_durable_before_it_is_reported(&session);
            let it = self.conns.get_mut(&conn).expect("checked by the caller");
            it.deliveries.entry(session.clone()).or_insert(DeliveryPosition::new(0));
            return MessageEffect::Opened(session);
        }
        if request.kind == RequestKind::Fork
            && answer.is_result
            && let Some(fork) = frame.session_id()
        {
            return self.on_forked(conn, fork.into());
        }
        if request.kind == RequestKind::ReadLog && answer.is_result {
            self.tally.count("log pages read");
            let session = request.session.as_ref().expect("read in a session");
            self.page_has_the_stored_events(session, frame);
        }
        if request.kind == RequestKind::Release && !answer.is_result {
            let session = request.session.as_ref().expect("released in a session");
            self.queue_tracker.on_release_refused(session, request.token);
        }
        if request.kind == RequestKind::Answer && answer.is_result {
            self.tally.count("asks answered without attaching");
            self.ask_tracker.accepted_answer_is_logged(request.token);
        }
        if request.kind == RequestKind::Setting && answer.is_result {
            self.setting_is_logged_before_it_is_confirmed(&request);
        }
        if answer.is_result || !request.kind.is_attach() {
            self.response_follows_earlier_events(conn, &request, frame);
        } else if !markers::contains(answer.text, "\"code\":\"fenced\"") {
            self.restore_subscription(conn, request);
        }
        MessageEffect::None
    }

    /// The fork exists and its log has the fork event.
    fn on_forked(&mut self, conn: ConnId, session: SessionId) -> MessageEffect {
        self.session_is_durable_before_it_is_reported(&session);
        let branch = self.fork_seq(&session);
        check_invariant("fork_log_has_a_fork_event", branch.is_some(), || {
            format!("{conn} received the id of {session}")
        });
        let it = self.conns.get_mut(&conn).expect("checked by the caller");
        it.deliveries.entry(session.clone()).or_insert(DeliveryPosition::new(branch.unwrap_or(0)));
        MessageEffect::Opened(session)
    }

    /// A refused request leaves the subscription as it was.
    fn restore_subscription(&mut self, conn: ConnId, request: check::ClientRequest) {
        let it = self.conns.get_mut(&conn).expect("checked by the caller");
        let exists = |it: &SessionId| self.disk.streams.contains_key(it);
        let Some(session) = request.session.filter(exists) else { return };
        let (delivery, observes) = request.earlier_subscription;
        match delivery {
            Some(delivery) => it.deliveries.insert(session.clone(), delivery),
            None => it.deliveries.remove(&session),
        };
        it.observes.insert(session, observes.unwrap_or(false));
    }

    fn on_ask(&mut self, conn: ConnId, frame: &Frame) -> MessageEffect {
        let mark = self.ask_tracker.client_asks_come_from_agents(conn, frame.bytes());
        let sent_in =
            self.ask_tracker.agent_session(mark).expect("the ask was checked above").clone();
        self.messages_stay_in_their_session(&sent_in, frame);
        let id = frame.id().and_then(|it| it.parse::<u64>().ok()).expect("the hub's ids");
        let it = self.conns.get_mut(&conn).expect("checked by the caller");
        let fresh = it.issued.insert(id, mark).is_none();
        check_invariant("ask_is_sent_once_per_client", fresh, || {
            format!("{conn} was asked {id} twice")
        });
        if let Some(session) = frame.session_id() {
            let observes = it.observes.get(session.as_ref()).copied().unwrap_or(false);
            check_invariant("observers_receive_no_asks", !observes, || {
                format!("{conn}: {frame:?}")
            });
        }
        self.tally.count("asks issued");
        MessageEffect::Asked { id, mark }
    }

    fn on_notification(&mut self, conn: ConnId, frame: &Frame) -> MessageEffect {
        let method = frame.method().expect("a notification has a method");
        match method.as_ref() {
            "session/update" => self.on_update(conn, frame),
            "_jackfield/moved" => {
                self.on_moved(conn, frame);
                MessageEffect::None
            }
            "_jackfield/storage" => {
                let aware = self.conns[&conn].aware;
                check_invariant("only_aware_clients_receive_storage_notices", aware, || {
                    format!("{conn}: {frame:?}")
                });
                self.tally.count("storage notices");
                MessageEffect::None
            }
            "$/cancel_request" => {
                let id = frame.request_id().and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
                let asked = self.conns[&conn].issued.contains_key(&id);
                check_invariant("only_issued_asks_are_withdrawn", asked, || {
                    format!("{conn}: {frame:?}")
                });
                MessageEffect::Withdrawn { id }
            }
            "x/by_the_way" => {
                let mark = markers::find_mark(frame.bytes()).unwrap_or(0);
                let sent_in = self.unlogged.get(&mark).cloned();
                check_invariant(
                    "unlogged_notification_comes_from_the_agent",
                    sent_in.is_some(),
                    || format!("{conn}: {frame:?}"),
                );
                self.messages_stay_in_their_session(&sent_in.expect("checked above"), frame);
                self.tally.count("unlogged notifications delivered");
                MessageEffect::None
            }
            _ => {
                let seq = markers::number_after(frame.bytes(), "\"seq\":").unwrap_or(0);
                self.receive_event(conn, frame, seq, EventRendering::HubNotice)
            }
        }
    }

    fn on_update(&mut self, conn: ConnId, frame: &Frame) -> MessageEffect {
        let mark = markers::find_mark(frame.bytes());
        let rendering =
            if mark.is_some() { EventRendering::Update } else { EventRendering::PromptChunk };
        let seq = if self.conns[&conn].aware {
            markers::number_after(frame.bytes(), "\"jackfield\":{\"seq\":")
        } else if let Some(mark) = mark {
            self.log_tracker.updates.get(&mark).and_then(|it| it.seq)
        } else {
            let mark = markers::find_prompt(frame.bytes());
            mark.and_then(|it| self.log_tracker.prompts.get(&it)).and_then(|it| it.prompted)
        };
        self.receive_event(conn, frame, seq.unwrap_or(0), rendering)
    }

    fn receive_event(
        &mut self,
        conn: ConnId,
        frame: &Frame,
        seq: u64,
        rendering: EventRendering,
    ) -> MessageEffect {
        let session: SessionId = frame.session_id().unwrap_or_default().into();
        self.check_subscription(conn, &session, seq);
        let it = self.conns.get_mut(&conn).expect("checked by the caller");
        let subscriber = SessionSubscriber { conn, aware: it.aware, session: &session };
        let stream = &self.disk.streams[&session];
        check::outboxes_are_bounded(it.unwritten, self.limits.outbox_bytes_max);
        let delivery = it.deliveries.get_mut(&session).expect("started above");
        delivery.receive_event(subscriber, stream, seq, rendering, frame.bytes());
        MessageEffect::Event(session, seq)
    }

    /// Only a connection that opened the session, attached to it or prompted in it receives its events.
    fn check_subscription(&mut self, conn: ConnId, session: &SessionId, seq: u64) {
        let it = self.conns.get_mut(&conn).expect("checked by the caller");
        let exists = self.disk.streams.contains_key(session);
        let prompts = it.has_prompted_in(session);
        let opens = it.has_open_session_request();
        let known = it.deliveries.contains_key(session);
        let branch = self.fork_seq(session);
        let is_first = seq == 1 || branch.is_some_and(|it| it < seq);
        check_invariant(
            "only_subscribers_receive_events",
            exists && (known || prompts || (opens && is_first)),
            || format!("{conn} received event {seq} of {session} without a subscription"),
        );
        let first = branch.unwrap_or(0);
        let from = DeliveryPosition::new(if prompts { seq.saturating_sub(1) } else { first });
        let it = self.conns.get_mut(&conn).expect("checked by the caller");
        it.deliveries.entry(session.clone()).or_insert(from);
    }
}

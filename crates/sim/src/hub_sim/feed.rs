//! Feeds inputs into the hub and tracks them; checks and executes its outputs.

use super::{
    HubWorld,
    check::{self, DeliveryPosition, ForeignAccess, RequestKind, check_invariant},
    copy::SessionCopy,
    disk::LogReader,
    markers,
};
use jackfield_events::{EventBody, SessionEvent, TurnStarted};
use jackfield_hub::{AgentId, ConnId, Input, Note, Output, Seq, SessionId};
use jackfield_protocol::{self as wire, Frame};

impl HubWorld {
    /// Feeds one input, then executes all outputs.
    pub(super) fn feed_input(&mut self, input: Input) {
        self.trace.input(self.now, &input);
        self.note_input(&input);
        self.restore_tracker.now = self.now;
        let answered = match &input {
            Input::AgentSpoke { agent, frame } if frame.result().is_some() => {
                Some((*agent, frame.clone()))
            }
            _ => None,
        };
        let access = self.foreign_access_of(&input);
        self.hub.handle(self.now, input);
        if let Some((agent, frame)) = answered {
            self.check_serving(agent, &frame);
        }
        self.drain_outputs_after(access.as_ref());
    }

    pub(super) fn drain_outputs(&mut self) {
        self.drain_outputs_after(None);
    }

    fn drain_outputs_after(&mut self, access: Option<&ForeignAccess>) {
        while let Some(output) = self.hub.poll_output() {
            self.trace.output(self.now, &output);
            if let Some(access) = access {
                access.check_no_effect(&output);
            }
            self.execute_output(output);
        }
        self.check_after_step();
    }

    /// Updates the trackers before the hub receives an input.
    fn note_input(&mut self, input: &Input) {
        match input {
            Input::ClientSpoke { conn, frame } => self.note_request(*conn, frame),
            Input::ClientWrote { conn, bytes } => {
                let it = self.conns.get_mut(conn).expect("the connection is open");
                it.unwritten -= bytes;
            }
            Input::ClientGone { conn } => drop(self.conns.remove(conn)),
            Input::AgentSpoke { agent, frame } => self.note_agent_message(*agent, frame),
            Input::AgentGone { agent, .. } => {
                self.note_exit(*agent);
                self.ask_tracker.on_agent_gone(*agent);
                self.restore_tracker.on_agent_gone(*agent);
                self.procs.remove(agent);
            }
            Input::Durable { session, upto } => {
                if let Some(stream) = self.disk.streams.get_mut(session) {
                    stream.acked = upto.0;
                }
            }
            Input::AppendFailed { session, why } => {
                self.tally.count("appends failed");
                if *why == jackfield_hub::AppendFailure::Fenced {
                    self.tally.count("sessions fenced");
                    self.on_fenced(session);
                }
            }
            _ => {}
        }
    }

    /// Another hub owns the session: for the rest of the run, or until the session is adopted.
    fn on_fenced(&mut self, session: &SessionId) {
        let written = self.disk.streams.get(session).is_some_and(|it| 0 < it.durable());
        let is_known = self.known_sessions.contains(session);
        if written && (!is_known || self.rng.chance(60)) {
            self.on_taken_over(session);
        } else {
            self.forget_session(session);
        }
    }

    /// The hub receives a request: this fixes its subject and the end of the log that its response must follow.
    fn note_request(&mut self, conn: ConnId, frame: &Frame) {
        if frame.kind() == wire::Kind::Response {
            let id = frame.id().and_then(|it| it.parse::<u64>().ok());
            let mark = id.and_then(|it| self.conns[&conn].issued.get(&it));
            if mark.is_some_and(|it| self.ask_tracker.is_settled(*it)) {
                self.tally.count("asks answered twice");
            }
        }
        if frame.kind() != wire::Kind::Request {
            return;
        }
        let id = frame
            .id()
            .and_then(|it| it.parse::<u64>().ok())
            .expect("simulated clients use numbers as ids");
        let it = self.conns.get_mut(&conn).expect("the connection is open");
        let request = it.pending.get_mut(&id).expect("recorded when sent");
        request.delivered = true;
        let Some(session) = request.session.clone() else { return };
        if self.is_foreign(conn, &session) {
            return;
        }
        let it = self.conns.get_mut(&conn).expect("the connection is open");
        let request = it.pending.get_mut(&id).expect("recorded when sent");
        if request.kind == RequestKind::Prompt {
            let (token, number) = (request.token, request.number);
            let has_ended = self.note_prompt(&session, token, number);
            let it = self.conns.get_mut(&conn).expect("the connection is open");
            it.pending.get_mut(&id).expect("found above").repeats_ended_prompt = has_ended;
            if !has_ended {
                it.prompted.insert(session);
            }
            return;
        }
        if self.is_releasing_idle(&session) {
            return;
        }
        let it = self.conns.get_mut(&conn).expect("the connection is open");
        let request = it.pending.get_mut(&id).expect("recorded when sent");
        if request.kind == RequestKind::Release {
            it.prompted.insert(session.clone());
            let only = markers::number_after(frame.bytes(), "\"prompt\":");
            if 0 < self.queue_tracker.on_release(&session, request.token, only) {
                self.tally.count("prompts released");
            }
        }
        let prompts = it.has_prompted_in(&session) || it.has_open_session_request();
        let request = it.pending.get_mut(&id).expect("found above");
        let Some(stream) = self.disk.streams.get(&session) else { return };
        let from = match request.kind {
            RequestKind::Load => 0,
            RequestKind::Resume => stream.acked,
            RequestKind::Attach => {
                markers::number_after(frame.bytes(), "\"after\":").unwrap_or(0).min(stream.acked)
            }
            _ => return,
        };
        request.follows_seq = stream.head;
        // A client that was attached before may still receive open asks.
        let observes = !it.deliveries.contains_key(&session)
            && !prompts
            && markers::contains(frame.bytes(), "\"observe\":true");
        request.earlier_subscription =
            (it.deliveries.get(&session).copied(), it.observes.get(&session).copied());
        it.observes.insert(session.clone(), observes);
        let fresh = DeliveryPosition { received: from, may_start_earlier: prompts };
        let delivery = it.deliveries.entry(session).or_insert(fresh);
        delivery.received = delivery.received.min(from);
    }

    fn execute_output(&mut self, output: Output) {
        match output {
            Output::Append { session, event, summary } => {
                self.log_tracker.on_appended(&session, &event);
                self.check_sleep_event(&session, &event);
                self.restore_tracker.on_appended(&session, &event);
                if event.body == EventBody::Closed {
                    self.mark_requests_of_closed_session(&session);
                }
                let stream = self.disk.streams.entry(session).or_default();
                stream.collect(event, summary);
            }
            Output::Summarize { session, upto, summary } => {
                self.tally.count("deferred summaries");
                let stream = self.disk.streams.get_mut(&session).expect("it has events");
                check::summary_covers_only_durable_events(&session, upto, stream.durable());
                stream.collect_summary(summary);
            }
            Output::Read { conn, session, after } => {
                self.ask_read(&session, LogReader::Subscriber(conn), after);
            }
            Output::ReadPage { page, session, after, events_max } => {
                self.ask_read(&session, LogReader::Page { page, events_max }, after);
            }
            Output::Delete { session } => {
                self.tally.count("sessions deleted");
                self.forget_session(&session);
            }
            Output::ToClient { conn, text } => self.on_client_message(conn, &text),
            Output::CloseClient { conn } => self.close_connection(conn),
            Output::Spawn { agent, launch } => {
                check_invariant("no_agent_starts_after_stop", !self.stopping, || {
                    format!("{agent} was started after the hub was asked to stop")
                });
                self.start_process(agent, &launch.name);
            }
            Output::ToAgent { agent, text } => self.on_agent_message(agent, &text),
            Output::PauseAgent { agent } => {
                self.tally.count("agents paused");
                self.procs.get_mut(&agent).expect("it runs").paused = true;
            }
            Output::ResumeAgent { agent } => {
                self.procs.get_mut(&agent).expect("it runs").paused = false;
            }
            Output::StopAgent { agent, .. } => {
                let refused =
                    !self.hub.gauges().processes.iter().any(|it| u64::from(it.pid) == agent.0);
                if refused {
                    self.note_exit(agent);
                }
                if let Some(process) = self.procs.get_mut(&agent) {
                    process.stop_requested = true;
                }
            }
            Output::EndTools { agent, .. } => {
                self.tally.count("tools ended after a cancel");
                assert!(self.procs.contains_key(&agent), "only an agent that runs has tools");
            }
            Output::Note(note) => self.on_note(&note),
            Output::Recall { session, after } => {
                self.ask_read(&session, LogReader::Hub, after);
            }
            Output::Serve { agent, frame, .. } => self.serve(agent, &frame),
            Output::Copy { from, upto, to, last } => {
                self.disk.copies.push(SessionCopy::new(from, upto, to, last));
            }
            Output::ChangeListeners { .. } | Output::StopAsked => {}
            Output::SessionReleased { session } => self.on_released(&session),
            Output::Stopped => self.on_stopped(),
        }
    }

    /// Reads the log of a session, unless it was deleted.
    fn ask_read(&mut self, session: &SessionId, reader: LogReader, after: Seq) {
        if let Some(stream) = self.disk.streams.get_mut(session) {
            stream.ask_read(reader, after);
        }
    }

    /// Requests for files are answered with an error, which may arrive late or never.
    fn serve(&mut self, agent: AgentId, frame: &Frame) {
        self.tally.count("asks served by the hub");
        let why = "this world has no files".to_owned();
        let id = frame.id().expect("a request has an id");
        let frame = Frame::error_for(id, &wire::Fault::Internal { why });
        if let Some(process) = self.procs.get_mut(&agent).filter(|it| !it.has_exited) {
            process.outbox.push_back(Input::Served { agent, frame });
        }
    }

    fn count_queue_event(&mut self, event: &SessionEvent) {
        self.tally.count(match &event.body {
            EventBody::Queued(_) => "prompts queued",
            EventBody::Reordered(_) => "prompts moved",
            EventBody::Withdrawn(_) => "prompts withdrawn",
            EventBody::Prompted(TurnStarted { prompt: Some(_), frame, .. }) => {
                if markers::contains(frame.bytes(), "\"steer\":true") {
                    "prompts steered"
                } else {
                    "queued prompts run"
                }
            }
            _ => return,
        });
    }

    fn on_note(&mut self, note: &Note) {
        let counter = match note {
            Note::SessionOpened { .. } => "sessions opened",
            Note::SessionWoke { session, agent, step } => {
                let agent_session = self.hub.session(session).map(|it| it.agent_session.clone());
                let key = (*agent, agent_session.expect("the hub has the restored session"));
                self.restore_tracker.on_restored(session, &key, step);
                self.start_serving(key.0, &key.1, true);
                match *step {
                    "resumed" => "sessions resumed",
                    "reloaded" => "sessions reloaded",
                    _ => "sessions reseeded",
                }
            }
            Note::ClientBehind { .. } => "clients fell behind",
            Note::AppendRetried { .. } => "appends retried",
            Note::TurnEnded { how: "stopped", .. } => "turns stopped",
            Note::TurnEnded { how: "failed", .. } => "turns failed",
            Note::TurnEnded { .. } => "turns interrupted",
            Note::Unclaimed { .. } => "unclaimed updates",
            _ => return,
        };
        self.tally.count(counter);
    }

    /// A session is deleted or owned by another hub: clients receive nothing more of it.
    fn forget_session(&mut self, session: &SessionId) {
        self.log_tracker.forget(session);
        self.queue_tracker.forget(session);
        self.restore_tracker.forget(session);
        self.session_moves.forget(session);
        self.disk.streams.remove(session);
        for it in self.conns.values_mut() {
            it.deliveries.remove(session);
            it.observes.remove(session);
        }
        for client in &mut self.clients {
            client.cursors.remove(session);
            client.unanswered_prompts.retain(|(it, _)| it != session);
        }
    }

    /// Tracks events that became durable.
    pub(super) fn on_durable(&mut self, session: &SessionId, events: &[SessionEvent]) {
        for event in events {
            self.log_tracker.on_durable(session, event);
            self.queue_tracker.on_durable(session, event);
            self.count_queue_event(event);
            match self.ask_tracker.on_durable(session, &event.body) {
                Some(check::AskOutcome::Ruled) => self.tally.count("asks answered by a rule"),
                Some(check::AskOutcome::Chosen) => self.tally.count("asks answered"),
                Some(check::AskOutcome::Void) => self.tally.count("asks voided"),
                None => {}
            }
        }
    }
}

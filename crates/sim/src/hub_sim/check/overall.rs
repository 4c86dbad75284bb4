//! Invariants over the whole world.

use super::{ClientRequest, RequestKind, SessionSubscriber, check_invariant};
use crate::hub_sim::{HubWorld, agent::AgentProcess, client::ClientConnection, markers};
use jackfield_events::{AgentSessionId, EventBody, SettingChanged};
use jackfield_hub::{AgentId, ConnId, SessionId};
use jackfield_protocol::{self as wire, Frame};

/// Clients that do not know the hub receive plain ACP, and no client receives an agent's session id.
pub(in crate::hub_sim) fn session_ids_are_translated(
    it: &ClientConnection,
    conn: ConnId,
    frame: &Frame,
) {
    let is_pushed = frame.kind() != wire::Kind::Response;
    let plain = it.aware || !is_pushed || !markers::contains(frame.bytes(), "jackfield");
    check_invariant("plain_clients_receive_plain_acp", plain, || {
        format!("{conn} received {frame:?}")
    });
    let may_name = it.aware && frame.method().is_some_and(|it| it.starts_with("_jackfield/"));
    let named = frame.session_id().is_some_and(|it| it.starts_with("g-"));
    check_invariant("clients_receive_hub_session_ids", !named || may_name, || {
        format!("{conn} received {frame:?}")
    });
}

impl HubWorld {
    pub(in crate::hub_sim) fn agents_receive_their_own_session_ids(
        &self,
        agent: AgentId,
        frame: &Frame,
    ) {
        let Some(named) = frame.session_id() else { return };
        let process = &self.procs[&agent];
        let asks = matches!(frame.method().as_deref(), Some("session/load" | "session/resume"));
        let is_own = named.starts_with("g-") && (asks || process.known_sessions.contains(&*named));
        check_invariant("agents_receive_their_own_session_ids", is_own, || {
            format!("{agent} knows {:?} and received {frame:?}", process.known_sessions)
        });
    }

    /// A prompt is sent once, as the only one of its session, and after it is logged.
    pub(in crate::hub_sim) fn prompt_is_sent_once(&mut self, agent: AgentId, frame: &Frame) {
        let mark = markers::find_prompt(frame.bytes()).expect("prompts are marked");
        let prompt =
            self.log_tracker.prompts.get_mut(&mark).expect("prompts are recorded when sent");
        prompt.sent += 1;
        let sent = prompt.sent;
        check_invariant("prompt_is_sent_once", sent == 1 + prompt.missing_session_errors, || {
            format!("{agent} received prompt {mark}, which was sent {sent} times")
        });
        check_invariant("prompt_is_logged_before_it_is_sent", prompt.prompted.is_some(), || {
            format!("{agent} received prompt {mark}, which is not in the log")
        });
        let process = self.procs.get_mut(&agent).expect("the caller found it");
        let agent_session: AgentSessionId = frame.session_id().unwrap_or_default().as_ref().into();
        let has_prompt = process.prompts.values().any(|it| *it == agent_session);
        check_invariant("session_has_one_prompt_at_a_time", !has_prompt, || {
            format!("{agent} received prompt {mark} and has {:?}", process.prompts)
        });
        if process.prompts.len() == 1 {
            self.tally.count("concurrent turns in one process");
        }
        process.prompts.insert(mark, agent_session);
    }

    /// Except for a cancel that only tells the agent that the hub has released the session.
    pub(in crate::hub_sim) fn cancel_is_logged_before_it_is_sent(
        &mut self,
        agent: AgentId,
        frame: &Frame,
    ) {
        let agent_session = frame.session_id().unwrap_or_default();
        if !self.is_serving_session(agent, &agent_session) {
            self.tally.count("sessions released during a turn");
            return self
                .procs
                .get_mut(&agent)
                .expect("the process runs")
                .forget_prompts(&agent_session);
        }
        let session = self.log_tracker.session_ids.get(&*agent_session);
        let Some(stream) = session.and_then(|it| self.disk.streams.get(it)) else { return };
        let written = stream.events.iter().any(|it| matches!(it.body, EventBody::Cancelled(_)));
        check_invariant("cancel_is_logged_before_it_is_sent", written, || format!("{frame:?}"));
    }

    pub(in crate::hub_sim) fn cancel_names_a_known_request(&self, agent: AgentId, frame: &Frame) {
        let known =
            frame.request_id().is_some_and(|it| self.procs[&agent].request_ids.contains(it));
        check_invariant("cancel_names_a_known_request", known, || {
            format!("{agent} received {frame:?}")
        });
    }

    pub(in crate::hub_sim) fn session_is_durable_before_it_is_reported(&self, session: &SessionId) {
        let written = self.disk.streams.get(session).is_some_and(|it| 0 < it.durable());
        check_invariant("session_is_durable_before_it_is_reported", written, || {
            session.to_string()
        });
    }

    pub(in crate::hub_sim) fn setting_is_logged_before_it_is_confirmed(
        &self,
        request: &ClientRequest,
    ) {
        let session = request.session.as_ref().expect("settings are of a session");
        let Some(stream) = self.disk.streams.get(session) else { return };
        let is_setting = |body: &EventBody| matches!(body, EventBody::Configured(SettingChanged { frame, .. }) if markers::find_token(frame.bytes()) == Some(request.token));
        let written = stream.events.iter().any(|it| is_setting(&it.body));
        check_invariant("setting_is_logged_before_it_is_confirmed", written, || {
            format!("{request:?}")
        });
    }

    /// The response to an attach follows the replay, the response to a prompt follows its turn, and other responses follow
    /// the updates that the agent sent before.
    pub(in crate::hub_sim) fn response_follows_earlier_events(
        &mut self,
        conn: ConnId,
        request: &ClientRequest,
        frame: &Frame,
    ) {
        let Some(session) = &request.session else { return };
        let mut follows = request.follows_seq;
        // A client that was notified of a move receives nothing more of it.
        let is_moving = markers::contains(frame.bytes(), "\"code\":\"fenced\"");
        let is_moving = is_moving || self.session_moves.is_unowned(session);
        if request.kind == RequestKind::Prompt {
            let same =
                |it: &ClientRequest| it.kind == RequestKind::Prompt && it.token == request.token;
            let said_twice = self.conns.values().flat_map(|it| it.pending.values()).any(same);
            let prompt =
                self.log_tracker.prompts.get_mut(&request.token).expect("recorded when sent");
            // Prompts that are queued when the hub stops or the session moves stay queued; every other refused prompt has ended.
            let stops = is_moving || markers::contains(frame.bytes(), "\"code\":\"stopping\"");
            let waits = self.queue_tracker.is_queued(session, request.token);
            let refused = prompt.prompted.is_none() && !(stops && waits);
            let first = request.number == request.token;
            prompt.refused |= first && refused && !said_twice;
            let is_done = !waits || stops || !self.disk.streams.contains_key(session);
            check_invariant("prompt_leaves_queue_before_its_response", is_done, || {
                format!("{conn} received {frame:?} for a prompt that is queued")
            });
            follows = prompt.ended.unwrap_or(0);
            let ended = prompt.prompted.is_none() || prompt.ended.is_some();
            let exists = self.disk.streams.contains_key(session);
            check_invariant(
                "prompt_is_answered_after_its_turn",
                ended || (stops && !first) || is_moving || !exists,
                || format!("{conn} received {frame:?} while the turn runs"),
            );
        }
        let Some(stream) = self.disk.streams.get(session).filter(|_| !is_moving) else { return };
        let it = self.conns.get_mut(&conn).expect("the caller found it");
        if request.kind == RequestKind::Prompt && 0 < follows && !request.repeats_ended_prompt {
            // A client that prompts is attached, even if it has received no event yet.
            it.deliveries.entry(session.clone()).or_insert(super::DeliveryPosition::new(follows));
        }
        let subscriber = SessionSubscriber { conn, aware: it.aware, session };
        let refused = request.kind != RequestKind::Prompt && frame.error().is_some();
        let Some(delivery) = it.deliveries.get(session).filter(|_| !refused) else { return };
        check_invariant("response_follows_earlier_events", follows <= stream.durable(), || {
            format!("{conn} received {frame:?}, which follows {follows}, which is not durable")
        });
        let missed = delivery.missed(subscriber, stream, follows);
        check_invariant("response_follows_earlier_events", missed.is_none(), || {
            format!("{conn} received {frame:?} before event {missed:?} of {session}")
        });
    }

    pub(in crate::hub_sim) fn check_after_step(&mut self) {
        self.live_agents_are_limited();
        self.process_serves_at_most_its_limit();
        self.tenant_quotas_hold();
        // The last frame may have been large, and clients' requests are logged as well.
        let slack = 8 * 1024;
        let max = self.limits.held_bytes_max + slack;
        for (session, stream) in self.disk.streams.iter().filter(|(_, it)| max < it.held_bytes()) {
            // The output of a process that has exited is read to its end.
            let read = |(id, it): (&AgentId, &AgentProcess)| {
                !it.has_exited && !it.paused && self.sessions_served_by(*id).contains(session)
            };
            if self.procs.iter().any(read) {
                super::held_events_are_bounded(stream.held_bytes(), max);
            }
        }
    }

    /// The hub has reported its end: no process runs, nothing is open, no client waits.
    pub(in crate::hub_sim) fn stop_leaves_nothing_open(&self) {
        let name = "stop_leaves_nothing_open";
        let left = self.procs.iter().find(|(_, it)| !it.stop_requested && !it.has_exited);
        check_invariant(name, left.is_none(), || format!("{left:?} still runs"));
        for (id, stream) in &self.disk.streams {
            check_invariant(name, stream.is_idle() || stream.acked == stream.head, || {
                format!("{id} has events that are not written")
            });
            let open = self.log_tracker.open_in(id);
            let is_unowned = self.session_moves.is_unowned(id);
            check_invariant(name, is_unowned || open == (None, 0), || {
                format!("{id} leaves {open:?} open in its log")
            });
        }
        for (&conn, it) in &self.conns {
            // The hub does not wait for clients that read slowly or still read the journal.
            let reading = self.disk.streams.values().any(|it| !it.is_idle());
            let slow = 0 < it.unwritten || reading;
            let behind = |session: &SessionId| {
                let attaches = |it: &ClientRequest| {
                    it.kind.is_attach() && it.session.as_ref() == Some(session)
                };
                let subscriber = SessionSubscriber { conn, aware: it.aware, session };
                let stream = self.disk.streams.get(session);
                let received = it.deliveries.get(session).zip(stream);
                it.pending.values().any(attaches)
                    || received.is_some_and(|(it, stream)| {
                        it.missed(subscriber, stream, u64::MAX).is_some()
                    })
            };
            let waits = it
                .pending
                .values()
                .find(|it| it.delivered && !it.session.as_ref().is_some_and(behind));
            check_invariant(name, slow || waits.is_none(), || {
                format!("{conn} still waits for {waits:?}")
            });
        }
    }

    /// Faults have stopped: all clients have caught up and all requests are answered.
    pub(in crate::hub_sim) fn clients_eventually_catch_up(&self) {
        for (&conn, it) in &self.conns {
            let waits = it.pending.iter().next();
            check_invariant("every_request_is_eventually_answered", waits.is_none(), || {
                format!("{conn} still waits for {waits:?}")
            });
            for (session, delivery) in &it.deliveries {
                let Some(stream) = self.disk.streams.get(session) else { continue };
                let subscriber = SessionSubscriber { conn, aware: it.aware, session };
                let missed = delivery.missed(subscriber, stream, u64::MAX);
                check_invariant("clients_eventually_catch_up", missed.is_none(), || {
                    format!("{conn} never received event {missed:?} of {session}")
                });
            }
        }
        self.queue_tracker.no_prompt_is_queued_forever();
        let unwritten = self.log_tracker.pending_updates.first();
        check_invariant("no_update_is_lost", unwritten.is_none(), || {
            let text = unwritten.map(|it| &self.log_tracker.updates[it].text);
            format!("update {text:?} was received and never written")
        });
        let open = self.ask_tracker.open().find(|(_, agent, it)| self.has_subscribers(*agent, it));
        check_invariant("every_ask_is_eventually_answered", open.is_none(), || format!("{open:?}"));
    }

    /// Whether a client is attached that could answer an agent's ask.
    fn has_subscribers(&self, agent: AgentId, agent_session: &str) -> bool {
        let session = self
            .log_tracker
            .session_ids
            .get(agent_session)
            .filter(|_| self.is_serving_session(agent, agent_session));
        let is_subscribed = |it: &ClientConnection| {
            session.is_some_and(|it_id| it.deliveries.contains_key(it_id)) && !it.finished
        };
        self.conns.values().any(is_subscribed)
    }

    /// Every process serves an open session or waits for a connected client, and no session has two.
    pub(in crate::hub_sim) fn no_leftover_processes(&self) {
        let name = "no_leftover_processes";
        let mut idle = 0;
        let runs = |it: &AgentProcess| !it.stop_requested && !it.has_exited;
        for (agent, process) in self.procs.iter().filter(|(_, it)| runs(it)) {
            let served = process.sessions.iter().filter(|(it, session_state)| {
                session_state.is_serving && self.is_serving_session(*agent, it)
            });
            let served: Vec<&AgentSessionId> = served.map(|(it, _)| it).collect();
            idle += usize::from(self.sessions_served_by(*agent).is_empty());
            for agent_session in served {
                let session = self.log_tracker.session_ids.get(agent_session);
                let stream = session.and_then(|it| self.disk.streams.get(it));
                let closed = stream.and_then(|it| it.events.last());
                let closed = closed.is_none_or(|it| matches!(it.body, EventBody::Closed));
                check_invariant(name, !closed, || {
                    format!(
                        "{agent} runs for {agent_session} ({session:?}), which is closed or gone"
                    )
                });
                let servers = self
                    .procs
                    .iter()
                    .filter(|(id, it)| runs(it) && self.is_serving_session(**id, agent_session));
                let servers = servers.count();
                check_invariant(name, servers == 1, || format!("{servers} serve {agent_session}"));
            }
        }
        check_invariant(name, idle <= self.conns.len(), || {
            format!("{idle} processes wait for {} clients", self.conns.len())
        });
    }

    /// A message of one session is delivered in no other, however many sessions a process serves.
    pub(in crate::hub_sim) fn messages_stay_in_their_session(
        &self,
        agent_session: &AgentSessionId,
        frame: &Frame,
    ) {
        let (of, received) = (self.log_tracker.session_ids.get(agent_session), frame.session_id());
        let same = of.is_none_or(|it| received.as_deref() == Some(it));
        check_invariant("messages_stay_in_their_session", same, || {
            format!("{frame:?} was sent in {agent_session}, which is {of:?}")
        });
    }

    /// The sessions that a process serves according to the hub.
    fn sessions_served_by(&self, agent: AgentId) -> Vec<SessionId> {
        let processes = self.hub.gauges().processes.into_iter();
        let own = processes.filter(|it| u64::from(it.pid) == agent.0);
        own.flat_map(|it| it.sessions).collect()
    }

    /// The same by the agent's session id.
    pub(in crate::hub_sim) fn is_serving_session(
        &self,
        agent: AgentId,
        agent_session: &str,
    ) -> bool {
        let name = |it: &SessionId| self.hub.session(it).map(|it| it.agent_session.clone());
        self.sessions_served_by(agent).iter().any(|it| name(it).as_deref() == Some(agent_session))
    }

    /// No process serves more sessions than the limit. Also drops the sessions that the hub has released.
    fn process_serves_at_most_its_limit(&mut self) {
        let max = self.hub_settings.sessions_per_process;
        for process in self.hub.gauges().processes {
            check_invariant(
                "process_serves_at_most_its_limit",
                process.sessions.len() <= max,
                || format!("{process:?}; the limit is {max}"),
            );
            let named = |it: &SessionId| self.hub.session(it).map(|it| it.agent_session.clone());
            let served: Vec<AgentSessionId> = process.sessions.iter().filter_map(named).collect();
            let sessions =
                self.procs.get_mut(&AgentId(process.pid.into())).map(|it| &mut it.sessions);
            for (agent_session, session_state) in sessions.into_iter().flatten() {
                session_state.is_serving &= served.contains(agent_session);
            }
        }
    }
}

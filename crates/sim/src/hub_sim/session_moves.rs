//! Sessions that move: the hub releases or loses them, they have no owner for a while, and are adopted. A gateway's
//! relay connection repeats the requests that were open.

use super::{
    HubWorld,
    check::{
        ClientRequest, PromptRecord, RequestKind, check_invariant,
        recovered_state_equals_folded_log,
    },
    disk::SessionStream,
};
use jackfield_hub::{ConnId, Input, SessionId};
use jackfield_protocol::Frame;
use std::collections::{BTreeMap, BTreeSet};

/// The sessions that are moving, and the prompts that have keys.
#[derive(Debug, Default)]
pub(super) struct SessionMoves {
    /// Sessions that the hub was asked to release.
    releasing: BTreeSet<SessionId>,
    /// Sessions without an owner; true if the last owner was lost.
    unowned: BTreeMap<SessionId, bool>,
    /// The marks of prompts that were sent with a key.
    keyed_prompts: BTreeMap<SessionId, Vec<u64>>,
}

impl SessionMoves {
    pub(super) fn is_unowned(&self, session: &SessionId) -> bool {
        self.unowned.contains_key(session)
    }

    pub(super) fn forget(&mut self, session: &SessionId) {
        self.releasing.remove(session);
        self.unowned.remove(session);
        self.keyed_prompts.remove(session);
    }

    /// The hub that was asked to release sessions is gone.
    pub(super) fn on_restart(&mut self) {
        self.releasing.clear();
    }

    /// Records the first transmission of a prompt and returns its key. Only prompts on relay connections have keys.
    pub(super) fn on_prompted(&mut self, session: &SessionId, token: u64) -> String {
        self.keyed_prompts.entry(session.clone()).or_default().push(token);
        key_of(token)
    }
}

fn key_of(token: u64) -> String {
    format!("k{token}")
}

impl HubWorld {
    /// Releases or adopts one session.
    pub(super) fn move_session(&mut self) {
        let unowned = self.session_moves.unowned.len();
        if unowned != 0 && self.rng.chance(60) {
            let at = self.rng.index(unowned);
            let session = self.session_moves.unowned.keys().nth(at).expect("within").clone();
            return self.adopt(&session);
        }
        if self.known_sessions.is_empty() {
            return;
        }
        let session = self.known_sessions[self.rng.index(self.known_sessions.len())].clone();
        if self.rng.chance(10) {
            return self.adopt_again(&session);
        }
        if self.hub.session(&session).is_some() {
            self.session_moves.releasing.insert(session.clone());
            self.feed_input(Input::ReleaseSession { session });
        }
    }

    /// Whether every session has an owner and no prompt has to be repeated.
    pub(super) fn has_settled(&self) -> bool {
        let repeated = self.clients.iter().all(|it| it.unanswered_prompts.is_empty());
        repeated && self.session_moves.unowned.is_empty() && self.session_moves.releasing.is_empty()
    }

    pub(super) fn has_repeated_requests(&self) -> bool {
        let open = self.conns.values().flat_map(|it| it.pending.values());
        open.into_iter().any(|it| it.number != it.token)
    }

    /// Whether the session is being released and has no open turn: the hub starts nothing more in it.
    pub(super) fn is_releasing_idle(&self, session: &SessionId) -> bool {
        let idle = |it: &jackfield_events::SessionSummary| it.open_turn.is_none();
        self.session_moves.releasing.contains(session)
            && self.hub.session(session).is_some_and(idle)
    }

    pub(super) fn adopt_all(&mut self) {
        for session in self.session_moves.unowned.keys().cloned().collect::<Vec<_>>() {
            self.adopt(&session);
        }
    }

    /// A late adoption of a session that the hub already has changes nothing.
    fn adopt_again(&mut self, session: &SessionId) {
        let stream = self.disk.streams.get(session).filter(|_| self.hub.session(session).is_some());
        let Some(state) = stream.filter(|it| 0 < it.durable()).map(SessionStream::recovered) else {
            return;
        };
        let from = Some("west".into());
        let state = Box::new(state);
        self.feed_input(Input::Adopted { session: session.clone(), state, from });
    }

    /// A session was closed: its open requests get an error, also if the session is released before a client that lags
    /// behind receives it.
    pub(super) fn mark_requests_of_closed_session(&mut self, session: &SessionId) {
        let pending = self.conns.values_mut().flat_map(|it| it.pending.values_mut());
        for request in pending.filter(|it| it.session.as_ref() == Some(session)) {
            request.session_was_closed = true;
        }
    }

    /// A relay connection can repeat a request on another host, so a release does not refuse its requests.
    pub(super) fn relay_requests_are_not_refused(
        &self,
        conn: ConnId,
        request: &ClientRequest,
        error: &Frame,
    ) {
        let is_releasing = !request.session_was_closed
            && request.session.as_ref().is_some_and(|it| self.session_moves.releasing.contains(it));
        let refused = super::markers::contains(error.bytes(), "has released its agent");
        check_invariant(
            "relay_requests_are_not_refused",
            !(self.conns[&conn].relay && is_releasing && refused),
            || format!("{conn} received {error:?}"),
        );
    }

    fn adopt(&mut self, session: &SessionId) {
        if self.stopping {
            return;
        }
        let is_lost = self.session_moves.unowned.remove(session).expect("the session has no owner");
        let stream = self.disk.streams.get_mut(session).expect("its log is there");
        stream.take_over();
        let state = stream.recovered();
        recovered_state_equals_folded_log(session, &state, &stream.events);
        self.restore_tracker.on_adopted(session, &state);
        self.sleep_tracker.on_adopted(session, &state);
        self.tally.count("sessions adopted");
        if state.open_turn.is_some() {
            self.tally.count("turns lost with their host");
        }
        let from = (is_lost || self.rng.chance(50)).then(|| "west".into());
        self.feed_input(Input::Adopted { session: session.clone(), state: Box::new(state), from });
    }

    /// The hub has released a session.
    pub(super) fn on_released(&mut self, session: &SessionId) {
        if self.session_moves.is_unowned(session) || !self.disk.streams.contains_key(session) {
            return; // It was deleted or taken over meanwhile.
        }
        let wanted =
            self.session_moves.releasing.remove(session) || self.hub_settings.unloads_sleeping;
        check_invariant("session_is_released_only_on_request", wanted, || session.to_string());
        check_invariant(
            "released_session_is_unloaded",
            self.hub.session(session).is_none(),
            || format!("{session} is still there"),
        );
        let stream = &self.disk.streams[session];
        let (head, durable, acked) = (stream.head, stream.durable(), stream.acked);
        check_invariant("released_session_is_durable", head == durable && acked == durable, || {
            format!("{session} ends at {head}, {durable} is durable and {acked} is acknowledged")
        });
        let summed = stream.summary_upto();
        check_invariant("released_session_has_a_full_summary", summed == durable, || {
            format!("{session} ends at {durable}, and its summary at {summed}")
        });
        let open = self.log_tracker.open_in(session);
        check_invariant("released_session_has_nothing_open", open == (None, 0), || {
            format!("{session} leaves {open:?} open in its log")
        });
        let has_session = |it: &super::agent::AgentProcess| {
            it.sessions.keys().any(|it| self.log_tracker.session_ids.get(it) == Some(session))
        };
        // A process that serves other sessions keeps running.
        let is_exclusive = self.hub_settings.sessions_per_process == 1;
        let ends = self.hub.gauges().processes;
        let ends = ends
            .iter()
            .filter_map(|it| self.procs.get_key_value(&jackfield_hub::AgentId(it.pid.into())));
        let ends = ends
            .filter(|(_, it)| is_exclusive && it.stop_requested && has_session(it))
            .map(|(id, _)| *id)
            .next();
        check_invariant("released_session_has_no_process", ends.is_none(), || {
            format!("{ends:?} is still stopping, and {session} is released")
        });
        self.tally.count("sessions released");
        self.mark_unowned(session, false);
    }

    /// Another hub writes to the session now; the unwritten events of this one are lost.
    pub(super) fn on_taken_over(&mut self, session: &SessionId) {
        self.tally.count("sessions taken over");
        self.session_moves.releasing.remove(session);
        self.mark_unowned(session, true);
    }

    fn mark_unowned(&mut self, session: &SessionId, is_lost: bool) {
        self.session_moves.unowned.insert(session.clone(), is_lost);
        self.log_tracker.forget(session);
        self.queue_tracker.hold_prompts(session);
        for it in self.conns.values_mut() {
            it.deliveries.remove(session);
            it.observes.remove(session);
            it.prompted.remove(session);
        }
    }

    /// A relay connection is notified that a session moved. It repeats its open requests later.
    pub(super) fn on_moved(&mut self, conn: ConnId, frame: &Frame) {
        let session: SessionId = frame.session_id().unwrap_or_default().into();
        let it = self.conns.get_mut(&conn).expect("checked by the caller");
        check_invariant("only_relays_receive_moved", it.relay, || {
            format!("{conn} received {frame:?}")
        });
        it.deliveries.remove(&session);
        it.observes.remove(&session);
        it.prompted.remove(&session);
        let unanswered = it
            .pending
            .extract_if(.., |_, it| it.delivered && it.session.as_ref() == Some(&session));
        let client = it.client;
        let unanswered: Vec<ClientRequest> = unanswered.map(|(_, it)| it).collect();
        self.tally.count("relays notified of a move");
        if !self.disk.streams.contains_key(&session) {
            return; // It does not exist, and the gateway answers so.
        }
        for request in unanswered {
            match request.kind {
                RequestKind::Release => {
                    self.queue_tracker.on_release_refused(&session, request.token);
                }
                RequestKind::Prompt => {
                    self.queue_tracker.on_release_refused(&session, request.number);
                    self.clients[client].unanswered_prompts.push((session.clone(), request.token));
                }
                _ => {}
            }
        }
    }

    /// Repeats an unanswered prompt, or any other prompt that had a key.
    pub(super) fn repeat_prompt(&mut self, conn: ConnId, client: usize) {
        let (session, token) = if let Some(again) = self.clients[client].unanswered_prompts.pop() {
            again
        } else {
            let all = &self.session_moves.keyed_prompts;
            let all: Vec<(SessionId, u64)> =
                all.iter().flat_map(|(id, it)| it.iter().map(|it| (id.clone(), *it))).collect();
            let may_know = |it: &(SessionId, u64)| !self.is_foreign(conn, &it.0);
            let all: Vec<(SessionId, u64)> = all.into_iter().filter(may_know).collect();
            if all.is_empty() || !self.conns[&conn].aware {
                return;
            }
            all[self.rng.index(all.len())].clone()
        };
        if self.log_tracker.prompts.get(&token).is_some_and(|it: &PromptRecord| it.refused) {
            return;
        }
        self.tally.count("prompts repeated");
        let key = key_of(token);
        let params = format!(
            r#""_meta":{{"jackfield":{{"key":"{key}"}}}},"prompt":[{{"type":"text","text":"p#{token}"}}]"#
        );
        self.send_request_with_token(
            conn,
            RequestKind::Prompt,
            Some(&session),
            "session/prompt",
            &params,
            token,
        );
    }

    /// The hub receives a prompt that may be a repetition. If the original is held, it runs now. If it has ended, the
    /// client gets its outcome and no events; then this returns true.
    pub(super) fn note_prompt(&mut self, session: &SessionId, token: u64, number: u64) -> bool {
        let Some(state) = self.hub.session(session) else { return false };
        let known = state.keys.find(&key_of(token));
        let has_ended = known.is_some_and(|it| it.outcome.is_some());
        if known.is_some() && !has_ended {
            self.queue_tracker.on_repeated(session, number, token);
        }
        has_ended
    }
}

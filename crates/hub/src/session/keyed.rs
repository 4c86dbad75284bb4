//! Requests that are sent again under a key that is known. A prompt never runs twice: its client waits for the turn
//! that it began, or is answered with the outcome. A `session/new` opens no second session.
//!
//! Keys of prompts without a fingerprint belong to one session. All others belong to a tenant.

use super::{Session, queue::Prompt};
use crate::{
    ConnId, Time,
    context::HubContext,
    fanout::{EventSubscriber, Phase},
    parts::HubParts,
    peer::{RequestRoute, outcome_frame},
    session_name::tenant_of,
};
use jackfield_events::{KeyedPrompt, RequestKey, is_key_expired};
use jackfield_protocol::is_planted;
use std::sync::Arc;

/// What a session has stored about a key.
#[derive(Debug)]
pub(crate) struct KnownKey {
    pub(crate) request: RequestKey,
    pub(crate) opened_session: bool,
    /// The first event of the prompt with this key.
    pub(crate) prompt: Option<u64>,
}

impl Session {
    /// What is stored about a key of the whole tenant.
    pub(crate) fn known_key(&self, key: &str, now: Time) -> Option<KnownKey> {
        let state = self.summary();
        let opening = state.opening_key.as_ref().filter(|it| &*it.key == key);
        let opening = opening.filter(|_| !is_key_expired(Time(state.opened_at), now));
        let prompt = state.keys.find(key).filter(|it| it.request.fingerprint.is_some());
        let prompt = prompt.filter(|it| !it.is_expired(now));
        let request = opening.or(prompt.map(|it| &it.request))?.clone();
        let prompt = prompt.map(|it| it.seq);
        Some(KnownKey { request, opened_session: opening.is_some(), prompt })
    }

    /// Keys of the whole tenant, with the time of their first use.
    pub(crate) fn tenant_keys(&self) -> impl Iterator<Item = (Time, &Arc<str>)> {
        let state = self.summary();
        let opening = state.opening_key.iter().map(|it| (Time(state.opened_at), &it.key));
        let prompts = state.keys.iter().filter(|it| it.request.fingerprint.is_some());
        opening.chain(prompts.map(|it| (Time(it.at), &it.request.key)))
    }

    /// Indexes the key of the last appended event.
    pub(super) fn index_last_key(&self, cx: &mut HubContext) {
        let summary = self.summary();
        let last = summary.keys.last().filter(|it| it.request.fingerprint.is_some());
        let last = last.map(|it| (Time(it.at), &it.request.key));
        let opening = summary.opening_key.iter().map(|it| (Time(summary.opened_at), &it.key));
        // The events of an import answered other requests.
        for (at, key) in opening.chain(last).filter(|_| !summary.importing) {
            cx.key_index.insert(tenant_of(&self.id), key, &self.id, at);
        }
    }

    /// Indexes the keys of a session that another host owned.
    pub(crate) fn index_keys(&self, cx: &mut HubContext) {
        for (at, key) in self.tenant_keys() {
            cx.key_index.insert(tenant_of(&self.id), key, &self.id, at);
        }
    }

    /// The prompt of a session with this key, unless the key has expired.
    pub(super) fn find_keyed_prompt(
        &self,
        cx: &HubContext,
        request: &RequestKey,
    ) -> Option<KeyedPrompt> {
        let known = self.summary().keys.find(&request.key)?;
        (!known.is_expired(cx.now)).then(|| known.clone())
    }

    pub(super) fn join_keyed_prompt(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        request: &str,
        known: &KeyedPrompt,
    ) {
        if let Some(outcome) = &known.outcome {
            return self.answer_after_log(parts, conn, &outcome_frame(request, outcome));
        }
        if let Some(it) = parts.clients.connections.get_mut(&conn) {
            it.requests.insert(request.into(), RequestRoute::Turn(self.id.clone()));
        }
        match (known.turn, known.prompt) {
            (Some(turn), _) => self.join_turn(parts, conn, turn, request),
            (None, Some(number)) => self.join_queue(parts, conn, number, request),
            (None, None) => unreachable!("a prompt waits or begins a turn at once"),
        }
    }

    /// The turn runs: another client waits for its end.
    fn join_turn(&mut self, parts: &mut HubParts, conn: ConnId, number: u64, request: &str) {
        if let Some(turn) = &mut self.turn
            && !parts.clients.connections.contains_key(&turn.driver)
        {
            turn.driver = conn;
        }
        self.answer_after_turn(parts, conn, number, request.into());
    }

    /// The prompt is queued or held. A held prompt is run, because a client asks for it.
    fn join_queue(&mut self, parts: &mut HubParts, conn: ConnId, number: u64, request: &str) {
        if !self.is_queued(number) {
            let queued = self.summary().queue[&number].clone();
            self.queue.push_back(Prompt::held(conn, number, queued));
        }
        let mut queue = self.queue.iter_mut();
        let prompt = queue.find(|it| it.number == Some(number)).expect("queued above");
        if is_planted("answer-last-waiter-only") {
            prompt.waiters.clear();
        }
        prompt.waiters.push((conn, request.into()));
        if !parts.clients.connections.contains_key(&prompt.conn) {
            prompt.conn = conn;
        }
        self.advance(parts);
    }

    /// Subscribes a client to the session, and answers this request when the turn has ended.
    pub(super) fn answer_after_turn(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        turn: u64,
        request: Box<str>,
    ) {
        if !self.subscribers.contains_key(&conn) {
            let durable = self.log.durable();
            self.subscribe(parts, conn, EventSubscriber::new(durable, Phase::Live));
        }
        if let Some(subscriber) = self.subscribers.get_mut(&conn) {
            subscriber.owed.entry(turn).or_default().push(request);
        }
    }
}

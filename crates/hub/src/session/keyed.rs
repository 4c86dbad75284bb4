//! Requests that are sent again under a key that is known. A prompt never runs twice: its client waits for the turn
//! that it began, or is answered with the outcome. A `session/new` opens no second session.
//!
//! Keys of prompts without a fingerprint belong to one session. All others belong to a tenant.

use super::{AttachMode, Session, SessionStage, queue::Prompt};
use crate::{
    ConnId, Hub, SessionId, Time,
    context::HubContext,
    fanout::{EventSubscriber, Phase},
    peer::{RequestRoute, outcome_frame},
    session::Sessions,
    session_name::tenant_of,
};
use jackfield_events::{KeyedPrompt, RequestKey, is_key_expired};
use jackfield_protocol::{Fault, Frame, is_planted};
use serde_json::{Value, json};
use std::sync::Arc;

/// What a session has stored about a key.
#[derive(Debug)]
struct KnownKey {
    request: RequestKey,
    opened_session: bool,
    /// The first event of the prompt with this key.
    prompt: Option<u64>,
}

impl Session {
    /// What is stored about a key of the whole tenant.
    fn known_key(&self, key: &str, now: Time) -> Option<KnownKey> {
        let state = &self.summary();
        let opening = state.opening_key.as_ref().filter(|it| &*it.key == key);
        let opening = opening.filter(|_| !is_key_expired(Time(state.opened_at), now));
        let prompt = state.keys.find(key).filter(|it| it.request.fingerprint.is_some());
        let prompt = prompt.filter(|it| !it.is_expired(now));
        let request = opening.or(prompt.map(|it| &it.request))?.clone();
        let prompt = prompt.map(|it| it.seq);
        Some(KnownKey { request, opened_session: opening.is_some(), prompt })
    }

    /// Keys of the whole tenant, with the time of their first use.
    fn tenant_keys(&self) -> impl Iterator<Item = (Time, &Arc<str>)> {
        let state = &self.summary();
        let opening = state.opening_key.iter().map(|it| (Time(state.opened_at), &it.key));
        let prompts = state.keys.iter().filter(|it| it.request.fingerprint.is_some());
        opening.chain(prompts.map(|it| (Time(it.at), &it.request.key)))
    }
}

impl Session {
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
}

impl Sessions {
    /// Indexes the keys of all sessions that an earlier daemon left.
    pub(crate) fn index_all_keys(&self, cx: &mut HubContext) {
        let mut keys: Vec<(Time, Arc<str>, SessionId)> = Vec::new();
        for (id, session) in &self.by_id {
            keys.extend(session.tenant_keys().map(|(at, key)| (at, key.clone(), id.clone())));
        }
        // If there are too many keys, the latest are kept. A key that was used again after it expired counts as new.
        keys.sort();
        for (at, key, id) in keys {
            cx.key_index.insert(tenant_of(&id), &key, &id, at);
        }
    }

    /// Indexes the keys of a session that another host owned.
    pub(super) fn index_keys(&self, cx: &mut HubContext, id: &SessionId) {
        for (at, key) in self.by_id[id].tenant_keys() {
            cx.key_index.insert(tenant_of(id), key, id, at);
        }
    }

    /// The session of a tenant that has a key, and what it has stored about it.
    fn find_key(
        &self,
        cx: &HubContext,
        tenant: Option<&str>,
        key: &str,
    ) -> Option<(SessionId, KnownKey)> {
        let id = cx.key_index.find(tenant, key)?;
        let known = self.by_id.get(id)?.known_key(key, cx.now)?;
        Some((id.clone(), known))
    }

    /// Whether a session is being opened with this key.
    fn is_opening_with_key(&self, tenant: Option<&str>, key: &str) -> bool {
        let is_it = |(id, session): (&SessionId, &Session)| {
            tenant_of(id) == tenant
                && matches!(&session.stage, SessionStage::Opening(it) if it.has_key(key))
        };
        self.by_id.iter().any(is_it)
    }

    /// Refuses a prompt whose key was used by another request.
    pub(super) fn check_key(
        &self,
        cx: &HubContext,
        id: &SessionId,
        request: &RequestKey,
    ) -> Result<(), Fault> {
        if request.fingerprint.is_none() {
            return Ok(());
        }
        match self.find_key(cx, tenant_of(id), &request.key) {
            Some((session, known)) if session != *id || !request.matches(&known.request) => {
                Err(key_reused(request, &session))
            }
            _ => Ok(()),
        }
    }

    /// The prompt of a session with this key, unless the key has expired.
    pub(super) fn find_keyed_prompt(
        &self,
        cx: &HubContext,
        id: &SessionId,
        request: &RequestKey,
    ) -> Option<KeyedPrompt> {
        let known = self.by_id[id].summary().keys.find(&request.key)?;
        (!known.is_expired(cx.now)).then(|| known.clone())
    }
}

impl Hub {
    /// Answers a `session/new` whose key is known with the session that it opened. `false` if the key is new.
    pub(super) fn open_known(
        &mut self,
        conn: ConnId,
        id: &str,
        request: &RequestKey,
    ) -> Result<bool, Fault> {
        let tenant = self.parts.clients.tenant_name(conn);
        if self.sessions.is_opening_with_key(tenant, &request.key) {
            return Err(Fault::KeyInUse { key: request.key.to_string() });
        }
        let Some((session, known)) = self.sessions.find_key(&self.parts.cx, tenant, &request.key)
        else {
            return Ok(false);
        };
        if !known.opened_session || !request.matches(&known.request) {
            return Err(key_reused(request, &session));
        }
        self.attach(conn, id, &session, AttachMode::Known)?;
        Ok(true)
    }

    /// `_jackfield/find_key`: which session knows a key, the fingerprint of its request, and the first event of
    /// its prompt if there was one. An empty answer if no session does.
    pub(crate) fn on_find_key(
        &mut self,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let params: Value =
            serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
        let Some(key) = params["key"].as_str() else {
            return Err(Fault::InvalidParams { why: "`key` must be a text".into() });
        };
        let tenant = self.parts.clients.tenant_name(conn);
        let Some((session, known)) = self.sessions.find_key(&self.parts.cx, tenant, key) else {
            if self.sessions.is_opening_with_key(tenant, key) {
                return Err(Fault::KeyInUse { key: key.to_owned() });
            }
            self.parts.clients.answer_request(&mut self.parts.cx, conn, id, Ok("{}"));
            return Ok(());
        };
        let fingerprint = known.request.fingerprint.as_deref();
        let result =
            json!({ "sessionId": &*session, "fingerprint": fingerprint, "seq": known.prompt });
        self.answer_in(&session, conn, &Frame::result_for(id, &result.to_string()));
        Ok(())
    }

    pub(super) fn prompt_known(
        &mut self,
        id: &SessionId,
        conn: ConnId,
        request: &str,
        known: &KeyedPrompt,
    ) {
        if let Some(outcome) = &known.outcome {
            return self.answer_in(id, conn, &outcome_frame(request, outcome));
        }
        if let Some(it) = self.parts.clients.connections.get_mut(&conn) {
            it.requests.insert(request.into(), RequestRoute::Turn(id.clone()));
        }
        match (known.turn, known.prompt) {
            (Some(turn), _) => self.join_turn(id, conn, turn, request),
            (None, Some(number)) => self.join_queue(id, conn, number, request),
            (None, None) => unreachable!("a prompt waits or begins a turn at once"),
        }
    }

    /// The turn runs: another client waits for its end.
    fn join_turn(&mut self, id: &SessionId, conn: ConnId, number: u64, request: &str) {
        let session = self.sessions.by_id.get_mut(id).expect("the caller found this session");
        if let Some(turn) = &mut session.turn
            && !self.parts.clients.connections.contains_key(&turn.driver)
        {
            turn.driver = conn;
        }
        self.owe(id, conn, number, request.into());
    }

    /// The prompt is queued or held. A held prompt is run, because a client asks for it.
    fn join_queue(&mut self, id: &SessionId, conn: ConnId, number: u64, request: &str) {
        let session = self.sessions.by_id.get_mut(id).expect("the caller found this session");
        if !session.is_queued(number) {
            let queued = session.summary().queue[&number].clone();
            session.queue.push_back(Prompt::held(conn, number, queued));
        }
        let mut queue = session.queue.iter_mut();
        let prompt = queue.find(|it| it.number == Some(number)).expect("queued above");
        if is_planted("answer-last-waiter-only") {
            prompt.waiters.clear();
        }
        prompt.waiters.push((conn, request.into()));
        if !self.parts.clients.connections.contains_key(&prompt.conn) {
            prompt.conn = conn;
        }
        self.pump(id);
    }

    /// Subscribes a client to the session, and answers this request when the turn has ended.
    pub(super) fn owe(&mut self, id: &SessionId, conn: ConnId, turn: u64, request: Box<str>) {
        let session = self.sessions.by_id.get(id).expect("the caller found this session");
        if !session.subscribers.contains_key(&conn) {
            let durable = session.log.durable();
            self.subscribe(id, conn, EventSubscriber::new(durable, Phase::Live));
        }
        let subscriber =
            self.sessions.by_id.get_mut(id).and_then(|it| it.subscribers.get_mut(&conn));
        if let Some(subscriber) = subscriber {
            subscriber.owed.entry(turn).or_default().push(request);
        }
    }
}

fn key_reused(request: &RequestKey, session: &SessionId) -> Fault {
    Fault::KeyReused { key: request.key.to_string(), session: session.to_string() }
}

//! Requests that are sent again under a key that is known: which session of a tenant has the key.

use super::Sessions;
use crate::{
    ConnId, SessionId, Time,
    context::HubContext,
    parts::HubParts,
    session::{AttachMode, KnownKey, Session},
    session_name::tenant_of,
};
use jackfield_events::RequestKey;
use jackfield_protocol::{Fault, Frame};
use serde_json::json;
use std::sync::Arc;

impl Sessions {
    /// Indexes the keys of all sessions that an earlier daemon left.
    pub(super) fn index_all_keys(&self, cx: &mut HubContext) {
        let mut keys: Vec<(Time, Arc<str>, SessionId)> = Vec::new();
        for (id, session) in self.by_id.iter() {
            keys.extend(session.tenant_keys().map(|(at, key)| (at, key.clone(), id.clone())));
        }
        // If there are too many keys, the latest are kept. A key that was used again after it expired counts as new.
        keys.sort();
        for (at, key, id) in keys {
            cx.key_index.insert(tenant_of(&id), &key, &id, at);
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
        let is_it = |it: &Session| tenant_of(&it.id) == tenant && it.is_opening_with_key(key);
        self.by_id.values().any(is_it)
    }

    pub(crate) fn prompt_session(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let session = self.find_session(frame)?.id.clone();
        let key = RequestKey::from_frame(frame).map_err(|why| Fault::InvalidParams { why })?;
        if let Some(key) = key.as_ref().filter(|it| it.fingerprint.is_some()) {
            self.check_key(&parts.cx, &session, key)?;
        }
        self.find_session(frame)?.on_prompt(parts, conn, id, frame, key)
    }

    /// Refuses a prompt whose key was used by another request.
    fn check_key(
        &self,
        cx: &HubContext,
        id: &SessionId,
        request: &RequestKey,
    ) -> Result<(), Fault> {
        match self.find_key(cx, tenant_of(id), &request.key) {
            Some((session, known)) if session != *id || !request.matches(&known.request) => {
                Err(key_reused(request, &session))
            }
            _ => Ok(()),
        }
    }

    /// Answers a `session/new` whose key is known with the session that it opened. `false` if the key is new.
    pub(super) fn attach_to_keyed_session(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        request: &RequestKey,
    ) -> Result<bool, Fault> {
        let tenant = parts.clients.tenant_name(conn);
        if self.is_opening_with_key(tenant, &request.key) {
            return Err(Fault::KeyInUse { key: request.key.to_string() });
        }
        let Some((session, known)) = self.find_key(&parts.cx, tenant, &request.key) else {
            return Ok(false);
        };
        if !known.opened_session || !request.matches(&known.request) {
            return Err(key_reused(request, &session));
        }
        if let Some(session) = self.by_id.get_mut(&session) {
            session.attach(parts, conn, id, AttachMode::Known)?;
        }
        Ok(true)
    }

    /// `_jackfield/find_key`: which session knows a key, the fingerprint of its request, and the first event of
    /// its prompt if there was one. An empty answer if no session does.
    pub(crate) fn on_find_key(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let params = frame.params_value();
        let Some(key) = params["key"].as_str() else {
            return Err(Fault::InvalidParams { why: "`key` must be a text".into() });
        };
        let tenant = parts.clients.tenant_name(conn);
        let Some((session, known)) = self.find_key(&parts.cx, tenant, key) else {
            if self.is_opening_with_key(tenant, key) {
                return Err(Fault::KeyInUse { key: key.to_owned() });
            }
            parts.clients.answer_request(&mut parts.cx, conn, id, Ok("{}"));
            return Ok(());
        };
        let fingerprint = known.request.fingerprint.as_deref();
        let result =
            json!({ "sessionId": &*session, "fingerprint": fingerprint, "seq": known.prompt });
        let answer = Frame::result_for(id, &result.to_string());
        self.with(&session, |it| it.answer_after_log(parts, conn, &answer));
        Ok(())
    }
}

fn key_reused(request: &RequestKey, session: &SessionId) -> Fault {
    Fault::KeyReused { key: request.key.to_string(), session: session.to_string() }
}

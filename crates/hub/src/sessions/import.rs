//! `_jackfield/import`: imports an exported session. No client sees the session before the last slice of its events is
//! stored, and an incomplete import is removed.

use super::Sessions;
use crate::{
    ConnId, Output, SessionId,
    parts::HubParts,
    session::Session,
    session_name::{named_for, tenant_of},
    tenant::is_tenant_name,
};
use jackfield_protocol::{Fault, Frame};
use serde_json::{Value, json};

const NAME_CHARS_MAX: usize = 32;

impl Sessions {
    /// `{from}` starts an import and is answered with the new id; `{sessionId, lines}` continues it; `{sessionId, end}`
    /// completes it. Each answer says that the events are durable.
    pub(crate) fn import_session(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let params = frame.params_value();
        if let Some(from) = params.get("from").and_then(Value::as_str) {
            parts.storage.require_working()?;
            let session = self.begin_import(parts, conn, from);
            let result = json!({ "sessionId": &*session }).to_string();
            parts.clients.answer_request(&mut parts.cx, conn, id, Ok(&result));
            return Ok(());
        }
        let named = frame.session_id().unwrap_or_default();
        let session = self.by_id.get_mut(&*named).filter(|it| it.is_imported_by(conn));
        let Some(session) = session else {
            return Err(Fault::SessionNotFound { session: named.into_owned() });
        };
        if let Err(fault) = session.continue_import(parts, conn, &params) {
            let session = session.id.clone();
            self.drop_import(parts, &session);
            return Err(fault);
        }
        let events = session.log.head().0;
        let result = json!({ "sessionId": &*session.id, "events": events }).to_string();
        session.answer_after_log(parts, conn, &Frame::result_for(id, &result));
        Ok(())
    }

    /// The old id if it is valid and free, else a new one; always with the tenant of the client.
    fn begin_import(&mut self, parts: &mut HubParts, conn: ConnId, from: &str) -> SessionId {
        let tenant = parts.clients.tenant_name(conn).map(str::to_owned);
        let plain = from.rsplit_once('.').map_or(from, |(_, plain)| plain);
        let named = match &tenant {
            Some(tenant) => named_for(Some(tenant), plain),
            None => from.into(),
        };
        let is_valid = tenant_of(&named).is_none_or(is_tenant_name) && is_session_name(plain);
        let id = if is_valid && !self.by_id.contains_key(&named) {
            named
        } else {
            self.new_session_id(&mut parts.cx, tenant.as_deref())
        };
        self.by_id.insert(Session::importing(id.clone(), conn, from.into()));
        id
    }

    /// A client disconnected during its imports: they are removed.
    pub(super) fn abandon_imports(&mut self, parts: &mut HubParts, conn: ConnId) {
        let abandoned = self.by_id.values().filter(|it| it.is_imported_by(conn));
        let abandoned: Vec<SessionId> = abandoned.map(|it| it.id.clone()).collect();
        for id in abandoned {
            self.drop_import(parts, &id);
        }
    }

    fn drop_import(&mut self, parts: &mut HubParts, id: &SessionId) {
        parts.cx.outputs.push_back(Output::Delete { session: id.clone() });
        self.remove_session(parts, id, &Fault::SessionNotFound { session: id.to_string() });
    }
}

fn is_session_name(name: &str) -> bool {
    let is_part = |it: &str| {
        !it.is_empty() && it.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    name.len() <= NAME_CHARS_MAX && name.strip_prefix("s-").is_some_and(is_part)
}

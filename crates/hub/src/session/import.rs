//! `_jackfield/import`: imports an exported session. Its events come in slices, are checked like any foreign input, and are
//! stored like other events. No client sees the session before the last slice is stored, and an incomplete import is
//! removed.

use super::{Session, SessionStage};
use crate::{
    ConnId, Hub, Note, Output, Seq, SessionId,
    context::HubContext,
    session::Sessions,
    session_name::{named_for, tenant_of},
    tenant::is_tenant_name,
};
use bytes::Bytes;
use jackfield_events::{
    AgentMessage, EventBody, PromptQueued, RawJson, SessionEvent, SessionImported, SessionSummary,
    SettingChanged, TurnStarted, UserAsked,
};
use jackfield_protocol::{Fault, Frame, Kind, acp::Method};
use serde_json::{Value, json};

/// A pending import.
#[derive(Debug)]
pub(crate) struct SessionImport {
    conn: ConnId,
    /// Its id where it was exported.
    from: SessionId,
}

const NAME_CHARS_MAX: usize = 32;

impl Sessions {
    fn find_import(&self, conn: ConnId, frame: &Frame) -> Result<SessionId, Fault> {
        let named = frame.session_id().unwrap_or_default();
        let found = self.by_id.get_key_value(&*named);
        let of_conn =
            |it: &Session| matches!(&it.stage, SessionStage::Importing(it) if it.conn == conn);
        match found.filter(|(_, it)| of_conn(it)) {
            Some((id, _)) => Ok(id.clone()),
            None => Err(Fault::SessionNotFound { session: named.into_owned() }),
        }
    }

    fn append_imported_events(
        &mut self,
        cx: &mut HubContext,
        id: &SessionId,
        lines: &[Value],
    ) -> Result<(), Fault> {
        for line in lines {
            let log = &self.by_id[id].log;
            if cx.config.limits.held_bytes_max < log.pending_bytes() {
                let what = "the journal is slower than the import".to_owned();
                return Err(Fault::Overloaded { what });
            }
            let seq = log.head().next();
            let event = event_of(seq, line)
                .map_err(|why| Fault::InvalidParams { why: format!("event {}: {why}", seq.0) })?;
            let event = event.with_session_id(id);
            if let EventBody::Queued(PromptQueued { frame, .. }) = &event.body {
                let room = cx.retained_bytes.check(&self.by_id[id].kept, frame.bytes().len());
                room.map_err(|over| Fault::Overloaded { what: over.to_string() })?;
            }
            self.append_event_at(cx, id, event.at, event.body);
        }
        Ok(())
    }

    /// Ends what was open in the log, because its agent is not here.
    fn finish_import(&mut self, cx: &mut HubContext, id: &SessionId, title: Option<&str>) {
        let session = self.by_id.get_mut(id).expect("named by import_of");
        let SessionStage::Importing(importing) =
            std::mem::replace(&mut session.stage, SessionStage::Asleep)
        else {
            unreachable!("import_of found it importing");
        };
        let why = "the session was brought here from elsewhere";
        self.end_open_work(cx, id, why, why);
        if let Some(title) = title {
            let update = json!({ "sessionUpdate": "session_info_update", "title": title });
            let params = json!({ "sessionId": &**id, "update": update }).to_string();
            let frame = Frame::notification(Method::SessionUpdate.name(), &params);
            let frame = RawJson::trusted(frame.bytes().clone());
            let turn = self.by_id[id].summary().turns;
            self.append_event(
                cx,
                id,
                EventBody::Said(AgentMessage { turn, late: 0 < turn, frame }),
            );
        }
        // The summary of this event says that the session is complete.
        self.by_id.get_mut(id).expect("named by import_of").log.complete_import();
        let seq = self.append_event(
            cx,
            id,
            EventBody::Imported(SessionImported { from: importing.from }),
        );
        cx.schedule_unattended_check(id);
        cx.note(Note::SessionImported { session: id.clone(), events: seq.0 });
    }
}

impl Hub {
    /// `{from}` starts an import and is answered with the new id; `{sessionId, lines}` continues it; `{sessionId, end}`
    /// completes it. Each answer says that the events are durable.
    pub(crate) fn on_import(&mut self, conn: ConnId, id: &str, frame: &Frame) -> Result<(), Fault> {
        let params: Value =
            serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
        if let Some(from) = params.get("from").and_then(Value::as_str) {
            self.parts.storage.require_working()?;
            let session = self.begin_import(conn, from);
            let result = json!({ "sessionId": &*session }).to_string();
            self.parts.clients.answer_request(&mut self.parts.cx, conn, id, Ok(&result));
            return Ok(());
        }
        let session = self.sessions.find_import(conn, frame)?;
        if params.get("end").is_some() {
            if let Err(fault) = self.may_keep(conn, &session) {
                self.drop_import(&session);
                return Err(fault);
            }
            self.sessions.finish_import(
                &mut self.parts.cx,
                &session,
                params.get("title").and_then(Value::as_str),
            );
        } else {
            let lines = params.get("lines").and_then(Value::as_array);
            if let Err(fault) = self.sessions.append_imported_events(
                &mut self.parts.cx,
                &session,
                lines.map_or(&[], Vec::as_slice),
            ) {
                self.drop_import(&session);
                return Err(fault);
            }
        }
        let events = self.sessions.by_id[&session].log.head().0;
        let result = json!({ "sessionId": &*session, "events": events }).to_string();
        self.answer_in(&session, conn, &Frame::result_for(id, &result));
        Ok(())
    }

    /// The old id if it is valid and free, else a new one; always with the tenant of the client.
    fn begin_import(&mut self, conn: ConnId, from: &str) -> SessionId {
        let tenant = self.parts.clients.tenant_name(conn).map(str::to_owned);
        let plain = from.rsplit_once('.').map_or(from, |(_, plain)| plain);
        let named = match &tenant {
            Some(tenant) => named_for(Some(tenant), plain),
            None => from.into(),
        };
        let is_valid_tenant = tenant_of(&named).is_none_or(is_tenant_name);
        let free = is_valid_tenant && is_name(plain) && !self.sessions.by_id.contains_key(&named);
        let session = if free {
            named
        } else {
            self.sessions.new_session_id(&mut self.parts.cx, tenant.as_deref())
        };
        let empty = SessionSummary { importing: true, ..SessionSummary::default() };
        let importing = SessionImport { conn, from: from.into() };
        self.sessions.by_id.insert(
            session.clone(),
            Session::new(session.clone(), empty, SessionStage::Importing(importing)),
        );
        session
    }

    /// A client disconnected during its imports: they are removed.
    pub(crate) fn abandon_imports(&mut self, conn: ConnId) {
        let of_conn =
            |it: &Session| matches!(&it.stage, SessionStage::Importing(it) if it.conn == conn);
        let abandoned = self.sessions.by_id.iter().filter(|(_, it)| of_conn(it));
        let abandoned: Vec<SessionId> = abandoned.map(|(id, _)| id.clone()).collect();
        for id in abandoned {
            self.drop_import(&id);
        }
    }

    fn drop_import(&mut self, id: &SessionId) {
        self.parts.cx.outputs.push_back(Output::Delete { session: id.clone() });
        self.remove(id, &Fault::SessionNotFound { session: id.to_string() });
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |it: &str| {
        !it.is_empty() && it.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    name.len() <= NAME_CHARS_MAX && name.strip_prefix("s-").is_some_and(is_part)
}

/// Parses a line of a file that anyone may have written as the event with the sequence number `seq`.
fn event_of(seq: Seq, line: &Value) -> Result<SessionEvent, String> {
    let Some(line) = line.as_str().filter(|it| !it.contains('\n')) else {
        return Err("it is no line of text".into());
    };
    let line = Bytes::copy_from_slice(line.as_bytes());
    let event = SessionEvent::decode(seq, &line).map_err(|bad| bad.why)?;
    check(&event)?;
    Ok(event)
}

/// Frames are sent to clients unchanged, so each must be what its event says.
fn check(event: &SessionEvent) -> Result<(), String> {
    let (frame, kind) = match &event.body {
        EventBody::Opened(_) if event.seq != Seq(1) => {
            return Err("a session is opened once, by its first event".into());
        }
        EventBody::Opened(_) => return Ok(()),
        _ if event.seq == Seq(1) => return Err("the first event is not `opened`".into()),
        EventBody::Said(AgentMessage { frame, .. }) => (frame, Kind::Notification),
        EventBody::Queued(PromptQueued { frame, .. })
        | EventBody::Prompted(TurnStarted { frame, .. })
        | EventBody::Asked(UserAsked { frame, .. })
        | EventBody::Configured(SettingChanged { frame, .. }) => (frame, Kind::Request),
        _ => return Ok(()),
    };
    let parsed = Frame::parse(frame.bytes().clone()).map_err(|error| error.to_string())?;
    if parsed.kind() != kind {
        return Err(format!("its frame is no {}", format!("{kind:?}").to_lowercase()));
    }
    if parsed.session_id().is_none() {
        return Err("its frame names no session".into());
    }
    Ok(())
}

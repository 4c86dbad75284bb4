//! The events of an imported session: they come in slices, are checked like any foreign input, and are stored like other
//! events.

use super::{Session, SessionStage};
use crate::{
    ConnId, Note, Seq, SessionId, context::HubContext, parts::HubParts, peer::check_imported_dirs,
};
use bytes::Bytes;
use jackfield_events::{
    AgentMessage, EventBody, INTERRUPTED_BY_IMPORT, PromptQueued, RawJson, SessionEvent,
    SessionImported, SessionSummary, SettingChanged, TurnStarted, UserAsked,
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

impl Session {
    pub(crate) fn importing(id: SessionId, conn: ConnId, from: SessionId) -> Session {
        let empty = SessionSummary { importing: true, ..SessionSummary::default() };
        Session::new(id, empty, SessionStage::Importing(SessionImport { conn, from }))
    }

    /// Whether this client is importing the session.
    pub(crate) fn is_imported_by(&self, conn: ConnId) -> bool {
        matches!(&self.stage, SessionStage::Importing(it) if it.conn == conn)
    }

    /// Appends a slice of events, or completes the import.
    pub(crate) fn continue_import(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        params: &Value,
    ) -> Result<(), Fault> {
        if params.get("end").is_none() {
            let lines = params.get("lines").and_then(Value::as_array);
            return self.append_imported_events(&mut parts.cx, lines.map_or(&[], Vec::as_slice));
        }
        if let Some(tenant) = parts.clients.find_tenant(conn) {
            let state = self.summary();
            let params: Value = serde_json::from_str(state.params.as_str()).unwrap_or_default();
            let more = params.get("additionalDirectories").and_then(Value::as_array);
            let more = more.into_iter().flatten().map(|it| it.as_str().unwrap_or_default());
            check_imported_dirs(tenant, std::iter::once(state.cwd.as_str()).chain(more))?;
        }
        self.finish_import(&mut parts.cx, params.get("title").and_then(Value::as_str));
        Ok(())
    }

    fn append_imported_events(
        &mut self,
        cx: &mut HubContext,
        lines: &[Value],
    ) -> Result<(), Fault> {
        for line in lines {
            let log = &self.log;
            if cx.config.limits.held_bytes_max < log.pending_bytes() {
                let what = "the journal is slower than the import".to_owned();
                return Err(Fault::Overloaded { what });
            }
            let seq = log.head().next();
            let event = event_of(seq, line)
                .map_err(|why| Fault::InvalidParams { why: format!("event {}: {why}", seq.0) })?;
            let event = event.with_session_id(&self.id);
            if let EventBody::Queued(PromptQueued { frame, .. }) = &event.body {
                let room = cx.retained_bytes.check(&self.kept, frame.bytes().len());
                room.map_err(|over| Fault::Overloaded { what: over.to_string() })?;
            }
            self.append_event_at(cx, event.at, event.body);
        }
        Ok(())
    }

    /// Ends what was open in the log, because its agent is not here.
    fn finish_import(&mut self, cx: &mut HubContext, title: Option<&str>) {
        let SessionStage::Importing(importing) =
            std::mem::replace(&mut self.stage, SessionStage::Asleep)
        else {
            return;
        };
        let why = INTERRUPTED_BY_IMPORT;
        self.end_open_work(cx, why, why);
        if let Some(title) = title {
            let update = json!({ "sessionUpdate": "session_info_update", "title": title });
            let params = json!({ "sessionId": &*self.id, "update": update }).to_string();
            let frame = Frame::notification(Method::SessionUpdate.name(), &params);
            let frame = RawJson::trusted(frame.bytes().clone());
            let turn = self.summary().turns;
            self.append_event(cx, EventBody::Said(AgentMessage { turn, late: 0 < turn, frame }));
        }
        // The summary of this event says that the session is complete.
        self.log.complete_import();
        let seq =
            self.append_event(cx, EventBody::Imported(SessionImported { from: importing.from }));
        cx.schedule_unattended_check(&self.id);
        cx.note(Note::SessionImported { session: self.id.clone(), events: seq.0 });
    }
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

//! `session/new`: a new session, which requests itself from an agent as soon as it has one.

use super::Sessions;
use crate::{
    AgentId, ConnId, SessionId,
    context::HubContext,
    parts::HubParts,
    peer::check_setup,
    session::{Session, SessionOpening},
    session_name::{is_session_id_of, named_for},
};
use jackfield_events::RequestKey;
use jackfield_protocol::{Fault, Frame};
use serde_json::Value;

impl Sessions {
    pub(crate) fn open_session(
        &mut self,
        parts: &mut HubParts,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        check_setup(frame)?;
        let key = RequestKey::from_frame(frame).map_err(|why| Fault::InvalidParams { why })?;
        if let Some(key) = &key
            && self.attach_to_keyed_session(parts, conn, id, key)?
        {
            return Ok(());
        }
        let params: Value = serde_json::from_str(frame.params().unwrap_or("{}"))
            .map_err(|error| Fault::InvalidParams { why: error.to_string() })?;
        let Some(cwd) = params.get("cwd").and_then(Value::as_str) else {
            return Err(Fault::InvalidParams { why: "`cwd` is missing".into() });
        };
        refuse_windows_path(cwd)?;
        parts.storage.require_working()?;
        let tenant = parts.clients.tenant_name(conn).map(str::to_owned);
        self.check_session_quota(parts, tenant.as_deref())?;
        parts.cx.config.mcp.check_names(&params)?;
        let launch = parts.clients.choose_launch(&parts.cx, conn, &params, cwd)?;
        // A request that names an agent gets that one; otherwise it gets the agent of the connection.
        let names_agent = params.pointer("/_meta/jackfield/agent").is_some();
        let Some(it) = parts.clients.connections.get(&conn) else {
            return Err(Fault::Stopping);
        };
        let fallen = if names_agent { Vec::new() } else { it.fallen.clone() };
        let charge = parts.cx.retained_bytes.charge(&it.kept, frame.bytes().len());
        let charge = charge.map_err(|over| Fault::Overloaded { what: over.to_string() })?;
        let session = match self.requested_session_id(tenant.as_deref(), &params)? {
            Some(session) => session,
            None => self.new_session_id(&mut parts.cx, tenant.as_deref()),
        };
        let opening = SessionOpening::new(conn, id, frame, key, charge, launch, fallen);
        self.by_id.insert(Session::opening(session.clone(), opening));
        self.find_agent(parts, &session);
        Ok(())
    }

    /// The agent answered `session/new`.
    pub(super) fn on_session_opened(
        &mut self,
        parts: &mut HubParts,
        agent: AgentId,
        id: &SessionId,
        frame: &Frame,
    ) {
        let name = frame.session_id().filter(|it| self.is_free_name(parts, agent, id, it));
        self.with(id, |it| it.on_opened(parts, agent, frame, name.as_deref()));
    }

    /// A client disconnected while its sessions were being opened: they are removed.
    pub(super) fn abandon_openings(&mut self, parts: &mut HubParts, conn: ConnId) {
        for mut session in self.by_id.remove_if(|it| it.is_opened_by(conn)) {
            if let Some(agent) = session.agent {
                session.leave_agent(parts, agent, "");
            }
        }
    }

    /// The id that the client chose for its session, which is how it can name the session before it is open.
    fn requested_session_id(
        &self,
        tenant: Option<&str>,
        params: &Value,
    ) -> Result<Option<SessionId>, Fault> {
        let Some(requested) = params.pointer("/_meta/jackfield/session") else { return Ok(None) };
        let invalid = |why: &str| Fault::InvalidParams {
            why: format!("`_meta.jackfield.session` {why}: omit it, and the hub chooses an id"),
        };
        let requested = requested.as_str().filter(|it| is_session_id_of(tenant, it));
        let Some(requested) = requested else {
            return Err(invalid("is not a session id of this client"));
        };
        let session = SessionId::from(requested);
        if self.by_id.contains_key(&session) || self.forks.contains_key(&session) {
            return Err(invalid("is in use"));
        }
        Ok(Some(session))
    }

    /// A new session id of this tenant.
    pub(super) fn new_session_id(
        &mut self,
        cx: &mut HubContext,
        tenant: Option<&str>,
    ) -> SessionId {
        loop {
            let name = named_for(tenant, &cx.session_names.session());
            if !self.by_id.contains_key(&name) && !self.forks.contains_key(&name) {
                return name;
            }
        }
    }
}

/// An editor on Windows that starts Jackfield inside WSL sends its own paths, with which no agent can work.
fn refuse_windows_path(cwd: &str) -> Result<(), Fault> {
    let has_drive = matches!(cwd.as_bytes(), [drive, b':', ..] if drive.is_ascii_alphabetic());
    if !has_drive && !cwd.starts_with(r"\\") {
        return Ok(());
    }
    let why = format!(
        "`cwd` is a path of Windows, and the daemon runs on another system: `{cwd}`. Open the \
         project inside WSL, so that the editor sends paths of WSL"
    );
    Err(Fault::InvalidParams { why })
}

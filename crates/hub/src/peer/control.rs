//! The control protocol, `_jackfield/*`, which commands and the web console use beyond ACP.

use crate::{
    ConnId, Environment, Hub, Launch, Output, SessionId,
    context::HubContext,
    peer::Clients,
    session::{Session, rfc3339},
    session_name::known_to,
};
use jackfield_protocol::{Fault, Frame, redact};
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc};

impl Clients {
    pub(super) fn on_connect_request(
        &mut self,
        cx: &mut HubContext,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        self.set_connect_options(cx, conn, frame)?;
        let launch = self.connections.get(&conn).and_then(|it| it.launch.as_ref());
        // A client that knows a command for the agent may prefer to send that.
        let by_name = launch.is_some_and(|it| it.argv.is_empty());
        let result = if by_name { r#"{"command":false}"# } else { "{}" };
        self.answer_request(cx, conn, id, Ok(result));
        Ok(())
    }

    pub(super) fn on_stop_request(&mut self, cx: &mut HubContext, conn: ConnId, id: &str) {
        self.answer_request(cx, conn, id, Ok("{}"));
        cx.outputs.push_back(Output::StopAsked);
    }

    /// Before `initialize`: this is the connection of a gateway for one client. It gets sequence numbers, whether the client
    /// wants them or not.
    pub(crate) fn mark_as_relay(&mut self, conn: ConnId) {
        if let Some(it) =
            self.connections.get_mut(&conn).filter(|it| it.initialize_params.is_none())
        {
            it.relay = true;
        }
    }

    /// Before `initialize`: sets the agent of the sessions of this connection, and its environment.
    pub(crate) fn set_connect_options(
        &mut self,
        cx: &HubContext,
        conn: ConnId,
        frame: &Frame,
    ) -> Result<(), Fault> {
        let invalid = |why: &str| Fault::InvalidParams { why: why.to_owned() };
        let params: Value =
            serde_json::from_str(frame.params().unwrap_or("{}")).unwrap_or_default();
        if params["unenforced"] == true
            && self.find_tenant(conn).is_none()
            && let Some(it) = self.connections.get_mut(&conn)
        {
            it.unenforced = true;
        }
        let launch = match params.get("agent") {
            None => return Ok(()),
            Some(Value::String(name)) => cx.config.find_agent_launch(name)?,
            Some(agent) => {
                let name = agent.get("name").and_then(Value::as_str);
                let argv = agent.get("argv").and_then(strings).filter(|it| !it.is_empty());
                let (Some(name), Some(argv)) = (name, argv) else {
                    return Err(invalid("`agent` needs a `name` and a non-empty `argv`"));
                };
                Launch { name: name.into(), argv, cwd: PathBuf::new(), env: None }
            }
        };
        let cwd = params.get("cwd").and_then(Value::as_str).map(PathBuf::from);
        // The environment of an agent decides what it runs.
        let may_set = self.find_tenant(conn).is_none_or(|it| it.commands);
        let env = params.get("env").filter(|_| may_set).and_then(Value::as_object).map(|env| {
            let pair =
                |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
            Arc::new(Environment(env.iter().filter_map(pair).collect()))
        });
        let Some(it) = self.connections.get_mut(&conn) else { return Ok(()) };
        it.launch =
            Some(Launch { cwd: cwd.unwrap_or(launch.cwd), env: env.or(launch.env), ..launch });
        Ok(())
    }
}

impl Hub {
    pub(super) fn on_sessions(&mut self, conn: ConnId, id: &str) {
        let rows: Vec<Value> = self.sessions_of(conn).map(|it| self.row(it)).collect();
        let mut answer = json!({ "sessions": rows });
        if let Some(storage) = self.storage_trouble(conn) {
            answer["storage"] = storage;
        }
        self.parts.clients.answer_request(&mut self.parts.cx, conn, id, Ok(&answer.to_string()));
    }

    pub(super) fn on_asks(&mut self, conn: ConnId, id: &str) {
        let rows = self.open_asks(conn);
        self.parts.clients.answer_request(
            &mut self.parts.cx,
            conn,
            id,
            Ok(&json!({ "asks": rows }).to_string()),
        );
    }

    pub(super) fn on_status(&mut self, conn: ConnId, id: &str) {
        let status = self.status(conn).to_string();
        self.parts.clients.answer_request(&mut self.parts.cx, conn, id, Ok(&status));
    }

    /// One session, for `ps` and `sessions`.
    fn row(&self, (id, session): (&SessionId, &Session)) -> Value {
        let state = &session.summary();
        let mut row = json!({
            "sessionId": &**id,
            "agent": &*state.agent,
            "argv": redact::argv(&state.argv),
            "cwd": state.cwd,
            "title": session.title(),
            "state": self.shown(id, session),
            "turns": state.turns,
            "queued": state.queue.len(),
            "asks": session.asks.len(),
            "clients": session.subscribers.len(),
            "unheard": self.parts.agents.find_unenforced_policy(&self.parts.cx, session),
            "pid": session.agent.and_then(|it| self.parts.agents.processes.get(&it)?.pid),
            "events": session.log.head().0,
            "openedAt": rfc3339(state.opened_at),
            "updatedAt": rfc3339(state.updated_at),
            "agentSession": &*state.agent_session,
        });
        if let Some(fallback) = &state.fallback {
            row["fallback"] = serde_json::from_str(fallback.as_str()).unwrap_or_default();
        }
        self.tell_doing(id, session, &mut row);
        row
    }

    fn status(&self, conn: ConnId) -> Value {
        let tenant = self.parts.clients.tenant_name(conn);
        let is_its = |of: Option<&str>| tenant.is_none() || of == tenant;
        let agents = self
            .parts
            .agents
            .processes
            .values()
            .filter(|it| is_its(self.parts.clients.tenant_of_agent(it)));
        let clients = self
            .parts
            .clients
            .connections
            .keys()
            .filter(|it| is_its(self.parts.clients.tenant_name(**it)));
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "sessions": known_to(tenant, &self.sessions.by_id).count(),
            "agents": agents.count(),
            "clients": clients.count(),
            "stopping": self.parts.cx.is_stopping,
            "storage": self.storage_json(conn),
        })
    }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|it| it.as_str().map(str::to_owned)).collect()
}

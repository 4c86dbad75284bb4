//! `initialize`: what the hub reports to clients, and what it sends to agents.

use super::conn::PeerCapabilities;
use crate::{
    ConnId, Hub, Seq,
    agent::{AgentStart, SlotOwner},
    limits,
    peer::Clients,
    session::tell_fallen,
};
use jackfield_protocol::{Fault, Frame};
use serde_json::{Map, Value, json};

/// The protocol version of the hub on both sides.
const VERSION: u64 = 1;

/// Whether a client wants notices of the hub, by the parameters of its `initialize`.
pub fn wants_notices(initialize: &Value) -> bool {
    let ours = initialize.pointer("/clientCapabilities/_meta/jackfield");
    ours.is_some_and(|it| it.get("notices") != Some(&Value::Bool(false)))
}

impl Clients {
    /// What a client gets about the agent that answers its `initialize`.
    pub(crate) fn describe_capabilities(&self, conn: ConnId, agent: &str, told: &str) -> String {
        let told = hub_capabilities(Some(told), self.is_operator(conn));
        let fallen = self.connections.get(&conn).map_or(&[][..], |it| &it.fallen);
        tell_fallen(&told, agent, fallen).unwrap_or(told)
    }
}

impl Hub {
    pub(crate) fn on_initialize(
        &mut self,
        conn: ConnId,
        id: &str,
        frame: &Frame,
    ) -> Result<(), Fault> {
        check_setup(frame)?;
        let params: Value = serde_json::from_str(frame.params().unwrap_or("{}"))
            .map_err(|error| Fault::InvalidParams { why: error.to_string() })?;
        let launch = {
            let it =
                self.parts.clients.connections.get_mut(&conn).expect("the caller found this conn");
            if it.initialize_params.is_some() {
                return Err(Fault::InvalidRequest { why: "already initialized".into() });
            }
            it.initialize_params = Some(frame.params().unwrap_or("{}").into());
            it.name = params.pointer("/clientInfo/name").and_then(Value::as_str).map(Into::into);
            let ours = params.pointer("/clientCapabilities/_meta/jackfield");
            it.aware = ours.is_some() || it.relay;
            it.notices = wants_notices(&params);
            it.capabilities = abilities(&params);
            it.launch.as_ref()
        };
        if launch.is_some() {
            // The answer has the capabilities of the agent, so the agent starts first.
            self.introduce(conn, id);
        } else {
            let told = hub_capabilities(None, self.parts.clients.is_operator(conn));
            self.parts.clients.answer_request(&mut self.parts.cx, conn, id, Ok(&told));
        }
        Ok(())
    }
}

impl Hub {
    /// Finds or starts the agent of a connection, which answers its `initialize`.
    pub(crate) fn introduce(&mut self, conn: ConnId, request: &str) {
        let Some(it) = self.parts.clients.connections.get(&conn) else { return };
        let (Some(launch), hello) = (it.launch.clone(), it.initialize_params.clone()) else {
            return;
        };
        let seat = SlotOwner::Client(conn);
        let mut found = self.take_seat(&launch, hello.as_deref(), &seat);
        if found.is_none() {
            if let Err(fault) = self.may_be_alive(self.parts.clients.tenant_name(conn)) {
                return self.parts.clients.answer_request(
                    &mut self.parts.cx,
                    conn,
                    request,
                    Err(&fault),
                );
            }
            found =
                self.parts.agents.take_warm_agent(&self.parts.cx, &launch, hello.as_deref(), &seat);
        }
        if found.is_none()
            && let Err(fault) = self.parts.agents.check_breaker(&self.parts.cx, &launch.name)
        {
            return self.introduce_elsewhere(conn, request, &fault);
        }
        let agent = match found {
            Some(agent) => agent,
            None if self.has_place(&AgentStart::Hello(conn, request.into())) => {
                self.parts.agents.spawn_agent(&mut self.parts.cx, launch, hello, Some(seat))
            }
            None => return,
        };
        if let Some(it) = self.parts.clients.connections.get_mut(&conn) {
            it.spare = Some(agent);
        }
        let spare = self.parts.agents.processes.get_mut(&agent).expect("found above");
        let name = spare.launch.name.clone();
        match spare.initialize_result.clone() {
            Some(told) => {
                let told = self.parts.clients.describe_capabilities(conn, &name, &told);
                self.parts.clients.answer_request(&mut self.parts.cx, conn, request, Ok(&told));
            }
            None => spare.pending_initialize.push((conn, request.into())),
        }
    }
}

/// Parameters that are stored with the client or the session must not be large.
pub(crate) fn check_setup(frame: &Frame) -> Result<(), Fault> {
    let (size, max) = (frame.params().map_or(0, str::len), limits::SETUP_BYTES_MAX);
    if size <= max {
        return Ok(());
    }
    let method = frame.method().unwrap_or_default();
    let what = format!(
        "`{method}` has {size} bytes of parameters, and at most {max} are kept; shorten them"
    );
    Err(Fault::Overloaded { what })
}

fn abilities(params: &Value) -> PeerCapabilities {
    let flag = |path: &str| params.pointer(path).and_then(Value::as_bool).unwrap_or(false);
    let object = |path: &str| params.pointer(path).is_some_and(|it| !it.is_null());
    PeerCapabilities {
        read_files: flag("/clientCapabilities/fs/readTextFile"),
        write_files: flag("/clientCapabilities/fs/writeTextFile"),
        terminal: flag("/clientCapabilities/terminal"),
        elicitation: object("/clientCapabilities/elicitation"),
    }
}

/// The answer to a client: that of the agent, and what the hub offers for every session. A client that is not the
/// operator is told so.
fn hub_capabilities(agent: Option<&str>, is_operator: bool) -> String {
    let mut result = agent
        .and_then(|it| serde_json::from_str::<Map<String, Value>>(it).ok())
        .unwrap_or_else(without_agent);
    result.insert("protocolVersion".into(), VERSION.into());
    let capabilities = object(&mut result, "agentCapabilities");
    capabilities.insert("loadSession".into(), true.into());
    let sessions = object(capabilities, "sessionCapabilities");
    for ability in ["list", "resume", "close", "delete", "fork"] {
        sessions.entry(ability).or_insert_with(|| json!({}));
    }
    let mut ours = json!({ "attach": true });
    if !is_operator {
        ours["operator"] = false.into();
    }
    object(&mut result, "_meta").insert("jackfield".into(), ours);
    Value::from(result).to_string()
}

fn without_agent() -> Map<String, Value> {
    let Value::Object(map) = json!({
        "protocolVersion": VERSION,
        "agentInfo": { "name": "jackfield", "title": "Jackfield", "version": env!("CARGO_PKG_VERSION") },
        "agentCapabilities": {
            "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
            "mcpCapabilities": { "http": true, "sse": true },
        },
        "authMethods": [],
    }) else {
        unreachable!("written as an object")
    };
    map
}

fn object<'a>(parent: &'a mut Map<String, Value>, name: &str) -> &'a mut Map<String, Value> {
    let member = parent.entry(name).or_insert_with(|| json!({}));
    if !member.is_object() {
        *member = json!({});
    }
    member.as_object_mut().expect("made an object above")
}

/// The answer to a client that gets sequence numbers: the last one of the log.
pub(crate) fn with_seq(result: &str, seq: Seq) -> String {
    let mut result: Map<String, Value> = serde_json::from_str(result).unwrap_or_default();
    object(&mut result, "_meta").insert("jackfield".into(), json!({ "seq": seq.0 }));
    Value::from(result).to_string()
}

/// The parameters for an agent: those of the client that it is started for, in version 1.
pub(crate) fn agent_hello(client: Option<&str>) -> String {
    let mut params = client
        .and_then(|it| serde_json::from_str::<Map<String, Value>>(it).ok())
        .unwrap_or_default();
    params.insert("protocolVersion".into(), VERSION.into());
    if !params.contains_key("clientInfo") {
        let info = json!({ "name": "jackfield", "version": env!("CARGO_PKG_VERSION") });
        params.insert("clientInfo".into(), info);
    }
    Value::from(params).to_string()
}

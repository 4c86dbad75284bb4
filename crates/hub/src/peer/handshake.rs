//! `initialize`: what the hub reports to clients, and what it sends to agents.

use super::{Clients, conn::PeerCapabilities};
use crate::{ConnId, Seq, fallback, limits};
use jackfield_protocol::{Fault, Frame};
use serde_json::{Map, Value, json};

/// The protocol version of the hub on both sides.
pub(crate) const PROTOCOL_VERSION: u64 = 1;

/// Whether a client wants notices of the hub, by the parameters of its `initialize`.
pub fn wants_notices(initialize: &Value) -> bool {
    let hub_meta = initialize.pointer("/clientCapabilities/_meta/jackfield");
    hub_meta.is_some_and(|it| it.get("notices") != Some(&Value::Bool(false)))
}

impl Clients {
    /// Stores what a client reports about itself. Returns whether an agent answers its `initialize`.
    pub(crate) fn set_initialize_params(
        &mut self,
        conn: ConnId,
        frame: &Frame,
    ) -> Result<bool, Fault> {
        check_setup(frame)?;
        let params: Value = serde_json::from_str(frame.params().unwrap_or("{}"))
            .map_err(|error| Fault::InvalidParams { why: error.to_string() })?;
        let Some(it) = self.connections.get_mut(&conn) else { return Err(Fault::Stopping) };
        if it.initialize_params.is_some() {
            return Err(Fault::InvalidRequest { why: "already initialized".into() });
        }
        it.initialize_params = Some(frame.params().unwrap_or("{}").into());
        it.name = params.pointer("/clientInfo/name").and_then(Value::as_str).map(Into::into);
        it.aware = params.pointer("/clientCapabilities/_meta/jackfield").is_some() || it.relay;
        it.notices = wants_notices(&params);
        it.capabilities = client_capabilities(&params);
        Ok(it.launch.is_some())
    }

    /// The answer to `initialize` of a client that named no agent.
    pub(crate) fn describe_hub(&self, conn: ConnId) -> String {
        hub_capabilities(None, self.is_operator(conn))
    }

    /// The answer to `initialize` of a client: `result` of its agent, and what the hub offers.
    pub(crate) fn describe_agent(&self, conn: ConnId, agent: &str, result: &str) -> String {
        let result = hub_capabilities(Some(result), self.is_operator(conn));
        let fallen = self.connections.get(&conn).map_or(&[][..], |it| &it.fallen);
        fallback::add_to_result(&result, agent, fallen).unwrap_or(result)
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

fn client_capabilities(params: &Value) -> PeerCapabilities {
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
    result.insert("protocolVersion".into(), PROTOCOL_VERSION.into());
    let capabilities = object(&mut result, "agentCapabilities");
    capabilities.insert("loadSession".into(), true.into());
    let sessions = object(capabilities, "sessionCapabilities");
    for ability in ["list", "resume", "close", "delete", "fork"] {
        sessions.entry(ability).or_insert_with(|| json!({}));
    }
    let mut hub_meta = json!({ "attach": true });
    if !is_operator {
        hub_meta["operator"] = false.into();
    }
    object(&mut result, "_meta").insert("jackfield".into(), hub_meta);
    Value::from(result).to_string()
}

fn without_agent() -> Map<String, Value> {
    let Value::Object(map) = json!({
        "protocolVersion": PROTOCOL_VERSION,
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

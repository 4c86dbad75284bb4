//! What a request requires of the host that is chosen for it.

use super::{
    config::{Host, HostId},
    frame_fields::parse_params,
};
use jackfield_events::AgentName;
use jackfield_hub_client::jackfield_meta;
use jackfield_protocol::{Fault, Frame};
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct PlacementRequest {
    pub(super) agent: Option<String>,
    labels: Vec<String>,
    /// The client's default host, which may have started an agent for it.
    pub(super) preferred_host: Option<HostId>,
}

impl PlacementRequest {
    /// `connect` is the `_jackfield/connect` of the client, `default_agent` the agent of sessions
    /// that do not name one.
    pub(super) fn parse(
        frame: &Frame,
        connect: Option<&Frame>,
        default_agent: Option<&AgentName>,
        preferred_host: Option<HostId>,
    ) -> Result<PlacementRequest, Fault> {
        let meta = jackfield_meta(frame).and_then(|it| serde_json::from_str::<Value>(&it).ok());
        let meta = meta.unwrap_or_default();
        let labels = match &meta["labels"] {
            Value::Null => Some(Vec::new()),
            labels => serde_json::from_value::<Vec<String>>(labels.clone()).ok(),
        };
        let labels = labels.ok_or_else(|| Fault::InvalidParams {
            why: "`_meta.jackfield.labels` is not a list of `key=value` strings".to_owned(),
        })?;
        let agent = match meta["agent"].as_str() {
            Some(name) => Some(name.to_owned()),
            None => required_agent(connect, default_agent),
        };
        Ok(PlacementRequest { agent, labels, preferred_host })
    }

    /// What the host lacks.
    pub(super) fn unmet_requirement(&self, host: &Host) -> Option<String> {
        if let Some(label) = self.labels.iter().find(|it| !host.has_label(it)) {
            return Some(format!("lacks label `{label}`"));
        }
        let agent = self.agent.as_deref().filter(|it| !host.agents.contains_key(*it))?;
        Some(format!("has no agent `{agent}`"))
    }
}

/// The agent that a host must have for the client's sessions. A command line of the client may run
/// on any host.
fn required_agent(connect: Option<&Frame>, default_agent: Option<&AgentName>) -> Option<String> {
    match connect.and_then(parse_params).as_ref().map(|it| &it["agent"]) {
        Some(Value::String(name)) => Some(name.clone()),
        Some(Value::Object(_)) => None,
        _ => default_agent.map(ToString::to_string),
    }
}

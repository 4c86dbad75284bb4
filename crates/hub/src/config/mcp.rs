//! The MCP servers of the configuration: `[mcp.NAME]`, and `mcp` of `[agents.NAME]`.

use jackfield_events::AgentName;
use jackfield_protocol::Fault;
use serde_json::Value;
use std::collections::BTreeMap;

/// The configured MCP servers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpConfig {
    /// In the form of ACP, by name.
    pub servers: BTreeMap<String, Value>,
    /// The names of the servers that every session of an agent gets.
    pub of_agents: BTreeMap<AgentName, Vec<String>>,
}

impl McpConfig {
    /// Fails if a request names a server that is not configured.
    pub(crate) fn check_names(&self, params: &Value) -> Result<(), Fault> {
        let invalid = |why: String| Err(Fault::InvalidParams { why });
        let names = match params.pointer("/_meta/jackfield/mcp") {
            None | Some(Value::Null) => return Ok(()),
            Some(Value::Array(names)) => names,
            Some(_) => return invalid("`_meta.jackfield.mcp` is not an array of names".to_owned()),
        };
        let is_unknown = |it: &&Value| it.as_str().is_none_or(|it| !self.servers.contains_key(it));
        let Some(name) = names.iter().find(is_unknown) else { return Ok(()) };
        let name = name.as_str().unwrap_or_default();
        let known: Vec<String> = self.servers.keys().map(|it| format!("`{it}`")).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        invalid(format!(
            "no MCP server `{name}` is configured: add [mcp.{name}] to config.toml of the daemon; configured are \
             {known}"
        ))
    }

    /// The servers of a session: those that its request names, and those of its agent.
    pub(crate) fn of_session<'a>(
        &'a self,
        params: &Value,
        agent: &str,
    ) -> impl Iterator<Item = &'a Value> + use<'a> {
        let named = params.pointer("/_meta/jackfield/mcp").and_then(Value::as_array);
        let named = named.into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned));
        let of_agent = self.of_agents.get(agent).into_iter().flatten().cloned();
        let names: Vec<String> = named.chain(of_agent).collect();
        names.into_iter().filter_map(|it| self.servers.get(&it))
    }
}

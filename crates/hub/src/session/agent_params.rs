//! The parameters of `session/new`, and of the methods that restore a session, as the agent gets them: those of the
//! client, with the configured MCP servers.

use crate::{Config, agent::Agent};
use jackfield_protocol::{
    Fault,
    mcp_servers::{McpServers, find_unsupported_server, parse_mcp_servers},
};
use serde_json::{Value, json};

/// What is known about a session when its agent is asked for it.
pub(super) struct AgentParams<'a> {
    pub(super) config: &'a Config,
    pub(super) agent: &'a str,
    pub(super) cwd: &'a str,
    /// The client accepts that rules are not enforced.
    pub(super) unenforced: bool,
}

impl AgentParams<'_> {
    /// The parameters for the agent. The text stays the same if nothing has to be changed.
    pub(super) fn compose(&self, params: &str) -> Result<String, Fault> {
        let mut value: Value = serde_json::from_str(params).unwrap_or_default();
        let has_changed_servers = self.add_servers(&mut value)?;
        let has_changed_approval = self.remove_unenforceable_approval(&mut value);
        let has_changed = has_changed_servers || has_changed_approval;
        Ok(if has_changed { value.to_string() } else { params.to_owned() })
    }

    /// Adds the MCP servers that the request names and those of the agent. A server of the client wins over a configured
    /// one of the same name. Returns whether the parameters have changed.
    fn add_servers(&self, params: &mut Value) -> Result<bool, Fault> {
        let invalid = |why: String| Fault::InvalidParams { why };
        let sent = &params["mcpServers"];
        let is_array_of_objects = sent.as_array().is_some_and(|it| it.iter().all(Value::is_object));
        let mut servers = if is_array_of_objects {
            sent.as_array().cloned().unwrap_or_default()
        } else {
            let McpServers { servers, names } = parse_mcp_servers(sent).map_err(invalid)?;
            if let Some(name) = names.first() {
                let why = format!(
                    "name configured MCP servers such as `{name}` in `_meta.jackfield.mcp`"
                );
                return Err(invalid(why));
            }
            servers
        };
        let sent_count = servers.len();
        for server in self.config.mcp.of_session(params, self.agent) {
            if !servers.iter().any(|it| it["name"] == server["name"]) {
                servers.push(server.clone());
            }
        }
        let has_changed = !is_array_of_objects || sent_count < servers.len();
        if has_changed {
            params["mcpServers"] = json!(servers);
        }
        Ok(has_changed)
    }

    /// Removes `_meta.jackfield.approve`, with which an adapter starts a program that does not ask, if rules can only be
    /// enforced when it asks. Returns whether the parameters have changed.
    fn remove_unenforceable_approval(&self, params: &mut Value) -> bool {
        if self.unenforced || !self.config.policies.requires_asking(self.cwd) {
            return false;
        }
        let meta = params.pointer_mut("/_meta/jackfield").and_then(Value::as_object_mut);
        meta.is_some_and(|it| it.remove("approve").is_some())
    }
}

/// Why the agent cannot use a configured server. Servers of the client are passed on as they are: the client knows the
/// capabilities of the agent.
pub(super) fn check_configured_servers(
    config: &Config,
    agent: &Agent,
    params: &Value,
) -> Result<(), Fault> {
    let servers: Vec<Value> = config.mcp.of_session(params, &agent.launch.name).cloned().collect();
    if servers.is_empty() {
        return Ok(());
    }
    let result = agent.initialize_result.as_deref().unwrap_or("{}");
    let result: Value = serde_json::from_str(result).unwrap_or_default();
    let unsupported = find_unsupported_server(&result, &servers);
    unsupported.map_or(Ok(()), |why| Err(Fault::InvalidParams { why }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ConnId, Hub, Input, McpConfig, Output, Time};
    use jackfield_policy::{PolicySet, parse_policy};
    use jackfield_protocol::Frame;
    use std::sync::Arc;

    /// The messages to an agent and to the client that opens a session with these parameters.
    fn open(config: Config, params: &Value) -> Vec<String> {
        let mut hub = Hub::new(config, Time(1), []);
        let conn = ConnId(1);
        let mut handle = |input: Input| -> Vec<Output> {
            hub.handle(Time(2), input);
            std::iter::from_fn(|| hub.poll_output()).collect()
        };
        handle(Input::ClientOpened { conn, peer: None });
        let mut outputs = Vec::new();
        let connect = json!({ "agent": { "name": "a", "argv": ["a"] } });
        let requests = [
            ("_jackfield/connect", &connect),
            ("initialize", &json!({ "protocolVersion": 1 })),
            ("session/new", params),
        ];
        for (id, (method, params)) in requests.into_iter().enumerate() {
            let frame = Frame::request(&id.to_string(), method, &params.to_string());
            outputs.extend(handle(Input::ClientSpoke { conn, frame }));
        }
        let agent = outputs.iter().find_map(|it| match it {
            Output::Spawn { agent, .. } => Some(*agent),
            _ => None,
        });
        let agent = agent.expect("an agent was started");
        let frame = Frame::parse_str(r#"{"id":1,"result":{"protocolVersion":1}}"#).unwrap();
        outputs.extend(handle(Input::AgentSpoke { agent, frame }));
        let text = |it: &Output| match it {
            Output::ToAgent { text, .. } | Output::ToClient { text, .. } => {
                Some(String::from_utf8_lossy(text).into_owned())
            }
            _ => None,
        };
        outputs.iter().filter_map(text).collect()
    }

    /// The parameters of the `session/new` that the agent gets.
    fn opened(config: Config, params: &Value) -> Value {
        let messages = open(config, params);
        let sent = messages.iter().find(|it| it.contains("session/new"));
        let sent: Value = serde_json::from_str(sent.expect("a session was requested")).unwrap();
        sent["params"].clone()
    }

    fn with_servers() -> Config {
        let server = |name: &str| (name.to_owned(), program(name, "configured"));
        let web =
            json!({ "type": "http", "name": "web", "url": "https://x.example", "headers": [] });
        let servers = [server("git"), server("files"), ("web".to_owned(), web)].into();
        let of_agents = [("a".into(), vec!["files".to_owned()])].into();
        Config { mcp: Arc::new(McpConfig { servers, of_agents }), ..Config::default() }
    }

    fn program(name: &str, command: &str) -> Value {
        json!({ "name": name, "command": command, "args": [], "env": [] })
    }

    #[test]
    fn agent_is_asked_to_approve_everything_only_if_no_rule_needs_its_requests() {
        let meta = json!({ "jackfield": { "approve": "all" } });
        let params = json!({ "cwd": "/x", "mcpServers": [], "_meta": meta });
        let is_asked = |rule: &str| {
            let user = parse_policy(rule, "policy.toml").unwrap();
            let policies = Arc::new(PolicySet { user, ..PolicySet::default() });
            let sent = opened(Config { policies, ..Config::default() }, &params);
            sent.pointer("/_meta/jackfield/approve").is_some()
        };
        assert!(is_asked(""));
        assert!(is_asked("[[rule]]\ndo = \"allow\"\nrun = \"ls\"\n"));
        for effect in ["ask", "deny"] {
            let rule = format!("[[rule]]\ndo = \"{effect}\"\nrun = \"git push\"\n");
            assert!(!is_asked(&rule), "{effect}");
        }
    }

    #[test]
    fn session_gets_the_servers_that_it_names_and_those_of_its_agent() {
        let own = program("files", "own");
        let params = json!({ "cwd": "/x", "mcpServers": [own],
                             "_meta": { "jackfield": { "mcp": ["git"] } } });
        let sent = opened(with_servers(), &params);
        assert_eq!(sent["mcpServers"], json!([own, program("git", "configured")]));
        let sent = opened(with_servers(), &json!({ "cwd": "/x", "mcpServers": [] }));
        assert_eq!(sent["mcpServers"], json!([program("files", "configured")]));
    }

    #[test]
    fn missing_servers_and_a_map_become_the_array_of_acp() {
        let sent = opened(Config::default(), &json!({ "cwd": "/x" }));
        assert_eq!(sent["mcpServers"], json!([]));
        let map = json!({ "cwd": "/x", "mcpServers": { "git": { "command": "x" } } });
        assert_eq!(opened(Config::default(), &map)["mcpServers"], json!([program("git", "x")]));
    }

    #[test]
    fn unknown_name_and_unsupported_transport_are_refused_with_the_name() {
        for (name, why) in [("cvs", "no MCP server `cvs` is configured"), ("web", "over http")] {
            let meta = json!({ "jackfield": { "mcp": [name] } });
            let params = json!({ "cwd": "/x", "mcpServers": [], "_meta": meta });
            let messages = open(with_servers(), &params);
            let is_refusal = |it: &&String| it.contains("-32602") && it.contains(why);
            assert_eq!(messages.iter().filter(is_refusal).count(), 1, "{messages:?}");
            assert!(!messages.iter().any(|it| it.contains("session/new")), "{messages:?}");
        }
    }
}

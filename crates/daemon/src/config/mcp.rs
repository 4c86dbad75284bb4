//! `[mcp.NAME]`: MCP servers that sessions and agents can name.

use super::{Settings, document::InvalidSetting};
use jackfield_hub::McpConfig;
use jackfield_protocol::mcp_servers::parse_mcp_server;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `[mcp.NAME]`: a program, or a server at an address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpServerSettings {
    /// The program that is started for each session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables set for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The address of a server that already runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of the requests to it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// `http` or `sse`; the default for an address is `http`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
}

impl McpServerSettings {
    /// The server in the form of ACP, or what is invalid.
    fn to_acp(&self, name: &str) -> Result<serde_json::Value, String> {
        let written = serde_json::to_value(self).map_err(|error| error.to_string())?;
        let described = parse_mcp_server(name, &written)?;
        described.ok_or_else(|| format!("MCP server `{name}` is disabled"))
    }
}

impl Settings {
    /// Returns what is invalid.
    pub(super) fn check_mcp(&self) -> Result<(), InvalidSetting> {
        for (name, server) in &self.mcp {
            server.to_acp(name).map_err(|why| InvalidSetting::new(&["mcp", name], why))?;
        }
        for (agent, settings) in &self.agents {
            if let Some(name) = settings.mcp.iter().find(|it| !self.mcp.contains_key(*it)) {
                let reason = format!(
                    "`mcp` of [agents.{agent}] names `{name}`, but there is no [mcp.{name}]"
                );
                return Err(InvalidSetting::new(&["agents", agent, "mcp"], reason));
            }
        }
        Ok(())
    }

    pub(crate) fn mcp_config(&self) -> McpConfig {
        let server =
            |(name, it): (&String, &McpServerSettings)| Some((name.clone(), it.to_acp(name).ok()?));
        let servers = self.mcp.iter().filter_map(server).collect();
        let with_servers = self.agents.iter().filter(|(_, it)| !it.mcp.is_empty());
        let of_agents =
            with_servers.map(|(name, it)| (name.as_str().into(), it.mcp.clone())).collect();
        McpConfig { servers, of_agents }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use serde_json::json;

    #[test]
    fn servers_are_read_and_named_by_agents() {
        let text = "[mcp.git]\ncommand = \"mcp-git\"\nargs = [\"-v\"]\nenv = { A = \"1\" }\n\
                    [mcp.web]\nurl = \"https://x.example/mcp\"\nheaders = { X = \"y\" }\n\
                    [agents.claude]\nmcp = [\"git\"]\n";
        let config = parse(text).unwrap().mcp_config();
        let git = json!({ "name": "git", "command": "mcp-git", "args": ["-v"],
                          "env": [{ "name": "A", "value": "1" }] });
        assert_eq!(config.servers["git"], git);
        assert_eq!(config.servers["web"]["type"], "http");
        assert_eq!(config.of_agents["claude"], ["git"]);
    }

    #[test]
    fn mistake_names_the_table() {
        for (text, why) in [
            ("[mcp.git]\n", "MCP server `git` has neither a `command` nor a `url`"),
            ("[mcp.git]\nprogram = \"x\"\n", "program"),
            ("[agents.claude]\nmcp = [\"git\"]\n", "there is no [mcp.git]"),
        ] {
            let reason = parse(text).unwrap_err();
            assert!(reason.contains(why), "{reason}");
        }
    }
}

//! The MCP servers of `--mcp`: files with servers, and names of configured servers.

use crate::report::CommandError;
use jackfield_protocol::mcp_servers::{McpServers, find_unsupported_server, parse_mcp_file};
use serde_json::Value;
use std::{fs, path::Path};

/// Reads the values of `--mcp`.
pub(super) fn read_servers(values: &[String]) -> Result<McpServers, CommandError> {
    let mut all = McpServers::default();
    for value in values {
        if !is_file(value) {
            all.names.push(value.clone());
            continue;
        }
        let found = read_file(Path::new(value))?;
        if let Some(name) = found.servers.iter().find_map(|it| find_name(&all.servers, it)) {
            let message = format!("two MCP servers are named `{name}`");
            return Err(CommandError::usage(message, "rename one of them"));
        }
        all.servers.extend(found.servers);
        all.names.extend(found.names);
    }
    Ok(all)
}

/// Fails if the agent cannot use a server, according to its result of `initialize`.
pub(super) fn check_transports(
    servers: &McpServers,
    initialize_result: &Value,
) -> Result<(), CommandError> {
    match find_unsupported_server(initialize_result, &servers.servers) {
        Some(why) => Err(CommandError::usage(why, "`jackfield agents` lists other agents")),
        None => Ok(()),
    }
}

/// A path, or anything that exists as a file, is a file; the rest are names.
fn is_file(value: &str) -> bool {
    let is_json = Path::new(value).extension().is_some_and(|it| it.eq_ignore_ascii_case("json"));
    value.contains('/') || is_json || Path::new(value).is_file()
}

fn read_file(path: &Path) -> Result<McpServers, CommandError> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|source| {
        CommandError::local(format!("cannot read the MCP servers in `{shown}`"), source)
    })?;
    let hint = "write servers as in `.mcp.json`: \
                `{\"mcpServers\": {\"NAME\": {\"command\": \"…\", \"args\": []}}}`";
    let content: Value = serde_json::from_str(&text)
        .map_err(|error| CommandError::usage(format!("`{shown}` is not JSON: {error}"), hint))?;
    parse_mcp_file(&content)
        .map_err(|why| CommandError::usage(format!("cannot use `{shown}`: {why}"), hint))
}

fn find_name(servers: &[Value], server: &Value) -> Option<String> {
    let is_taken = servers.iter().any(|it| it["name"] == server["name"]);
    is_taken.then(|| server["name"].as_str().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_and_other_values_are_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        fs::write(path("a.json"), r#"{"mcpServers":{"git":{"command":"mcp-git"}}}"#).unwrap();
        let found = read_servers(&[path("a.json"), "github".to_owned()]).unwrap();
        assert_eq!(found.servers[0]["command"], "mcp-git");
        assert_eq!(found.names, ["github"]);
        let error = read_servers(&[path("a.json"), path("a.json")]).unwrap_err();
        assert_eq!(error.to_string(), "two MCP servers are named `git`");
        assert!(read_servers(&[path("b.json")]).unwrap_err().to_string().contains("cannot read"));
        fs::write(path("c.json"), "{").unwrap();
        assert!(read_servers(&[path("c.json")]).unwrap_err().to_string().contains("is not JSON"));
        fs::write(path("d.json"), r#"{"git":{}}"#).unwrap();
        let error = read_servers(&[path("d.json")]).unwrap_err().to_string();
        assert!(error.contains("MCP server `git` has neither"), "{error}");
    }
}

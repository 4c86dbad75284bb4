//! MCP servers as people and other programs write them, converted to the form of `session/new`.
//!
//! Accepted are ACP's array, the map of `.mcp.json` and editors (`{"NAME": {"command": …}}`), and the map of
//! `OpenCode` (`type` is `local` or `remote`, `command` is an array, `environment`).

use serde_json::{Map, Value, json};

/// The MCP servers of a session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct McpServers {
    /// In the form of ACP.
    pub servers: Vec<Value>,
    /// The names of servers that the configuration of the daemon describes.
    pub names: Vec<String>,
}

/// The member names under which configuration files of several programs keep their servers.
const FILE_MEMBERS: [&str; 3] = ["mcpServers", "servers", "mcp"];

/// Reads the content of a configuration file: the servers, or an object that has them under a usual name.
pub fn parse_mcp_file(content: &Value) -> Result<McpServers, String> {
    let is_server = |it: &Value| it.get("command").is_some() || it.get("url").is_some();
    let nested = FILE_MEMBERS.iter().find_map(|it| content.get(*it)).filter(|it| !is_server(it));
    parse_mcp_servers(nested.unwrap_or(content))
}

/// Reads an array in the form of ACP, whose texts are names of configured servers, or a map by name.
pub fn parse_mcp_servers(value: &Value) -> Result<McpServers, String> {
    let mut found = McpServers::default();
    match value {
        Value::Null => {}
        Value::Array(entries) => {
            for entry in entries {
                match (entry, entry["name"].as_str()) {
                    (Value::String(name), _) => found.names.push(name.clone()),
                    (_, Some(name)) => found.servers.extend(parse_mcp_server(name, entry)?),
                    _ => return Err("an MCP server in the array has no `name`".to_owned()),
                }
            }
        }
        Value::Object(servers) => {
            for (name, server) in servers {
                found.servers.extend(parse_mcp_server(name, server)?);
            }
        }
        _ => {
            return Err(
                "MCP servers must be an array, or an object with a member per server".into()
            );
        }
    }
    Ok(found)
}

/// Reads one server; `None` if it is disabled.
pub fn parse_mcp_server(name: &str, server: &Value) -> Result<Option<Value>, String> {
    let invalid = |why: &str| format!("MCP server `{name}` {why}");
    let Value::Object(members) = server else { return Err(invalid("is not an object")) };
    if members.get("enabled") == Some(&Value::Bool(false))
        || members.get("disabled") == Some(&Value::Bool(true))
    {
        return Ok(None);
    }
    let kind = members.get("type").or(members.get("transport")).and_then(Value::as_str);
    let mut described = match (kind, members.get("command"), members.get("url")) {
        (Some("acp"), ..) => server.clone(),
        (_, Some(_), Some(_)) => return Err(invalid("has both a `command` and a `url`")),
        (None | Some("stdio" | "local"), Some(command), None) => {
            describe_program(name, command, members).map_err(|why| invalid(&why))?
        }
        (kind, None, Some(url)) => {
            let transport = match kind {
                None | Some("http" | "remote" | "streamable-http" | "streamableHttp") => "http",
                Some("sse") => "sse",
                Some(other) => return Err(invalid(&format!("has the unknown type `{other}`"))),
            };
            let url = url.as_str().ok_or_else(|| invalid("has a `url` that is not text"))?;
            let headers = read_pairs(members, "headers").map_err(|why| invalid(&why))?;
            json!({ "type": transport, "name": name, "url": url, "headers": headers })
        }
        (Some(other), Some(_), None) => {
            return Err(invalid(&format!("has a `command` and the type `{other}`")));
        }
        (_, None, None) => return Err(invalid("has neither a `command` nor a `url`")),
    };
    if let Some(meta) = members.get("_meta") {
        described["_meta"] = meta.clone();
    }
    Ok(Some(described))
}

fn describe_program(
    name: &str,
    command: &Value,
    members: &Map<String, Value>,
) -> Result<Value, String> {
    let texts = |value: &Value, member: &str| -> Result<Vec<String>, String> {
        let texts = value.as_array().map(|it| it.iter().map(|it| it.as_str().map(str::to_owned)));
        let texts = texts.and_then(Iterator::collect::<Option<Vec<String>>>);
        texts.ok_or_else(|| format!("has `{member}` that is not an array of texts"))
    };
    let mut argv = match command {
        Value::String(program) => vec![program.clone()],
        other => texts(other, "command")?,
    };
    if let Some(args) = members.get("args").filter(|it| !it.is_null()) {
        argv.extend(texts(args, "args")?);
    }
    if argv.first().is_none_or(String::is_empty) {
        return Err("has an empty `command`".to_owned());
    }
    let args = argv.split_off(1);
    let variables = if members.contains_key("environment") { "environment" } else { "env" };
    let env = read_pairs(members, variables)?;
    Ok(json!({ "name": name, "command": argv[0], "args": args, "env": env }))
}

/// Variables or headers as ACP's array of `name` and `value`: from such an array, or from an object.
fn read_pairs(members: &Map<String, Value>, member: &str) -> Result<Vec<Value>, String> {
    let pair = |name: &str, value: &Value| match value {
        Value::String(value) => Some(json!({ "name": name, "value": value })),
        Value::Number(_) | Value::Bool(_) => {
            Some(json!({ "name": name, "value": value.to_string() }))
        }
        _ => None,
    };
    let pairs: Option<Vec<Value>> = match members.get(member) {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(pairs)) => {
            pairs.iter().map(|it| pair(it["name"].as_str()?, &it["value"])).collect()
        }
        Some(Value::Object(pairs)) => pairs.iter().map(|(name, it)| pair(name, it)).collect(),
        Some(_) => None,
    };
    pairs.ok_or_else(|| format!("has `{member}` that does not map names to texts"))
}

/// Why the agent cannot use one of the servers, according to its result of `initialize`.
pub fn find_unsupported_server(initialize_result: &Value, servers: &[Value]) -> Option<String> {
    let offered = &initialize_result["agentCapabilities"]["mcpCapabilities"];
    let unsupported = servers.iter().find_map(|server| {
        let transport = server["type"].as_str().filter(|it| matches!(*it, "http" | "sse"))?;
        (offered[transport] != true)
            .then(|| (server["name"].as_str().unwrap_or_default(), transport))
    });
    let (name, transport) = unsupported?;
    Some(format!(
        "MCP server `{name}` is reached over {transport}, which the agent does not support; use a server that is \
         started as a program, or leave it out"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_usual_forms_become_that_of_acp() {
        let program = json!({ "name": "git", "command": "npx", "args": ["-y", "mcp-git"],
                              "env": [{ "name": "A", "value": "1" }] });
        let remote = json!({ "type": "http", "name": "web", "url": "https://x.example/mcp",
                             "headers": [{ "name": "X", "value": "y" }] });
        let expected = vec![program.clone(), remote.clone()];
        let url = "https://x.example/mcp";
        let forms = [
            json!([program, remote]),
            json!({ "git": { "command": "npx", "args": ["-y", "mcp-git"], "env": { "A": 1 } },
                    "web": { "url": url, "headers": { "X": "y" } } }),
            json!({ "mcpServers": {
                "git": { "type": "stdio", "command": "npx", "args": ["-y", "mcp-git"], "env": { "A": "1" } },
                "web": { "type": "http", "url": url, "headers": { "X": "y" } } } }),
            json!({ "mcp": {
                "git": { "type": "local", "command": ["npx", "-y", "mcp-git"], "environment": { "A": "1" } },
                "off": { "type": "local", "command": ["x"], "enabled": false },
                "web": { "type": "remote", "url": url, "headers": { "X": "y" }, "enabled": true } } }),
        ];
        for form in forms {
            assert_eq!(parse_mcp_file(&form).unwrap().servers, expected, "{form}");
        }
        let named = parse_mcp_servers(&json!(["github", { "name": "a", "command": "b" }])).unwrap();
        assert_eq!(named.names, ["github"]);
        assert_eq!(named.servers, [json!({ "name": "a", "command": "b", "args": [], "env": [] })]);
        assert_eq!(parse_mcp_servers(&Value::Null).unwrap(), McpServers::default());
        let called_mcp = json!({ "mcp": { "command": "x" } });
        assert_eq!(parse_mcp_file(&called_mcp).unwrap().servers[0]["name"], "mcp");
    }

    #[test]
    fn mistake_names_the_server() {
        for (server, why) in [
            (json!("x"), "is not an object"),
            (json!({}), "has neither a `command` nor a `url`"),
            (json!({ "command": "x", "url": "y" }), "has both"),
            (json!({ "command": "" }), "has an empty `command`"),
            (json!({ "command": [1] }), "has `command` that is not an array of texts"),
            (json!({ "command": "x", "args": "y" }), "has `args` that is not an array of texts"),
            (json!({ "command": "x", "env": { "A": [] } }), "has `env` that does not map"),
            (json!({ "type": "carrier", "url": "x" }), "has the unknown type `carrier`"),
        ] {
            let error = parse_mcp_servers(&json!({ "s": server })).unwrap_err();
            assert!(error.starts_with("MCP server `s` ") && error.contains(why), "{error}");
        }
        assert!(parse_mcp_servers(&json!([{}])).unwrap_err().contains("no `name`"));
        assert!(parse_mcp_servers(&json!(7)).unwrap_err().contains("must be an array"));
    }

    #[test]
    fn server_over_http_needs_a_capability_of_the_agent() {
        let servers = [json!({ "type": "http", "name": "web", "url": "x", "headers": [] })];
        let offering = |it: Value| json!({ "agentCapabilities": { "mcpCapabilities": it } });
        assert_eq!(find_unsupported_server(&offering(json!({ "http": true })), &servers), None);
        for result in [offering(json!({ "sse": true })), json!({}), Value::Null] {
            let why = find_unsupported_server(&result, &servers).unwrap();
            assert!(why.contains("`web`") && why.contains("over http"), "{why}");
        }
        let program = [json!({ "name": "git", "command": "x", "args": [], "env": [] })];
        assert_eq!(find_unsupported_server(&json!({}), &program), None);
    }
}

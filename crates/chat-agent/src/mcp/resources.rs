//! Resources of MCP servers, through two tools: one lists them, the other reads one.

use super::{McpWork, connection::ServerConnection, outcome};
use crate::tool::{PreparedCall, RequiredPermission, ToolOutcome};
use agent_client_protocol::v1::schema::ToolKind;
use rmcp::model::{
    JsonObject, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
};
use serde_json::{Value, json};
use std::{fmt::Write as _, sync::Arc};

const LIST_TOOL: &str = "mcp_list_resources";
const READ_TOOL: &str = "mcp_read_resource";
/// More resources of one server are too many for a model to choose from.
const PAGES_MAX: usize = 10;

/// The two tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResourceTool {
    List,
    Read,
}

impl ResourceTool {
    pub(super) fn from_name(name: &str) -> Option<ResourceTool> {
        match name {
            LIST_TOOL => Some(ResourceTool::List),
            READ_TOOL => Some(ResourceTool::Read),
            _ => None,
        }
    }
}

pub(super) fn tool_specs() -> [Value; 2] {
    let to_spec = |name, description, parameters: Value| {
        let function =
            json!({ "name": name, "description": description, "parameters": parameters });
        json!({ "type": "function", "function": function })
    };
    let server = json!({ "type": "string", "description": "The server, as the list names it" });
    let uri = json!({ "type": "string", "description": "The URI of the resource" });
    [
        to_spec(
            LIST_TOOL,
            "Lists the resources of the MCP servers of this session: server, URI, name.",
            json!({ "type": "object", "properties": {} }),
        ),
        to_spec(
            READ_TOOL,
            "Reads one resource of an MCP server.",
            json!({
                "type": "object",
                "properties": { "server": server, "uri": uri },
                "required": ["server", "uri"],
            }),
        ),
    ]
}

pub(super) fn prepare_list() -> PreparedCall<McpWork> {
    let title = "List resources of MCP servers".to_owned();
    prepare(json!({}), title, RequiredPermission::None, McpWork::ListResources)
}

/// Reading needs a permission like a call, because the user decides which addresses a server reads.
pub(super) fn prepare_read(server: usize, label: &str, uri: String) -> PreparedCall<McpWork> {
    let permission = RequiredPermission::Named(format!("mcp {label} resources"));
    let input = json!({ "server": label, "uri": uri });
    let title = format!("Read {uri} of {label}");
    prepare(input, title, permission, McpWork::ReadResource { server, uri })
}

fn prepare(
    input: Value,
    title: String,
    permission: RequiredPermission,
    work: McpWork,
) -> PreparedCall<McpWork> {
    let (locations, content) = (Vec::new(), Vec::new());
    PreparedCall { input, title, kind: ToolKind::Read, locations, content, permission, work }
}

/// Returns the label of the server and the URI.
pub(super) fn parse_read_arguments(arguments: &JsonObject) -> Result<(String, String), String> {
    let text = |name| {
        let value = arguments.get(name).and_then(Value::as_str);
        value.map(str::to_owned).ok_or_else(|| format!("`{READ_TOOL}` needs `{name}`, a string."))
    };
    Ok((text("server")?, text("uri")?))
}

pub(super) async fn list_resources(servers: &[Arc<ServerConnection>]) -> ToolOutcome {
    let mut list = String::new();
    for server in servers.iter().filter(|it| it.state().has_resources) {
        // An error of one server must not hide the resources of the others.
        if let Err(error) = list_server_resources(server, &mut list).await {
            let _infallible = writeln!(list, "{error}");
        }
    }
    if list.is_empty() {
        list.push_str("There are no resources.");
    }
    ToolOutcome::success(outcome::truncate_output(&list))
}

async fn list_server_resources(server: &ServerConnection, list: &mut String) -> Result<(), String> {
    let (peer, label) = (server.peer()?, &server.label);
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let params = Some(PaginatedRequestParams::default().with_cursor(cursor));
        let page = server.wait_for_response(peer.list_resources(params)).await?;
        for it in page.resources {
            let description = it.description.as_deref().unwrap_or_default();
            let _infallible = writeln!(list, "{label} {} {} {description}", it.uri, it.name);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    // Errors are ignored, because not every server with resources supports templates.
    if let Ok(page) = server.wait_for_response(peer.list_resource_templates(None)).await {
        for it in page.resource_templates {
            let (uri, name) = (it.uri_template, it.name);
            let _infallible = writeln!(list, "{label} {uri} {name} (fill in the braces)");
        }
    }
    Ok(())
}

pub(super) async fn read_resource(server: &ServerConnection, uri: String) -> ToolOutcome {
    let response = match server.peer() {
        Ok(peer) => {
            let params = ReadResourceRequestParams::new(uri);
            server.wait_for_response(async move { peer.read_resource_once(params).await }).await
        }
        Err(error) => Err(error),
    };
    match response {
        Ok(ReadResourceResponse::Complete(read)) => outcome::from_resource(read.contents),
        Ok(_) => ToolOutcome::failure(
            "The server requests input, which this agent does not support.".to_owned(),
        ),
        Err(error) => ToolOutcome::failure(error),
    }
}

//! Resources of servers, through two tools: one lists them, one reads one.

use super::{Work, result, server::Server};
use crate::tool::{Grant, Job, Outcome};
use agent_client_protocol::v1::schema::ToolKind;
use rmcp::model::{
    JsonObject, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
};
use serde_json::{Value, json};
use std::{fmt::Write as _, sync::Arc};

const LIST: &str = "mcp_list_resources";
const READ: &str = "mcp_read_resource";
/// A model does not choose from more than so many pages of one server.
const PAGES_MAX: usize = 10;

pub(super) fn specs() -> [Value; 2] {
    let function = |name, description, parameters: Value| {
        let function =
            json!({ "name": name, "description": description, "parameters": parameters });
        json!({ "type": "function", "function": function })
    };
    let server = json!({ "type": "string", "description": "The server, as the list names it" });
    let uri = json!({ "type": "string", "description": "The URI of the resource" });
    [
        function(
            LIST,
            "Lists the resources of the MCP servers of this session: server, URI, name.",
            json!({ "type": "object", "properties": {} }),
        ),
        function(
            READ,
            "Reads one resource of an MCP server.",
            json!({
                "type": "object",
                "properties": { "server": server, "uri": uri },
                "required": ["server", "uri"],
            }),
        ),
    ]
}

/// Whether a name is one of the two, and which.
pub(super) fn is_list(name: &str) -> Option<bool> {
    match name {
        LIST => Some(true),
        READ => Some(false),
        _ => None,
    }
}

pub(super) fn list_job() -> Job<Work> {
    let title = "List resources of MCP servers".to_owned();
    job(json!({}), title, Grant::Free, Work::ListResources)
}

/// It is asked about like a call: which address a server reads is for people to say.
pub(super) fn read_job(server: usize, label: &str, uri: String) -> Job<Work> {
    let grant = Grant::Ask(format!("mcp {label} resources"));
    let input = json!({ "server": label, "uri": uri });
    job(input, format!("Read {uri} of {label}"), grant, Work::ReadResource { server, uri })
}

fn job(input: Value, title: String, grant: Grant, work: Work) -> Job<Work> {
    let (locations, content) = (Vec::new(), Vec::new());
    Job { input, title, kind: ToolKind::Read, locations, content, grant, work }
}

pub(super) fn wanted(arguments: &JsonObject) -> Result<(String, String), String> {
    let text = |name| {
        let value = arguments.get(name).and_then(Value::as_str);
        value.map(str::to_owned).ok_or_else(|| format!("`{READ}` needs `{name}`, a string."))
    };
    Ok((text("server")?, text("uri")?))
}

pub(super) async fn list(servers: &[Arc<Server>]) -> Outcome {
    let mut listed = String::new();
    for server in servers.iter().filter(|it| it.card().has_resources) {
        // Others may have more luck.
        if let Err(why) = list_one(server, &mut listed).await {
            let _infallible = writeln!(listed, "{why}");
        }
    }
    if listed.is_empty() {
        listed.push_str("There are no resources.");
    }
    Outcome::told(result::bounded(&listed))
}

async fn list_one(server: &Server, listed: &mut String) -> Result<(), String> {
    let (peer, label) = (server.peer()?, &server.label);
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let asked = Some(PaginatedRequestParams::default().with_cursor(cursor));
        let page = server.ask(peer.list_resources(asked)).await?;
        for it in page.resources {
            let about = it.description.as_deref().unwrap_or_default();
            let _infallible = writeln!(listed, "{label} {} {} {about}", it.uri, it.name);
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    // Not every server with resources knows templates, and the resources are told already.
    if let Ok(page) = server.ask(peer.list_resource_templates(None)).await {
        for it in page.resource_templates {
            let (uri, name) = (it.uri_template, it.name);
            let _infallible = writeln!(listed, "{label} {uri} {name} (fill in the braces)");
        }
    }
    Ok(())
}

pub(super) async fn read(server: &Server, uri: String) -> Outcome {
    let answer = match server.peer() {
        Ok(peer) => {
            let asked = ReadResourceRequestParams::new(uri);
            server.ask(async move { peer.read_resource_once(asked).await }).await
        }
        Err(why) => Err(why),
    };
    match answer {
        Ok(ReadResourceResponse::Complete(read)) => result::from_resource(read.contents),
        Ok(_) => {
            Outcome::failed("The server wants input, which this agent cannot give.".to_owned())
        }
        Err(why) => Outcome::failed(why),
    }
}

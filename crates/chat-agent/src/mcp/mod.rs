//! Tools and resources of the MCP servers that the client configured.
//!
//! [`McpServers`] has all servers of a session. Each one runs in a task of its own (`connection`)
//! over its transport (`stdio`, `http`, `sse`). The model calls their tools by names that we assign
//! (`tool_names`), and their resources through two tools of ours (`resources`). `outcome` converts
//! the results.
//!
//! **Invariant:** a server that is broken, slow or silent has no effect on its session but a
//! notice.
//!
//! **Invariant:** what a server says about its own tools has no influence on permissions: every
//! call needs one.

mod connection;
mod http;
mod outcome;
mod resources;
mod sse;
mod stdio;
#[cfg(test)]
mod tests;
mod tool_names;

use crate::{
    model::ModelToolCall,
    mutex::lock,
    spawn_context::ServerSpawnContext,
    tool::{PreparedCall, RequiredPermission, ToolOutcome, arguments::parse_json},
};
use agent_client_protocol::v1::schema::{McpServer, ToolKind};
use connection::ServerConnection;
use resources::ResourceTool;
use rmcp::model::{CallToolRequestParams, JsonObject};
use serde_json::Value;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::JoinSet;
use tool_names::{ToolNames, to_tool_spec};

/// The MCP servers of one session. Dropping it ends their processes.
pub(crate) struct McpServers {
    servers: Vec<Arc<ServerConnection>>,
    tool_names: Mutex<ToolNames>,
    /// The indexes of servers whose failure was reported.
    reported: Mutex<HashSet<usize>>,
    /// One task per server. Dropping a task ends its server.
    _tasks: JoinSet<()>,
}

/// What a call runs once it is permitted.
#[derive(Debug)]
pub(crate) enum McpWork {
    CallTool { server: usize, params: CallToolRequestParams },
    ListResources,
    ReadResource { server: usize, uri: String },
}

impl McpServers {
    /// Starts the servers in the background. `start_timeout` limits the start of each one,
    /// including the list of its tools.
    pub(crate) fn start(
        servers: Vec<McpServer>,
        spawn_context: &ServerSpawnContext,
        start_timeout: Duration,
    ) -> McpServers {
        let mut tasks = JoinSet::new();
        let mut labels = ToolNames::default();
        let servers = servers.into_iter().enumerate().map(|(index, config)| {
            let label = labels.assign_label(index, connection::configured_name(&config));
            let server = Arc::new(ServerConnection::new(label));
            let (task_server, context) = (Arc::clone(&server), spawn_context.clone());
            tasks.spawn(connection::run_server(task_server, config, context, start_timeout));
            server
        });
        let servers = servers.collect();
        let (tool_names, reported) = (Mutex::default(), Mutex::default());
        McpServers { servers, tool_names, reported, _tasks: tasks }
    }

    /// Waits until each server has started or failed. Returns a notice for each one that is not
    /// running, also if it has ended since. Each notice is returned once.
    pub(crate) async fn wait_for_start(&self) -> Vec<String> {
        let mut notices = Vec::new();
        for (index, server) in self.servers.iter().enumerate() {
            if let Some(failure) = server.wait_for_start().await
                && lock(&self.reported).insert(index)
            {
                notices.push(failure);
            }
        }
        notices
    }

    /// Returns the tools in the format of Chat Completions, in the order of the servers and of
    /// their lists.
    pub(crate) fn tool_specs(&self) -> Vec<Value> {
        let mut names = lock(&self.tool_names);
        let mut specs = Vec::new();
        for (index, server) in self.servers.iter().enumerate() {
            let state = server.state();
            for tool in &state.tools {
                let name = names.assign_tool(index, &server.label, &tool.name);
                specs.push(to_tool_spec(&name, tool, state.failure.is_some()));
            }
        }
        if self.has_resources() {
            specs.extend(resources::tool_specs());
        }
        specs
    }

    fn has_resources(&self) -> bool {
        self.servers.iter().any(|it| it.state().has_resources)
    }

    /// Prepares a call. Returns `None` if the tool is not one of an MCP server.
    pub(crate) fn prepare_call(
        &self,
        call: &ModelToolCall,
    ) -> Option<Result<PreparedCall<McpWork>, String>> {
        if let Some(tool) = ResourceTool::from_name(&call.name) {
            return self.has_resources().then(|| {
                let arguments = parse_arguments(call)?;
                match tool {
                    ResourceTool::List => Ok(resources::prepare_list()),
                    ResourceTool::Read => self.prepare_resource_read(&arguments),
                }
            });
        }
        let (server, tool) = lock(&self.tool_names).find_tool(&call.name)?;
        Some(self.prepare_tool_call(server, tool, call))
    }

    fn prepare_tool_call(
        &self,
        index: usize,
        tool: String,
        call: &ModelToolCall,
    ) -> Result<PreparedCall<McpWork>, String> {
        let server = &self.servers[index];
        server.peer()?;
        let arguments = parse_arguments(call)?;
        let title = format!("{}.{tool}", server.label);
        let params = CallToolRequestParams::new(tool).with_arguments(arguments.clone());
        Ok(PreparedCall {
            permission: RequiredPermission::Named(format!("mcp {title}")),
            title,
            kind: ToolKind::Other,
            locations: Vec::new(),
            content: outcome::arguments_to_content(&arguments),
            input: Value::Object(arguments),
            work: McpWork::CallTool { server: index, params },
        })
    }

    fn prepare_resource_read(
        &self,
        arguments: &JsonObject,
    ) -> Result<PreparedCall<McpWork>, String> {
        let (label, uri) = resources::parse_read_arguments(arguments)?;
        let Some(index) = self.servers.iter().position(|it| it.label == label) else {
            let known: Vec<&str> = self.servers.iter().map(|it| it.label.as_str()).collect();
            let known = known.join("`, `");
            return Err(format!("There is no MCP server `{label}`. There are: `{known}`."));
        };
        self.servers[index].peer()?;
        Ok(resources::prepare_read(index, &label, uri))
    }

    /// Runs a permitted call. Dropping the future cancels the call and notifies the server.
    pub(crate) async fn run_work(&self, work: McpWork) -> ToolOutcome {
        match work {
            McpWork::CallTool { server, params } => self.servers[server].call_tool(params).await,
            McpWork::ListResources => resources::list_resources(&self.servers).await,
            McpWork::ReadResource { server, uri } => {
                resources::read_resource(&self.servers[server], uri).await
            }
        }
    }
}

fn parse_arguments(call: &ModelToolCall) -> Result<JsonObject, String> {
    let name = &call.name;
    match parse_json(&call.arguments) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        // A call without arguments may have no JSON at all.
        Ok(Value::Null) => Ok(JsonObject::new()),
        Ok(_) => Err(format!("The arguments of `{name}` are not a JSON object. Call it again.")),
        Err(error) => {
            Err(format!("The arguments of `{name}` are not valid JSON ({error}). Call it again."))
        }
    }
}

//! Tools and resources of MCP servers that the client named.
//!
//! [`Servers`] is all of a session's servers; each starts in a task of its own (`server`) over the
//! transport it is reached by (`stdio`, `http`, `sse`). The model calls their tools by `names` of
//! ours, their resources through two tools of ours (`resources`), and `result` is what it hears back.
//!
//! **Invariant:** a server that is broken, slow or silent costs its session nothing but a notice.
//!
//! **Invariant:** what a server says about its own tools decides nothing: every call is asked about.

mod ground;
mod http;
mod names;
mod resources;
mod result;
mod server;
mod sse;
mod stdio;
#[cfg(test)]
mod tests;

use crate::{
    model::Call,
    session::lock,
    tool::{Grant, Job, Outcome, args},
};
use agent_client_protocol::v1::schema::{McpServer, ToolKind};
pub(crate) use ground::Ground;
use names::Names;
use rmcp::model::{CallToolRequestParams, JsonObject};
use serde_json::Value;
use server::Server;
use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::JoinSet;

/// The MCP servers of one session; dropping it ends their processes.
pub(crate) struct Servers {
    all: Vec<Arc<Server>>,
    /// Which name means which tool of which server.
    names: Mutex<Names>,
    /// What was told already, by the place of the server.
    told: Mutex<HashSet<usize>>,
    /// Each follows the life of one server, and ends it when it is dropped.
    _lives: JoinSet<()>,
}

/// What a call does once it is allowed.
#[derive(Debug)]
pub(crate) enum Work {
    Call { server: usize, params: CallToolRequestParams },
    ListResources,
    ReadResource { server: usize, uri: String },
}

impl Servers {
    /// Returns at once. `limit` is for the start of each, from the first byte to the list of its tools.
    pub(crate) fn start(servers: Vec<McpServer>, ground: &Ground, limit: Duration) -> Servers {
        let mut lives = JoinSet::new();
        let mut labels = Names::default();
        let servers = servers.into_iter().enumerate().map(|(place, spec)| {
            let label = labels.label(place, server::name_of(&spec));
            let server = Arc::new(Server::new(label));
            lives.spawn(server::live(Arc::clone(&server), spec, ground.clone(), limit));
            server
        });
        let all = servers.collect();
        Servers { all, names: Mutex::default(), told: Mutex::default(), _lives: lives }
    }

    /// Waits until each is up or given up. Notices about those that are not up, each told once: also
    /// about one that has ended since.
    pub(crate) async fn settled(&self) -> Vec<String> {
        let mut notices = Vec::new();
        for (place, server) in self.all.iter().enumerate() {
            if let Some(why) = server.settled().await
                && lock(&self.told).insert(place)
            {
                notices.push(why);
            }
        }
        notices
    }

    /// Tools as Chat Completions wants them, in the order of the servers and of their lists.
    pub(crate) fn offered(&self) -> Vec<Value> {
        let mut names = lock(&self.names);
        let mut offered = Vec::new();
        for (place, server) in self.all.iter().enumerate() {
            let card = server.card();
            for tool in &card.tools {
                let name = names.name(place, &server.label, &tool.name);
                offered.push(names::spec(&name, tool, card.why_down.is_some()));
            }
        }
        if self.all.iter().any(|it| it.card().has_resources) {
            offered.extend(resources::specs());
        }
        offered
    }

    /// `None`: it is not one of ours.
    pub(crate) fn prepare(&self, call: &Call) -> Option<Result<Job<Work>, String>> {
        if let Some(is_list) = resources::is_list(&call.name) {
            let has_any = self.all.iter().any(|it| it.card().has_resources);
            return has_any.then(|| {
                let arguments = arguments_of(call)?;
                if is_list { Ok(resources::list_job()) } else { self.prepare_read(&arguments) }
            });
        }
        let (place, tool) = lock(&self.names).meaning(&call.name)?;
        Some(self.prepare_call(place, tool, call))
    }

    fn prepare_call(&self, place: usize, tool: String, call: &Call) -> Result<Job<Work>, String> {
        let server = &self.all[place];
        server.peer()?;
        let arguments = arguments_of(call)?;
        let title = format!("{}.{tool}", server.label);
        let grant = Grant::Ask(format!("mcp {title}"));
        let content = result::shown_arguments(&arguments);
        let input = Value::Object(arguments.clone());
        let params = CallToolRequestParams::new(tool).with_arguments(arguments);
        let work = Work::Call { server: place, params };
        Ok(Job { input, title, kind: ToolKind::Other, locations: Vec::new(), content, grant, work })
    }

    fn prepare_read(&self, arguments: &JsonObject) -> Result<Job<Work>, String> {
        let (label, uri) = resources::wanted(arguments)?;
        let place = self.all.iter().position(|it| it.label == label);
        let known = || self.all.iter().map(|it| it.label.as_str()).collect::<Vec<_>>();
        let Some(server) = place else {
            let known = known().join("`, `");
            return Err(format!("There is no MCP server `{label}`. There are: `{known}`."));
        };
        self.all[server].peer()?;
        Ok(resources::read_job(server, &label, uri))
    }

    /// Dropping the future cancels the call; the server is told.
    pub(crate) async fn run(&self, work: Work) -> Outcome {
        match work {
            Work::Call { server, params } => self.all[server].call(params).await,
            Work::ListResources => resources::list(&self.all).await,
            Work::ReadResource { server, uri } => resources::read(&self.all[server], uri).await,
        }
    }
}

fn arguments_of(call: &Call) -> Result<JsonObject, String> {
    let name = &call.name;
    match args::parse(&call.arguments) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        // A model that has nothing to say about a call says nothing at all.
        Ok(Value::Null) => Ok(JsonObject::new()),
        Ok(_) => Err(format!("The arguments of `{name}` are JSON, but no object. Call it again.")),
        Err(error) => {
            Err(format!("The arguments of `{name}` are no JSON ({error}). Call it again."))
        }
    }
}

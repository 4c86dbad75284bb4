//! The connection to one MCP server, from its start to its end.

use super::{http, outcome, sse, stdio, stdio::ExitReceiver};
use crate::spawn_context::ServerSpawnContext;
use crate::tool::ToolOutcome;
use agent_client_protocol::v1::schema::McpServer;
use rmcp::{
    ClientHandler, Peer, RoleClient, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation,
        PaginatedRequestParams, ServerCapabilities, Tool,
    },
    service::{ClientInitializeError, NotificationContext, RunningService, ServiceError},
};
use std::{error::Error, pin::pin, sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

/// A server that takes longer for one call is considered stuck.
const CALL_MAX: Duration = Duration::from_mins(5);
/// How long to wait for the exit status of a process that has ended or is being ended.
const EXIT_WAIT_MAX: Duration = Duration::from_secs(3);
/// Guards against a list without an end.
const PAGES_MAX: usize = 100;
/// How much of stderr a notice has.
const STDERR_CHARS_MAX: usize = 2000;

pub(super) struct ServerConnection {
    /// The name for the model and the user: plain characters, and unique in the session.
    pub(super) label: String,
    state: watch::Sender<ServerState>,
}

/// The state of a server. It is starting if there is neither a peer nor a failure.
#[derive(Default)]
pub(super) struct ServerState {
    peer: Option<Peer<RoleClient>>,
    pub(super) tools: Vec<Tool>,
    pub(super) has_resources: bool,
    /// Why the server is not running, in whole sentences.
    pub(super) failure: Option<String>,
}

impl ServerConnection {
    pub(super) fn new(label: String) -> ServerConnection {
        ServerConnection { label, state: watch::Sender::new(ServerState::default()) }
    }

    pub(super) fn state(&self) -> watch::Ref<'_, ServerState> {
        self.state.borrow()
    }

    /// Waits until the server has started or failed. Returns the failure.
    pub(super) async fn wait_for_start(&self) -> Option<String> {
        let mut state = self.state.subscribe();
        let started = state.wait_for(|it| it.peer.is_some() || it.failure.is_some()).await;
        started.ok()?.failure.clone()
    }

    /// Returns the peer to send requests to, or why there is none.
    pub(super) fn peer(&self) -> Result<Peer<RoleClient>, String> {
        let state = self.state();
        match (&state.failure, &state.peer) {
            (Some(failure), _) => Err(failure.clone()),
            (None, Some(peer)) => Ok(peer.clone()),
            (None, None) => {
                Err(format!("The MCP server `{}` is still starting: try again later.", self.label))
            }
        }
    }

    pub(super) async fn call_tool(&self, params: CallToolRequestParams) -> ToolOutcome {
        let response = match self.peer() {
            Ok(peer) => {
                self.wait_for_response(async move { peer.call_tool_once(params).await }).await
            }
            Err(error) => Err(error),
        };
        match response {
            Ok(CallToolResponse::Complete(result)) => outcome::from_call_result(result),
            Ok(_) => ToolOutcome::failure(format!(
                "The MCP server `{}` did not answer the call: it needs a client feature that this \
                 agent does not support (user input, or tasks).",
                self.label
            )),
            Err(error) => ToolOutcome::failure(error),
        }
    }

    /// Waits for the response to a request, up to a limit. Dropping the future cancels the request
    /// at the server.
    pub(super) async fn wait_for_response<T>(
        &self,
        request: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, String> {
        let label = &self.label;
        let error = match timeout(CALL_MAX, request).await {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => error,
            Err(_) => {
                let limit = CALL_MAX.as_secs();
                return Err(format!(
                    "The MCP server `{label}` did not answer within {limit} s; the call was canceled."
                ));
            }
        };
        Err(match error {
            ServiceError::McpError(error) => {
                format!("The MCP server `{label}` refused the call: {}.", error.message)
            }
            ServiceError::TransportClosed => self.wait_for_failure().await,
            ServiceError::TransportSend(error) => {
                let cause = http::describe_transport_error(error.error.as_ref());
                format!("The MCP server `{label}` could not be reached: {cause}.")
            }
            error => format!("The MCP server `{label}` gave no usable answer: {error}."),
        })
    }

    /// Waits for the failure of a server whose connection has just closed.
    async fn wait_for_failure(&self) -> String {
        let mut state = self.state.subscribe();
        let failed = timeout(EXIT_WAIT_MAX * 2, state.wait_for(|it| it.failure.is_some())).await;
        let failure = failed.ok().and_then(|it| it.ok()?.failure.clone());
        failure.unwrap_or_else(|| {
            format!("The MCP server `{}` has closed its connection.", self.label)
        })
    }

    fn set_failure(&self, reason: &str, stderr_tail: &str) {
        let label = &self.label;
        let mut failure = format!(
            "The MCP server `{label}` {reason}. The session goes on without its tools; to try \
             again, start a new one."
        );
        let tail = stderr_tail.trim();
        if !tail.is_empty() {
            let omitted = tail.chars().count().saturating_sub(STDERR_CHARS_MAX);
            let end: String = tail.chars().skip(omitted).collect();
            failure = format!("{failure} Its last output on stderr:\n{end}");
        }
        self.state.send_modify(|state| {
            state.peer = None;
            state.failure = Some(failure);
        });
    }
}

/// Returns the name that the client gave the server.
pub(super) fn configured_name(config: &McpServer) -> &str {
    match config {
        McpServer::Stdio(it) => &it.name,
        McpServer::Http(it) => &it.name,
        McpServer::Sse(it) => &it.name,
        _ => "",
    }
}

/// Starts a server and keeps its state up to date until it ends. Dropping the future ends the
/// server.
pub(super) async fn run_server(
    server: Arc<ServerConnection>,
    config: McpServer,
    context: ServerSpawnContext,
    start_timeout: Duration,
) {
    let tools_changed = Arc::new(Notify::new());
    let mut exit = None;
    let starting = start_server(config, &context, Arc::clone(&tools_changed), &mut exit);
    let (service, tools) = match timeout(start_timeout, starting).await {
        Ok(Ok(started)) => started,
        Ok(Err(error)) => {
            let (status, stderr_tail) = wait_for_exit(exit).await;
            let reason = status.map_or(error, |it| format!("it ended during the start ({it})"));
            return server.set_failure(&format!("could not be started: {reason}"), &stderr_tail);
        }
        Err(_) => {
            let (_, stderr_tail) = wait_for_exit(exit).await;
            let secs = start_timeout.as_secs_f64();
            let reason = format!("did not answer within {secs} s and was ended");
            return server.set_failure(&reason, &stderr_tail);
        }
    };
    let peer = service.peer().clone();
    server.state.send_replace(ServerState {
        peer: Some(peer.clone()),
        tools,
        has_resources: has_capability(&peer, |it| it.resources.is_some()),
        failure: None,
    });
    let mut ended = pin!(service.waiting());
    loop {
        tokio::select! {
            _ = &mut ended => break,
            () = tools_changed.notified() => {
                // If the new list cannot be read, the old one stays.
                if let Ok(Ok(tools)) = timeout(start_timeout, list_tools(&peer)).await {
                    server.state.send_modify(|state| state.tools = tools);
                }
            }
        }
    }
    let (status, stderr_tail) = wait_for_exit(exit).await;
    let status = status.unwrap_or_else(|| "its connection was closed".to_owned());
    server.set_failure(&format!("has ended ({status})"), &stderr_tail);
}

type McpService = RunningService<RoleClient, ToolListListener>;

/// Connects to a server and lists its tools. Sets `exit` as soon as the server has a process.
async fn start_server(
    config: McpServer,
    context: &ServerSpawnContext,
    tools_changed: Arc<Notify>,
    exit: &mut Option<ExitReceiver>,
) -> Result<(McpService, Vec<Tool>), String> {
    let listener = ToolListListener { tools_changed };
    let service = match config {
        McpServer::Stdio(config) => {
            let (transport, receiver) = stdio::connect(config, context)?;
            *exit = Some(receiver);
            listener.serve(transport).await
        }
        McpServer::Http(config) => listener.serve(http::connect(&config)?).await,
        McpServer::Sse(config) => listener.serve(sse::connect(&config).await?).await,
        _ => return Err("this agent does not support its transport".to_owned()),
    };
    let service = service.map_err(|error| describe_initialize_error(&error))?;
    let tools = list_tools(service.peer()).await.map_err(|error| error_chain(&error))?;
    Ok((service, tools))
}

/// Returns the exit status of the process, and the end of its output on stderr.
async fn wait_for_exit(exit: Option<ExitReceiver>) -> (Option<String>, String) {
    let Some(mut exit) = exit else { return (None, String::new()) };
    let ended = timeout(EXIT_WAIT_MAX, exit.wait_for(Option::is_some)).await;
    match ended.ok().and_then(|it| it.ok()?.clone()) {
        Some(exit) => (Some(exit.to_string()), exit.stderr_tail),
        None => (None, String::new()),
    }
}

fn has_capability(peer: &Peer<RoleClient>, is_present: fn(&ServerCapabilities) -> bool) -> bool {
    peer.peer_info().is_some_and(|it| is_present(&it.capabilities))
}

async fn list_tools(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, ServiceError> {
    let mut tools = Vec::new();
    if !has_capability(peer, |it| it.tools.is_some()) {
        return Ok(tools);
    }
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(params)).await?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(tools)
}

/// Handles the messages of a server. We support no requests, and one notification.
struct ToolListListener {
    /// Notified when the tools of the server have changed.
    tools_changed: Arc<Notify>,
}

impl ClientHandler for ToolListListener {
    fn get_info(&self) -> ClientConfig {
        let client = Implementation::new("jackfield", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), client)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}

/// Describes an error for the user. The messages of the SDK contain names of its types.
fn describe_initialize_error(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => {
            http::describe_transport_error(error.error.as_ref())
        }
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        ClientInitializeError::JsonRpcError(error) => format!("it refused: {}", error.message),
        error => error_chain(error),
    }
}

/// Formats an error of the SDK with its causes. Most of its messages include their cause, which is
/// not repeated.
pub(super) fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

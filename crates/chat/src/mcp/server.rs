//! One server, from its start to its end.

use super::{
    ground::Ground,
    http, result, sse,
    stdio::{self, LastWords},
};
use crate::tool::Outcome;
use agent_client_protocol::v1::schema::McpServer;
use rmcp::{
    ClientHandler, Peer, RoleClient, ServiceExt as _,
    model::{
        CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation,
        PaginatedRequestParams, Tool,
    },
    service::{ClientInitializeError, NotificationContext, RunningService, ServiceError},
};
use std::{error::Error, sync::Arc, time::Duration};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

/// Whoever works longer on one call is stuck, or should have said so.
const CALL_MAX: Duration = Duration::from_mins(5);
/// A process that is gone or being ended says its last words within it.
const LAST_WORDS_MAX: Duration = Duration::from_secs(3);
/// More pages are a list without an end.
const PAGES_MAX: usize = 100;
/// What a notice carries of stderr; the rest is of little use to a reader.
const TAIL_CHARS_MAX: usize = 2000;

pub(super) struct Server {
    /// What the model and people call it: plain, and no other server's.
    pub(super) label: String,
    card: watch::Sender<Card>,
}

/// What is known of a server. Neither a peer nor a reason: it is starting.
#[derive(Default)]
pub(super) struct Card {
    peer: Option<Peer<RoleClient>>,
    pub(super) tools: Vec<Tool>,
    pub(super) has_resources: bool,
    /// Why it is not there, or not any more, in whole sentences.
    pub(super) why_down: Option<String>,
}

impl Server {
    pub(super) fn new(label: String) -> Server {
        Server { label, card: watch::Sender::new(Card::default()) }
    }

    pub(super) fn card(&self) -> watch::Ref<'_, Card> {
        self.card.borrow()
    }

    /// Waits until it is up or given up, and says why it is not up.
    pub(super) async fn settled(&self) -> Option<String> {
        let mut card = self.card.subscribe();
        let settled = card.wait_for(|it| it.peer.is_some() || it.why_down.is_some()).await;
        settled.ok()?.why_down.clone()
    }

    /// The server to talk to, or why there is none.
    pub(super) fn peer(&self) -> Result<Peer<RoleClient>, String> {
        let card = self.card();
        match (&card.why_down, &card.peer) {
            (Some(why), _) => Err(why.clone()),
            (None, Some(peer)) => Ok(peer.clone()),
            (None, None) => {
                Err(format!("The MCP server `{}` is still starting: try again later.", self.label))
            }
        }
    }

    pub(super) async fn call(&self, params: CallToolRequestParams) -> Outcome {
        let answer = match self.peer() {
            Ok(peer) => self.ask(async move { peer.call_tool_once(params).await }).await,
            Err(why) => Err(why),
        };
        match answer {
            Ok(CallToolResponse::Complete(result)) => result::outcome(result),
            Ok(_) => Outcome::failed(format!(
                "The MCP server `{}` did not answer the call: it wants more of its client than this \
                 agent can give (input, or a task to be followed).",
                self.label
            )),
            Err(why) => Outcome::failed(why),
        }
    }

    /// Asks it something, within bounds. Dropping the future cancels the request at the server.
    pub(super) async fn ask<T>(
        &self,
        asked: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, String> {
        let label = &self.label;
        let error = match timeout(CALL_MAX, asked).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error,
            Err(_) => {
                let limit = CALL_MAX.as_secs();
                return Err(format!(
                    "The MCP server `{label}` did not answer within {limit} s; the call was cancelled."
                ));
            }
        };
        Err(match error {
            ServiceError::McpError(error) => {
                format!("The MCP server `{label}` refused the call: {}.", error.message)
            }
            ServiceError::TransportClosed => self.why_gone().await,
            ServiceError::TransportSend(error) => {
                let why = http::why(error.error.as_ref());
                format!("The MCP server `{label}` could not be reached: {why}.")
            }
            error => format!("The MCP server `{label}` gave no usable answer: {error}."),
        })
    }

    /// Its connection has just closed: the reason follows at once.
    async fn why_gone(&self) -> String {
        let mut card = self.card.subscribe();
        let heard = timeout(LAST_WORDS_MAX * 2, card.wait_for(|it| it.why_down.is_some())).await;
        let why = heard.ok().and_then(|it| it.ok()?.why_down.clone());
        why.unwrap_or_else(|| format!("The MCP server `{}` has closed its connection.", self.label))
    }

    fn give_up(&self, what: &str, tail: Option<&str>) {
        let label = &self.label;
        let mut why = format!(
            "The MCP server `{label}` {what}. The session goes on without its tools; to try again, \
             start a new one."
        );
        if let Some(tail) = tail.map(str::trim).filter(|it| !it.is_empty()) {
            let left_out = tail.chars().count().saturating_sub(TAIL_CHARS_MAX);
            let end: String = tail.chars().skip(left_out).collect();
            why = format!("{why} The last it wrote on stderr:\n{end}");
        }
        self.card.send_modify(|card| {
            card.peer = None;
            card.why_down = Some(why);
        });
    }
}

/// What the client calls it.
pub(super) fn name_of(spec: &McpServer) -> &str {
    match spec {
        McpServer::Stdio(it) => &it.name,
        McpServer::Http(it) => &it.name,
        McpServer::Sse(it) => &it.name,
        _ => "",
    }
}

/// The life of a server. Whoever drops it ends the server.
pub(super) async fn live(server: Arc<Server>, spec: McpServer, ground: Ground, limit: Duration) {
    let changed = Arc::new(Notify::new());
    let mut words = None;
    let started = timeout(limit, start(spec, &ground, Arc::clone(&changed), &mut words)).await;
    let (running, tools) = match started {
        Ok(Ok(started)) => started,
        Ok(Err(why)) => {
            let (end, tail) = last_words(words).await;
            let why = end.map_or(why, |end| format!("it ended while it was starting ({end})"));
            return server.give_up(&format!("could not be started: {why}"), Some(&tail));
        }
        Err(_) => {
            let (_, tail) = last_words(words).await;
            let what = format!("did not answer within {} s and was ended", limit.as_secs_f64());
            return server.give_up(&what, Some(&tail));
        }
    };
    let peer = running.peer().clone();
    let has_resources = has(&peer, |it| it.resources.is_some());
    server.card.send_replace(Card {
        peer: Some(peer.clone()),
        tools,
        has_resources,
        why_down: None,
    });
    let end = running.waiting();
    let mut end = std::pin::pin!(end);
    loop {
        tokio::select! {
            _ = &mut end => break,
            () = changed.notified() => {
                // A server that cannot list them any more has those it had.
                if let Ok(Ok(tools)) = timeout(limit, list_tools(&peer)).await {
                    server.card.send_modify(|card| card.tools = tools);
                }
            }
        }
    }
    let (end, tail) = last_words(words).await;
    let how = end.unwrap_or_else(|| "its connection was closed".to_owned());
    server.give_up(&format!("has ended ({how})"), Some(&tail));
}

type Running = RunningService<RoleClient, Ear>;

async fn start(
    spec: McpServer,
    ground: &Ground,
    changed: Arc<Notify>,
    words: &mut Option<LastWords>,
) -> Result<(Running, Vec<Tool>), String> {
    let ear = Ear { changed };
    let running = match spec {
        McpServer::Stdio(spec) => {
            let (pipe, heard) = stdio::open(spec, ground)?;
            *words = Some(heard);
            ear.serve(pipe).await
        }
        McpServer::Http(spec) => ear.serve(http::open(&spec)?).await,
        McpServer::Sse(spec) => ear.serve(sse::open(&spec).await?).await,
        _ => return Err("this agent does not know its transport".to_owned()),
    };
    let running = running.map_err(|error| why_not(&error))?;
    let tools = list_tools(running.peer()).await.map_err(|error| chain(&error))?;
    Ok((running, tools))
}

/// How a process ended, and the end of what it wrote on stderr.
async fn last_words(words: Option<LastWords>) -> (Option<String>, String) {
    let Some(mut words) = words else { return (None, String::new()) };
    let heard = timeout(LAST_WORDS_MAX, words.wait_for(Option::is_some)).await;
    match heard.ok().and_then(|it| it.ok()?.clone()) {
        Some(exit) => (Some(exit.to_string()), exit.stderr_tail),
        None => (None, String::new()),
    }
}

fn has(peer: &Peer<RoleClient>, what: fn(&rmcp::model::ServerCapabilities) -> bool) -> bool {
    peer.peer_info().is_some_and(|it| what(&it.capabilities))
}

async fn list_tools(peer: &Peer<RoleClient>) -> Result<Vec<Tool>, ServiceError> {
    let mut tools = Vec::new();
    if !has(peer, |it| it.tools.is_some()) {
        return Ok(tools);
    }
    let mut cursor = None;
    for _ in 0..PAGES_MAX {
        let asked = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(asked)).await?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(tools)
}

/// What a server may ask of us, which is nothing, and what it may tell us.
struct Ear {
    /// Its tools are others now.
    changed: Arc<Notify>,
}

impl ClientHandler for Ear {
    fn get_info(&self) -> ClientConfig {
        let we = Implementation::new("jackfield", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), we)
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// In words for people: the SDK's own name its types.
fn why_not(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => http::why(error.error.as_ref()),
        ClientInitializeError::ConnectionClosed(_) => "it closed the connection".to_owned(),
        ClientInitializeError::JsonRpcError(error) => format!("it refused: {}", error.message),
        error => chain(error),
    }
}

/// An error of the SDK and its causes. Most of its errors say their causes themselves: what stands
/// there is not said again.
pub(super) fn chain(error: &dyn Error) -> String {
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

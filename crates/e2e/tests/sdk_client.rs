//! A client made of the official SDK alone, and the ways it takes to the hub.

use agent_client_protocol::{
    Agent, ByteStreams, Client, ConnectTo, DynConnectTo, Lines, Result, on_receive_notification,
    on_receive_request,
    schema::ProtocolVersion,
    v1::{
        ConnectionTo,
        schema::{
            ContentBlock, ContentChunk, InitializeRequest, InitializeResponse,
            PermissionOptionKind, PromptRequest, RequestPermissionOutcome,
            RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome,
            SessionId, SessionNotification, SessionUpdate, StopReason,
        },
    },
};
use futures::{AsyncBufReadExt as _, StreamExt as _};
use jackfield_e2e::{Home, client::PATIENCE};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    net::SocketAddr,
    process::Stdio,
    sync::{Arc, Mutex},
};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpStream, UnixStream},
    process::{Child, Command},
    sync::Notify,
};
use tokio_util::compat::{TokioAsyncReadCompatExt as _, TokioAsyncWriteCompatExt as _};

/// What the SDK holds while it talks.
pub(crate) type Talk = ConnectionTo<Agent>;

/// Runs a test that awaits; nothing in it may take longer than our patience.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.expect("it hangs") })
}

/// How a client reaches the hub.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// Through `jackfield acp`, as an editor would.
    Stdio,
    Unix,
    Tcp(SocketAddr),
}

impl Way {
    /// One whole conversation: connects, names the agent, talks, leaves.
    pub(crate) async fn talk<T>(
        self,
        home: &Home,
        agent: &[String],
        ear: &Ear,
        body: impl AsyncFnOnce(Talk) -> Result<T>,
    ) -> T {
        let (transport, shim) = match self {
            Way::Stdio => {
                let (transport, shim) = start_shim(home, agent);
                (transport, Some(shim))
            }
            Way::Unix => {
                let mut stream = UnixStream::connect(home.socket()).await.unwrap();
                stream.write_all(naming(agent).as_bytes()).await.unwrap();
                let (read, write) = stream.into_split();
                (DynConnectTo::new(ByteStreams::new(write.compat_write(), read.compat())), None)
            }
            Way::Tcp(address) => {
                let mut stream = TcpStream::connect(address).await.unwrap();
                let token = std::fs::read_to_string(home.path().join("state/token")).unwrap();
                let shown = notification("_jackfield/auth", &json!({ "token": token.trim() }));
                stream.write_all(shown.as_bytes()).await.unwrap();
                stream.write_all(naming(agent).as_bytes()).await.unwrap();
                let (read, write) = stream.into_split();
                (DynConnectTo::new(ByteStreams::new(write.compat_write(), read.compat())), None)
            }
        };
        let said = talk(transport, ear, body).await;
        if let Some(shim) = shim {
            leave(shim).await;
        }
        said
    }
}

/// `jackfield acp -- agent…` with piped stdio and nothing else, as an editor starts it.
pub(crate) fn start_shim(home: &Home, agent: &[String]) -> (DynConnectTo<Client>, Child) {
    start_shim_in(home, agent, &BTreeMap::new())
}

/// The same with more in its environment, which the agent sees.
pub(crate) fn start_shim_in(
    home: &Home,
    agent: &[String],
    env: &BTreeMap<String, String>,
) -> (DynConnectTo<Client>, Child) {
    let mut command = Command::from(home.command(&["acp", "--"]));
    command
        .envs(env)
        .args(agent)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut shim = command.spawn().expect("the binary starts");
    let stdin = shim.stdin.take().expect("piped").compat_write();
    let stdout = shim.stdout.take().expect("piped").compat();
    (DynConnectTo::new(ByteStreams::new(stdin, stdout)), shim)
}

/// The pipes are closed: the shim ends by itself, and nobody keeps its stderr open.
pub(crate) async fn leave(shim: Child) {
    let output = shim.wait_with_output().await.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the shim ended with {}: {stderr}", output.status);
}

fn naming(agent: &[String]) -> String {
    notification("_jackfield/connect", &json!({ "agent": { "name": "sdk", "argv": agent } }))
}

fn notification(method: &str, params: &Value) -> String {
    format!("{}\n", json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

/// Says hello; what the agent behind the hub told.
pub(crate) async fn hello(hub: &Talk) -> Result<InitializeResponse> {
    hub.send_request(InitializeRequest::new(ProtocolVersion::V1)).block_task().await
}

/// One whole turn.
pub(crate) async fn prompt(hub: &Talk, session: &SessionId, text: &str) -> Result<StopReason> {
    let prompt = PromptRequest::new(session.clone(), vec![text.into()]);
    hub.send_request(prompt).block_task().await.map(|it| it.stop_reason)
}

/// Talks over a transport until `body` is done; permissions are granted once.
pub(crate) async fn talk<T>(
    transport: impl ConnectTo<Client> + 'static,
    ear: &Ear,
    body: impl AsyncFnOnce(Talk) -> Result<T>,
) -> T {
    let (updates, asks) = (ear.clone(), ear.clone());
    let talked = Client
        .v1()
        .on_receive_notification(
            async move |it: SessionNotification, _cx| {
                updates.heard.lock().unwrap().push(it);
                updates.news.notify_waiters();
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |ask: RequestPermissionRequest, responder, _cx| {
                let allow = PermissionOptionKind::AllowOnce;
                let option = ask.options.iter().find(|it| it.kind == allow).expect("an option");
                let chosen = SelectedPermissionOutcome::new(option.option_id.clone());
                asks.asks.lock().unwrap().push(ask);
                responder.respond(RequestPermissionResponse::new(
                    RequestPermissionOutcome::Selected(chosen),
                ))
            },
            on_receive_request!(),
        )
        .connect_with(transport, body)
        .await;
    talked.expect("nothing goes wrong in this conversation")
}

/// What a client heard and was asked, in order.
#[derive(Clone, Default)]
pub(crate) struct Ear {
    heard: Arc<Mutex<Vec<SessionNotification>>>,
    asks: Arc<Mutex<Vec<RequestPermissionRequest>>>,
    news: Arc<Notify>,
}

impl Ear {
    /// The updates so far, each of which must be about this session.
    pub(crate) fn updates(&self, session: &SessionId) -> Vec<SessionUpdate> {
        let heard = self.heard.lock().unwrap();
        assert!(heard.iter().all(|it| it.session_id == *session), "an update of another session");
        heard.iter().map(|it| it.update.clone()).collect()
    }

    pub(crate) fn asks(&self) -> Vec<RequestPermissionRequest> {
        self.asks.lock().unwrap().clone()
    }

    /// All that the agent said, as one text.
    pub(crate) fn text(&self) -> String {
        let heard = self.heard.lock().unwrap();
        let said = heard.iter().filter_map(|it| match &it.update {
            SessionUpdate::AgentMessageChunk(chunk) => match &chunk.content {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            },
            _ => None,
        });
        said.collect()
    }

    /// Waits until these words were said somewhere.
    pub(crate) async fn until_heard(&self, words: &str) {
        loop {
            let news = self.news.notified();
            if self.text().contains(words) {
                return;
            }
            news.await;
        }
    }

    /// Waits until these are the last words.
    pub(crate) async fn until_said(&self, words: &str) {
        let last = agent(words);
        loop {
            let news = self.news.notified();
            if self.heard.lock().unwrap().last().is_some_and(|it| it.update == last) {
                return;
            }
            news.await;
        }
    }
}

pub(crate) fn user(text: &str) -> SessionUpdate {
    SessionUpdate::UserMessageChunk(ContentChunk::new(text.into()))
}

pub(crate) fn agent(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into()))
}

/// A way to the hub on which the SDK's requests have the ids 1, 2, 3, …: left alone it draws ids
/// that no other client has.
pub(crate) async fn with_plain_ids(home: &Home, agent: &[String]) -> impl ConnectTo<Client> {
    let mut stream = UnixStream::connect(home.socket()).await.unwrap();
    if !agent.is_empty() {
        stream.write_all(naming(agent).as_bytes()).await.unwrap();
    }
    let (read, write) = stream.into_split();
    let ids = PlainIds::default();
    let incoming = {
        let ids = ids.clone();
        let lines = futures::io::BufReader::new(read.compat()).lines();
        lines.map(move |line| line.map(|it| ids.incoming(&it)))
    };
    let outgoing = futures::sink::unfold(write, move |mut write, line: String| {
        let line = ids.outgoing(&line) + "\n";
        async move { write.write_all(line.as_bytes()).await.map(|()| write) }
    });
    Lines::new(outgoing, incoming)
}

/// The SDK's own ids, by the number each has on the wire.
#[derive(Clone, Default)]
struct PlainIds(Arc<Mutex<Vec<Value>>>);

impl PlainIds {
    fn outgoing(&self, line: &str) -> String {
        let mut frame: Value = serde_json::from_str(line).unwrap();
        if frame.get("method").is_some() && frame.get("id").is_some() {
            let mut ids = self.0.lock().unwrap();
            ids.push(frame["id"].clone());
            frame["id"] = json!(ids.len());
        }
        frame.to_string()
    }

    fn incoming(&self, line: &str) -> String {
        let mut frame: Value = serde_json::from_str(line).unwrap();
        if frame.get("method").is_none() {
            let number = frame["id"].as_u64().and_then(|it| usize::try_from(it).ok());
            let number = number.expect("answers carry the ids of requests");
            frame["id"] = self.0.lock().unwrap()[number - 1].clone();
        }
        frame.to_string()
    }
}

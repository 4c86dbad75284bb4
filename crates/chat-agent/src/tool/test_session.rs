//! For tests: a session in a temporary directory, with a fake client on the other end of the
//! connection that serves real files and runs real commands.

use super::{
    IoCapabilities, PreparedCall, SessionContext, ToolFeatures, ToolOutcome, ToolWork,
    web_search::SearchService,
};
use crate::{AgentProfile, model::ModelToolCall};
use agent_client_protocol::{
    Agent, Channel, Client, Error, on_receive_request,
    v1::{
        ConnectionTo,
        schema::{
            CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest,
            KillTerminalResponse, ReadTextFileRequest, ReadTextFileResponse,
            ReleaseTerminalRequest, ReleaseTerminalResponse, TerminalExitStatus,
            TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
            WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
        },
    },
};
use jackfield_agents::GuardCommand;
use jackfield_workspace_fs::{ReadFileRequest, WriteFileRequest};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{process, sync::oneshot};

/// Nothing here takes this long, unless it is broken or the machine is very busy.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

pub(in crate::tool) struct TestSession {
    dir: TempDir,
    pub(in crate::tool) context: SessionContext,
    pub(in crate::tool) client: FakeClient,
    updates: Arc<Mutex<Vec<String>>>,
}

/// Runs a test in a session whose client has these capabilities.
pub(in crate::tool) async fn with_test_session(
    client_io: IoCapabilities,
    test: impl AsyncFnOnce(TestSession),
) {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    fs::create_dir(&work).unwrap();
    let fake = FakeClient { dirs: vec![work.clone()], ..FakeClient::default() };
    let (agent_end, client_end) = Channel::duplex();
    let (sender, client) = oneshot::channel();
    let agent = tokio::spawn(Agent.v1().connect_with(agent_end, async move |client| {
        sender.send(client).map_err(|_| Error::internal_error())?;
        std::future::pending::<Result<(), Error>>().await
    }));
    let serving = tokio::spawn(fake.clone().serve(client_end));
    let features = ToolFeatures {
        web_fetch: true,
        web_search: Some(SearchService::parse("http://127.0.0.1:9/", None).unwrap()),
        code_search: true,
        language_server: true,
    };
    let context = SessionContext {
        session_id: "s".into(),
        dirs: vec![work],
        client: client.await.unwrap(),
        client_io,
        guard: GuardCommand { program: guard_program(), args: Vec::new() },
        ledger_dir: dir.path().join("ledger"),
        features,
        language_servers: Arc::default(),
        profile: AgentProfile::CodingAgent,
    };
    test(TestSession { dir, context, client: fake, updates: Arc::default() }).await;
    agent.abort();
    serving.abort();
}

/// Examples are built next to the tests.
fn guard_program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples/chat-guard")
}

pub(in crate::tool) async fn wait_until(condition: impl Fn() -> bool) {
    let wait = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, wait).await.expect("the condition becomes true in time");
}

impl TestSession {
    /// Returns a path in the working directory.
    pub(in crate::tool) fn at(&self, name: &str) -> PathBuf {
        self.context.dirs[0].join(name)
    }

    pub(in crate::tool) async fn prepare(
        &self,
        name: &str,
        args: Value,
    ) -> Result<PreparedCall<ToolWork>, String> {
        let (id, name) = ("c".to_owned(), name.to_owned());
        super::prepare_call(&ModelToolCall { id, name, arguments: args.to_string() }, &self.context)
            .await
    }

    pub(in crate::tool) async fn run(&self, prepared: PreparedCall<ToolWork>) -> ToolOutcome {
        let updates = Arc::clone(&self.updates);
        let on_progress = move |fields| {
            updates.lock().unwrap().push(serde_json::to_string(&fields).unwrap());
        };
        super::run_work(prepared.work, &self.context, &on_progress).await
    }

    /// Prepares and runs a call. An invalid call gives a failed outcome, as the model sees it.
    pub(in crate::tool) async fn call(&self, name: &str, args: Value) -> ToolOutcome {
        match self.prepare(name, args).await {
            Ok(prepared) => tokio::time::timeout(TEST_TIMEOUT, self.run(prepared))
                .await
                .expect("the call ends in time"),
            Err(error) => ToolOutcome::failure(error),
        }
    }

    /// Returns the progress updates so far, as JSON.
    pub(in crate::tool) fn updates(&self) -> Vec<String> {
        self.updates.lock().unwrap().clone()
    }

    /// Waits until no command runs any more, here or in the client.
    pub(in crate::tool) async fn wait_for_no_commands(&self) {
        let ledger = self.dir.path().join("ledger");
        let recorded = || fs::read_dir(&ledger).map_or(0, Iterator::count);
        wait_until(|| recorded() == 0 && self.client.terminals.lock().unwrap().is_empty()).await;
    }
}

/// Does what an editor does.
#[derive(Clone, Default)]
pub(in crate::tool) struct FakeClient {
    dirs: Vec<PathBuf>,
    requests: Arc<Mutex<Vec<String>>>,
    terminals: Arc<Mutex<BTreeMap<String, FakeTerminal>>>,
}

#[derive(Clone)]
struct FakeTerminal {
    process_group: u32,
    output: PathBuf,
    exit: tokio::sync::watch::Receiver<Option<TerminalExitStatus>>,
}

impl FakeClient {
    /// Returns the requests so far, in order.
    pub(in crate::tool) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    fn record(&self, operation: &str, object: &str) {
        self.requests.lock().unwrap().push(format!("{operation} {object}").trim().to_owned());
    }

    async fn serve(self, transport: Channel) -> Result<(), Error> {
        let [read, write, create, output, wait, kill, release] =
            std::array::from_fn(|_| self.clone());
        Client
            .v1()
            .on_receive_request(
                async move |it: ReadTextFileRequest, responder, _cx| {
                    responder.respond_with_result(read.read_file(it))
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |it: WriteTextFileRequest, responder, _cx| {
                    responder.respond_with_result(write.write_file(it))
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |it: CreateTerminalRequest, responder, _cx| {
                    responder.respond(create.create_terminal(&it))
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |it: TerminalOutputRequest, responder, _cx| {
                    output.record("output", "");
                    let terminal = output.find_terminal(&it.terminal_id.0);
                    let text = fs::read_to_string(terminal.output).unwrap();
                    responder.respond(TerminalOutputResponse::new(text, false))
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |it: WaitForTerminalExitRequest, responder, cx: ConnectionTo<Agent>| {
                    wait.record("wait", "");
                    let mut exit = wait.find_terminal(&it.terminal_id.0).exit;
                    cx.spawn(async move {
                        let status = exit.wait_for(Option::is_some).await;
                        let status = status.ok().and_then(|it| it.clone()).unwrap_or_default();
                        responder.respond(WaitForTerminalExitResponse::new(status))
                    })
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |it: KillTerminalRequest, responder, _cx| {
                    kill.record("kill", "");
                    kill.find_terminal(&it.terminal_id.0).kill().await;
                    responder.respond(KillTerminalResponse::new())
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |it: ReleaseTerminalRequest, responder, _cx| {
                    release.find_terminal(&it.terminal_id.0).kill().await;
                    release.terminals.lock().unwrap().remove(&*it.terminal_id.0);
                    release.record("release", "");
                    responder.respond(ReleaseTerminalResponse::new())
                },
                on_receive_request!(),
            )
            .connect_to(transport)
            .await
    }

    fn read_file(&self, it: ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        self.record("read", &it.path.file_name().unwrap().to_string_lossy());
        let (line, limit) = (it.line.map(u64::from), it.limit.map(u64::from));
        let read = ReadFileRequest { path: it.path, line, limit }.execute(&self.dirs);
        let to_error = |fault| Error::internal_error().data(format!("{fault}"));
        read.map(ReadTextFileResponse::new).map_err(to_error)
    }

    fn write_file(&self, it: WriteTextFileRequest) -> Result<WriteTextFileResponse, Error> {
        self.record("write", &it.path.file_name().unwrap().to_string_lossy());
        let written = WriteFileRequest { path: it.path, content: it.content }.execute(&self.dirs);
        let to_error = |fault| Error::internal_error().data(format!("{fault}"));
        written.map(|()| WriteTextFileResponse::new()).map_err(to_error)
    }

    fn create_terminal(&self, it: &CreateTerminalRequest) -> CreateTerminalResponse {
        self.record("create", it.args.last().unwrap());
        let mut terminals = self.terminals.lock().unwrap();
        let id = format!("t{}", terminals.len());
        let output = self.dirs[0].with_file_name(&id);
        let file = fs::File::create(&output).unwrap();
        let mut child = process::Command::new(&it.command)
            .args(&it.args)
            .current_dir(it.cwd.as_ref().unwrap())
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .process_group(0)
            .spawn()
            .unwrap();
        let process_group = child.id().unwrap();
        let (sender, exit) = tokio::sync::watch::channel(None);
        tokio::spawn(async move {
            let code = child.wait().await.unwrap().code().and_then(|it| u32::try_from(it).ok());
            sender.send_replace(Some(TerminalExitStatus::new().exit_code(code)));
        });
        terminals.insert(id.clone(), FakeTerminal { process_group, output, exit });
        CreateTerminalResponse::new(id)
    }

    fn find_terminal(&self, id: &str) -> FakeTerminal {
        self.terminals.lock().unwrap()[id].clone()
    }
}

impl FakeTerminal {
    /// Kills the process group only while the command runs, because its id may be reused later.
    async fn kill(&self) {
        if self.exit.borrow().is_none() {
            let line = format!("kill -KILL -{}", self.process_group);
            let killed = process::Command::new("/bin/sh").args(["-c", &line]).status().await;
            assert!(killed.unwrap().success(), "{line}");
            self.exit.clone().wait_for(Option::is_some).await.unwrap();
        }
    }
}

//! For tests: a session in a directory of its own, with a client at the other end of a connection
//! that serves real files and real commands.

use super::{Job, Offers, Outcome, Site, Work};
use crate::model::Call;
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
use jackfield_inside::{ReadFile, WriteFile};
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

/// Nothing here takes so long, unless it is broken or the machine is very busy.
const BOUND: Duration = Duration::from_secs(20);

pub(in crate::tool) struct World {
    dir: TempDir,
    pub(in crate::tool) site: Site,
    pub(in crate::tool) client: FakeClient,
    shown: Arc<Mutex<Vec<String>>>,
}

/// Runs a test in a world whose client offers these.
pub(in crate::tool) async fn in_world(offers: Offers, body: impl AsyncFnOnce(World)) {
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    fs::create_dir(&work).unwrap();
    let fake = FakeClient { dirs: vec![work.clone()], ..FakeClient::default() };
    let (ours, theirs) = Channel::duplex();
    let (sender, client) = oneshot::channel();
    let agent = tokio::spawn(Agent.v1().connect_with(ours, async move |client| {
        sender.send(client).map_err(|_| Error::internal_error())?;
        std::future::pending::<Result<(), Error>>().await
    }));
    let serving = tokio::spawn(fake.clone().serve(theirs));
    let site = Site {
        session: "s".into(),
        dirs: vec![work],
        client: client.await.unwrap(),
        offers,
        guard: GuardCommand { program: guard(), args: Vec::new() },
        ledger: dir.path().join("ledger"),
        fetch: true,
    };
    body(World { dir, site, client: fake, shown: Arc::default() }).await;
    agent.abort();
    serving.abort();
}

/// Examples are built next to the tests.
fn guard() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join("examples/chat-guard")
}

/// Waits for a condition.
pub(in crate::tool) async fn until(is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(BOUND, wait).await.expect("it never came to be");
}

impl World {
    pub(in crate::tool) fn at(&self, name: &str) -> PathBuf {
        self.site.dirs[0].join(name)
    }

    pub(in crate::tool) async fn prepare(
        &self,
        name: &str,
        args: Value,
    ) -> Result<Job<Work>, String> {
        let (id, name) = ("c".to_owned(), name.to_owned());
        super::prepare(&Call { id, name, arguments: args.to_string() }, &self.site).await
    }

    pub(in crate::tool) async fn run(&self, job: Job<Work>) -> Outcome {
        let shown = Arc::clone(&self.shown);
        let show = move |fields| {
            shown.lock().unwrap().push(serde_json::to_string(&fields).unwrap());
        };
        super::run(job.work, &self.site, &show).await
    }

    /// Both, and what is wrong with the call is a failed outcome, as the model sees it.
    pub(in crate::tool) async fn call(&self, name: &str, args: Value) -> Outcome {
        match self.prepare(name, args).await {
            Ok(job) => tokio::time::timeout(BOUND, self.run(job)).await.expect("it never ended"),
            Err(why) => Outcome::failed(why),
        }
    }

    /// The updates that were shown, as JSON.
    pub(in crate::tool) fn shown(&self) -> Vec<String> {
        self.shown.lock().unwrap().clone()
    }

    /// Waits until no command is noted as running, here or at the client.
    pub(in crate::tool) async fn nothing_is_left(&self) {
        let ledger = self.dir.path().join("ledger");
        let notes = || fs::read_dir(&ledger).map_or(0, Iterator::count);
        until(|| notes() == 0 && self.client.terminals.lock().unwrap().is_empty()).await;
    }
}

/// What an editor does, without the editor.
#[derive(Clone, Default)]
pub(in crate::tool) struct FakeClient {
    dirs: Vec<PathBuf>,
    heard: Arc<Mutex<Vec<String>>>,
    terminals: Arc<Mutex<BTreeMap<String, Terminal>>>,
}

#[derive(Clone)]
struct Terminal {
    /// The process group of its command.
    group: u32,
    output: PathBuf,
    exit: tokio::sync::watch::Receiver<Option<TerminalExitStatus>>,
}

impl FakeClient {
    /// What was asked of it, in order.
    pub(in crate::tool) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    fn note(&self, what: &str, about: &str) {
        self.heard.lock().unwrap().push(format!("{what} {about}").trim().to_owned());
    }

    async fn serve(self, transport: Channel) -> Result<(), Error> {
        let [read, write, create, output, wait, kill, release] =
            std::array::from_fn(|_| self.clone());
        Client
            .v1()
            .on_receive_request(
                async move |it: ReadTextFileRequest, responder, _cx| {
                    responder.respond_with_result(read.read(it))
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |it: WriteTextFileRequest, responder, _cx| {
                    responder.respond_with_result(write.write(it))
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |it: CreateTerminalRequest, responder, _cx| {
                    responder.respond(create.create(&it))
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |it: TerminalOutputRequest, responder, _cx| {
                    output.note("output", "");
                    let terminal = output.find(&it.terminal_id.0);
                    let text = fs::read_to_string(terminal.output).unwrap();
                    responder.respond(TerminalOutputResponse::new(text, false))
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |it: WaitForTerminalExitRequest, responder, cx: ConnectionTo<Agent>| {
                    wait.note("wait", "");
                    let mut exit = wait.find(&it.terminal_id.0).exit;
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
                    kill.note("kill", "");
                    kill.find(&it.terminal_id.0).kill().await;
                    responder.respond(KillTerminalResponse::new())
                },
                on_receive_request!(),
            )
            .on_receive_request(
                async move |it: ReleaseTerminalRequest, responder, _cx| {
                    release.find(&it.terminal_id.0).kill().await;
                    release.terminals.lock().unwrap().remove(&*it.terminal_id.0);
                    release.note("release", "");
                    responder.respond(ReleaseTerminalResponse::new())
                },
                on_receive_request!(),
            )
            .connect_to(transport)
            .await
    }

    fn read(&self, it: ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        self.note("read", &it.path.file_name().unwrap().to_string_lossy());
        let (line, limit) = (it.line.map(u64::from), it.limit.map(u64::from));
        let read = ReadFile { path: it.path, line, limit }.run(&self.dirs);
        let failed = |fault| Error::internal_error().data(format!("{fault}"));
        read.map(ReadTextFileResponse::new).map_err(failed)
    }

    fn write(&self, it: WriteTextFileRequest) -> Result<WriteTextFileResponse, Error> {
        self.note("write", &it.path.file_name().unwrap().to_string_lossy());
        let written = WriteFile { path: it.path, content: it.content }.run(&self.dirs);
        let failed = |fault| Error::internal_error().data(format!("{fault}"));
        written.map(|()| WriteTextFileResponse::new()).map_err(failed)
    }

    fn create(&self, it: &CreateTerminalRequest) -> CreateTerminalResponse {
        self.note("create", it.args.last().unwrap());
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
        let group = child.id().unwrap();
        let (sender, exit) = tokio::sync::watch::channel(None);
        tokio::spawn(async move {
            let code = child.wait().await.unwrap().code().and_then(|it| u32::try_from(it).ok());
            sender.send_replace(Some(TerminalExitStatus::new().exit_code(code)));
        });
        terminals.insert(id.clone(), Terminal { group, output, exit });
        CreateTerminalResponse::new(id)
    }

    fn find(&self, id: &str) -> Terminal {
        self.terminals.lock().unwrap()[id].clone()
    }
}

impl Terminal {
    /// Only while its command runs: later the number may be somebody else's.
    async fn kill(&self) {
        if self.exit.borrow().is_none() {
            let line = format!("kill -KILL -{}", self.group);
            let killed = process::Command::new("/bin/sh").args(["-c", &line]).status().await;
            assert!(killed.unwrap().success(), "{line}");
            self.exit.clone().wait_for(Option::is_some).await.unwrap();
        }
    }
}

//! An editor made of the official SDK: it has buffers that may not be saved, and terminals.

use super::coding::Heard;
use crate::sdk_client::{Talk, run};
use agent_client_protocol::{
    ByteStreams, Client, Error, Result, on_receive_notification, on_receive_request,
    schema::ProtocolVersion,
    v1::{
        Responder,
        schema::{
            AgentRequest, ClientCapabilities, ClientResponse, CreateTerminalRequest,
            CreateTerminalResponse, FileSystemCapabilities, InitializeRequest,
            KillTerminalResponse, NewSessionRequest, PromptRequest, ReadTextFileResponse,
            ReleaseTerminalResponse, RequestPermissionOutcome, RequestPermissionResponse,
            SelectedPermissionOutcome, SessionNotification, StopReason, TerminalExitStatus,
            TerminalOutputResponse, WaitForTerminalExitResponse, WriteTextFileResponse,
        },
    },
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard},
};
use tokio::{process::Command, sync::watch};
use tokio_util::compat::{TokioAsyncReadCompatExt as _, TokioAsyncWriteCompatExt as _};

/// What a command printed, and its exit code; nothing while it runs.
type Terminal = watch::Receiver<Option<(String, u32)>>;

#[derive(Clone, Default)]
pub(super) struct Editor(Arc<Mutex<Screen>>);

#[derive(Default)]
struct Screen {
    /// What the user sees of a file, saved or not.
    buffers: BTreeMap<PathBuf, String>,
    terminals: BTreeMap<String, Terminal>,
    /// What was asked of the editor besides permissions.
    served: Vec<&'static str>,
    /// What the user answers when asked, one after the other.
    answers: Vec<&'static str>,
    heard: Heard,
}

impl Editor {
    /// An editor whose user answers so.
    pub(super) fn new(answers: &[&'static str]) -> Editor {
        let editor = Editor::default();
        editor.screen().answers = answers.to_vec();
        editor
    }

    /// The user typed this and did not save it.
    pub(super) fn type_in(&self, path: PathBuf, text: &str) {
        self.screen().buffers.insert(path, text.to_owned());
    }

    pub(super) fn heard(&self) -> Heard {
        self.screen().heard.clone()
    }

    /// How often each method was called.
    pub(super) fn served(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for method in &self.screen().served {
            *counts.entry(*method).or_default() += 1;
        }
        counts
    }

    /// Terminals that were not given back.
    pub(super) fn terminals(&self) -> usize {
        self.screen().terminals.len()
    }

    /// Starts the agent, opens a session, sends one prompt and leaves.
    pub(super) fn prompt(&self, agent: std::process::Command, dir: &Path, text: &str) -> String {
        let session = async |hub: Talk| {
            let files = FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
            let offers = ClientCapabilities::new().fs(files).terminal(true);
            let hello = InitializeRequest::new(ProtocolVersion::V1).client_capabilities(offers);
            hub.send_request(hello).block_task().await?;
            let new = hub.send_request(NewSessionRequest::new(dir)).block_task().await?;
            let prompt = PromptRequest::new(new.session_id, vec![text.into()]);
            Ok(hub.send_request(prompt).block_task().await?.stop_reason)
        };
        run(async {
            let mut command = Command::from(agent);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut agent = command.spawn().expect("the binary starts");
            let stdin = agent.stdin.take().expect("piped").compat_write();
            let stdout = agent.stdout.take().expect("piped").compat();
            let stop = self.talk(ByteStreams::new(stdin, stdout), session).await;
            assert!(agent.wait().await.unwrap().success(), "the agent ends when its client leaves");
            json!(stop).as_str().unwrap().to_owned()
        })
    }

    async fn talk(
        &self,
        transport: impl agent_client_protocol::ConnectTo<Client> + 'static,
        body: impl AsyncFnOnce(Talk) -> Result<StopReason>,
    ) -> StopReason {
        let (ear, hand) = (self.clone(), self.clone());
        let talked = Client
            .v1()
            .on_receive_notification(
                async move |it: SessionNotification, _cx| {
                    ear.screen().heard.updates.push(json!(it.update));
                    Ok(())
                },
                on_receive_notification!(),
            )
            .on_receive_request(
                async move |it: AgentRequest, responder, hub: Talk| hand.serve(it, responder, &hub),
                on_receive_request!(),
            )
            .connect_with(transport, body)
            .await;
        talked.expect("nothing goes wrong in this conversation")
    }

    fn serve(&self, request: AgentRequest, responder: Responder<Value>, hub: &Talk) -> Result<()> {
        let mut screen = self.screen();
        if let AgentRequest::WaitForTerminalExitRequest(it) = &request {
            screen.served.push("terminal/wait_for_exit");
            let mut terminal = screen.terminals[&*it.terminal_id.0].clone();
            drop(screen);
            return hub.spawn(async move {
                let code = terminal.wait_for(Option::is_some).await.unwrap().as_ref().unwrap().1;
                let status = TerminalExitStatus::new().exit_code(code);
                responder.respond(json!(WaitForTerminalExitResponse::new(status)))
            });
        }
        let answer = screen.answer(request);
        responder.respond_with_result(answer.map(|it| json!(it)))
    }

    fn screen(&self) -> MutexGuard<'_, Screen> {
        self.0.lock().unwrap()
    }
}

impl Screen {
    fn answer(&mut self, request: AgentRequest) -> Result<ClientResponse> {
        Ok(match request {
            AgentRequest::RequestPermissionRequest(ask) => {
                let answer = SelectedPermissionOutcome::new(self.answers.remove(0));
                self.heard.asks.push(json!(ask));
                let outcome = RequestPermissionOutcome::Selected(answer);
                ClientResponse::RequestPermissionResponse(RequestPermissionResponse::new(outcome))
            }
            AgentRequest::ReadTextFileRequest(it) => {
                self.served.push("fs/read_text_file");
                let on_disk = || fs::read_to_string(&it.path).map_err(Error::into_internal_error);
                let text = self.buffers.get(&it.path).cloned().map_or_else(on_disk, Ok)?;
                let from = it.line.map_or(0, |line| line as usize - 1);
                let limit = it.limit.map_or(usize::MAX, |limit| limit as usize);
                let lines = text.split_inclusive('\n').skip(from).take(limit);
                let answer = ReadTextFileResponse::new(lines.collect::<String>());
                ClientResponse::ReadTextFileResponse(answer)
            }
            AgentRequest::WriteTextFileRequest(it) => {
                self.served.push("fs/write_text_file");
                fs::write(&it.path, &it.content).map_err(Error::into_internal_error)?;
                self.buffers.insert(it.path, it.content);
                ClientResponse::WriteTextFileResponse(WriteTextFileResponse::new())
            }
            AgentRequest::CreateTerminalRequest(it) => {
                self.served.push("terminal/create");
                let id = format!("terminal-{}", self.served.len());
                self.terminals.insert(id.clone(), open(it));
                ClientResponse::CreateTerminalResponse(CreateTerminalResponse::new(id))
            }
            AgentRequest::TerminalOutputRequest(it) => {
                self.served.push("terminal/output");
                let terminal = self.terminals[&*it.terminal_id.0].borrow();
                let output = terminal.as_ref().map(|it| it.0.clone()).unwrap_or_default();
                ClientResponse::TerminalOutputResponse(TerminalOutputResponse::new(output, false))
            }
            AgentRequest::KillTerminalRequest(_) => {
                self.served.push("terminal/kill");
                ClientResponse::KillTerminalResponse(KillTerminalResponse::new())
            }
            AgentRequest::ReleaseTerminalRequest(it) => {
                self.served.push("terminal/release");
                self.terminals.remove(&*it.terminal_id.0).expect("it is given back once");
                ClientResponse::ReleaseTerminalResponse(ReleaseTerminalResponse::new())
            }
            other => panic!("an editor is not asked this: {other:?}"),
        })
    }
}

/// Runs a command as a terminal would, to its end.
fn open(request: CreateTerminalRequest) -> Terminal {
    let (sender, terminal) = watch::channel(None);
    tokio::spawn(async move {
        let mut command = Command::new(request.command);
        command.args(request.args).current_dir(request.cwd.expect("a directory"));
        let output = command.stdin(Stdio::null()).output().await.expect("the command starts");
        let text = String::from_utf8(output.stdout).unwrap();
        let code = output.status.code().and_then(|it| u32::try_from(it).ok()).unwrap();
        sender.send_replace(Some((text, code)));
    });
    terminal
}

//! An agent made of the official SDK alone, for the far side of `tests/sdk.rs`.
//!
//! `sdk_agent DIR` keeps its sessions in DIR, so that the next process can load them. The first word
//! of a prompt says what the turn does: `tick N`, `ask`, `wait` (for a cancel), `count` (the prompts
//! so far), `die`; anything else is said back. `_e2e/echo` answers its `payload`, ten at a time and
//! the last one first.

use agent_client_protocol::{
    Agent, Client, Error, Result, Stdio, UntypedMessage, on_receive_notification,
    on_receive_request,
    v1::{
        ConnectionTo, Responder,
        schema::{
            AgentCapabilities, CancelNotification, ContentBlock, ContentChunk, Implementation,
            InitializeRequest, InitializeResponse, LoadSessionRequest, LoadSessionResponse,
            NewSessionRequest, NewSessionResponse, PermissionOption, PermissionOptionKind,
            PromptRequest, PromptResponse, RequestPermissionOutcome, RequestPermissionRequest,
            SessionId, SessionNotification, SessionUpdate, StopReason, TextContent, ToolCallUpdate,
            ToolCallUpdateFields,
        },
    },
};
use futures::channel::oneshot;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs::{self, OpenOptions},
    io::Write as _,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

fn main() -> Result<()> {
    let dir = std::env::args_os().nth(1).map(PathBuf::from);
    let dir = dir.ok_or_else(|| Error::internal_error().data("usage: sdk_agent DIR"))?;
    futures::executor::block_on(serve(Sessions { dir, ..Sessions::default() }))
}

async fn serve(sessions: Sessions) -> Result<()> {
    let (opener, loader, driver, stopper) =
        (sessions.clone(), sessions.clone(), sessions.clone(), sessions.clone());
    Agent
        .v1()
        .name("sdk-agent")
        .on_receive_request(
            async |hello: InitializeRequest, responder, _cx| {
                let can = AgentCapabilities::new().load_session(true);
                let info = Implementation::new("sdk-agent", "5.0.0");
                let answer = InitializeResponse::new(hello.protocol_version);
                responder.respond(answer.agent_capabilities(can).agent_info(info))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |_new: NewSessionRequest, responder, _cx| {
                responder.respond(NewSessionResponse::new(opener.create()?))
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |load: LoadSessionRequest, responder, cx| {
                for update in loader.history(&load.session_id)? {
                    cx.send_notification(SessionNotification::new(
                        load.session_id.clone(),
                        update,
                    ))?;
                }
                responder.respond(LoadSessionResponse::new())
            },
            on_receive_request!(),
        )
        .on_receive_request(
            async move |prompt: PromptRequest, responder, cx: ConnectionTo<Client>| {
                let turn = Turn { sessions: driver.clone(), id: prompt.session_id, cx: cx.clone() };
                cx.spawn(async move {
                    let reason = turn.run(&prompt.prompt).await?;
                    responder.respond(PromptResponse::new(reason))
                })
            },
            on_receive_request!(),
        )
        .on_receive_notification(
            async move |cancel: CancelNotification, _cx| {
                stopper.stop(&cancel.session_id);
                Ok(())
            },
            on_receive_notification!(),
        )
        .on_receive_request(
            async move |other: UntypedMessage, responder, _cx| sessions.echo(&other, responder),
            on_receive_request!(),
        )
        .connect_to(Stdio::new())
        .await
}

/// What the agent knows. Every session is a file of updates, one a line.
#[derive(Clone, Default)]
struct Sessions {
    dir: PathBuf,
    /// Turns that wait for their cancel.
    waiting: Arc<Mutex<BTreeMap<String, oneshot::Sender<()>>>>,
    held: Arc<Mutex<Vec<(Responder, Value)>>>,
}

impl Sessions {
    fn create(&self) -> Result<SessionId> {
        let number = fs::read_dir(&self.dir).map_err(Error::into_internal_error)?.count();
        let id = SessionId::new(format!("sdk-{number}"));
        fs::write(self.file(&id), "").map_err(Error::into_internal_error)?;
        Ok(id)
    }

    fn file(&self, id: &SessionId) -> PathBuf {
        self.dir.join(id.to_string())
    }

    fn history(&self, id: &SessionId) -> Result<Vec<SessionUpdate>> {
        let text = fs::read_to_string(self.file(id)).map_err(no_session)?;
        let update = |line| serde_json::from_str(line).map_err(Error::into_internal_error);
        text.lines().map(update).collect()
    }

    fn remember(&self, id: &SessionId, update: &SessionUpdate) -> Result<()> {
        let line = serde_json::to_string(update).map_err(Error::into_internal_error)?;
        let mut file = OpenOptions::new().append(true).open(self.file(id)).map_err(no_session)?;
        writeln!(file, "{line}").map_err(Error::into_internal_error)
    }

    fn stop(&self, id: &SessionId) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&*id.0);
        if let Some(waiting) = waiting {
            // The turn may have ended by itself.
            let _ended = waiting.send(());
        }
    }

    /// Answers come late and in another order than the questions.
    fn echo(&self, request: &UntypedMessage, responder: Responder) -> Result<()> {
        if request.method() != "_e2e/echo" {
            return responder.respond_with_error(Error::method_not_found());
        }
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.push((responder, request.params()["payload"].clone()));
        if held.len() < 10 {
            return Ok(());
        }
        held.drain(..).rev().try_for_each(|(responder, payload)| responder.respond(payload))
    }
}

/// One prompt under way.
struct Turn {
    sessions: Sessions,
    id: SessionId,
    cx: ConnectionTo<Client>,
}

impl Turn {
    async fn run(&self, prompt: &[ContentBlock]) -> Result<StopReason> {
        let Some(ContentBlock::Text(TextContent { text, .. })) = prompt.first() else {
            return Err(Error::invalid_params());
        };
        let user = ContentChunk::new(text.as_str().into());
        self.sessions.remember(&self.id, &SessionUpdate::UserMessageChunk(user))?;
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        match word {
            "tick" => {
                let count: u32 = rest.parse().map_err(Error::into_internal_error)?;
                (1..=count).try_for_each(|it| self.say(&format!("tick {it} ")))?;
            }
            "ask" => self.ask().await?,
            "wait" => {
                let (stop, stopped) = oneshot::channel();
                let waiting = &self.sessions.waiting;
                waiting
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(self.id.to_string(), stop);
                self.say("waiting")?;
                return stopped
                    .await
                    .map(|()| StopReason::Cancelled)
                    .map_err(|_| Error::request_cancelled());
            }
            "count" => {
                let is_prompt =
                    |it: &SessionUpdate| matches!(it, SessionUpdate::UserMessageChunk(_));
                let history = self.sessions.history(&self.id)?;
                let count = history.iter().filter(|it| is_prompt(it)).count();
                self.say(&format!("count {count}"))?;
            }
            // An error in a task ends the connection, and with it the process.
            "die" => return Err(Error::internal_error().data("told to die")),
            _ => self.say(&format!("you said: {text}"))?,
        }
        Ok(StopReason::EndTurn)
    }

    fn say(&self, text: &str) -> Result<()> {
        let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(text.into()));
        self.sessions.remember(&self.id, &update)?;
        self.cx.send_notification(SessionNotification::new(self.id.clone(), update))
    }

    async fn ask(&self) -> Result<()> {
        let tool = ToolCallUpdate::new("call-1", ToolCallUpdateFields::new().title("touch a file"));
        let options = vec![
            PermissionOption::new("yes", "Allow", PermissionOptionKind::AllowOnce),
            PermissionOption::new("no", "Reject", PermissionOptionKind::RejectOnce),
        ];
        let ask = RequestPermissionRequest::new(self.id.clone(), tool, options);
        let answer = self.cx.send_request(ask).block_task().await?;
        match answer.outcome {
            RequestPermissionOutcome::Selected(selected) => {
                self.say(&format!("chosen: {}", selected.option_id.0))
            }
            _ => self.say("not chosen"),
        }
    }
}

fn no_session(error: impl std::fmt::Display) -> Error {
    Error::new(-32002, error.to_string())
}

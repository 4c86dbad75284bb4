//! A server as a process: frames over its pipes, under a guard, so that nothing of it is left.

use super::{ground::Ground, server::chain};
use crate::process;
use agent_client_protocol::v1::schema::McpServerStdio;
use bytes::Bytes;
use jackfield_agents::{AgentEvent, AgentHandle, Exit, Full, Launch, Speaks, spawn};
use jackfield_wire::Frame;
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use std::{borrow::Cow, future::ready};
use tokio::sync::{mpsc, watch};

/// Events and frames that may wait; behind them the pipe is not read.
const MAIL_MAX: usize = 64;

/// How the process ended, once it has.
pub(super) type LastWords = watch::Receiver<Option<Exit>>;

/// Dropping it ends the process and all that it started.
pub(super) struct Pipe {
    handle: AgentHandle,
    frames: mpsc::Receiver<Frame>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum PipeError {
    #[error("it has not read what was sent to it for a long time")]
    Full(#[source] Full),
    #[error("a message could not be written")]
    Encode(#[source] serde_json::Error),
}

pub(super) fn open(server: McpServerStdio, ground: &Ground) -> Result<(Pipe, LastWords), String> {
    let McpServerStdio { command, args, env, .. } = server;
    let program = command.to_string_lossy().into_owned();
    let given = env.into_iter().map(|it| (it.name, it.value)).collect();
    let launch = Launch {
        argv: std::iter::once(program).chain(args).collect(),
        cwd: ground.dir.clone(),
        env: ground.env_with(given),
        speaks: Speaks::Frames,
    };
    let (ledger, mark) = (process::ledger(&ground.ledger)?, process::new_mark("mcp")?);
    let (events, mail) = mpsc::channel(MAIL_MAX);
    let handle =
        spawn(&ground.guard, &launch, &mark, &ledger, events, ()).map_err(|error| chain(&error))?;
    let (said, frames) = mpsc::channel(MAIL_MAX);
    let (ended, words) = watch::channel(None);
    tokio::spawn(follow(mail, said, ended));
    Ok((Pipe { handle, frames }, words))
}

/// Listens beyond the end of the pipe: how a process ends is heard after it was told to.
async fn follow(
    mut mail: mpsc::Receiver<((), AgentEvent)>,
    said: mpsc::Sender<Frame>,
    ended: watch::Sender<Option<Exit>>,
) {
    let mut said = Some(said);
    while let Some(((), event)) = mail.recv().await {
        match event {
            AgentEvent::Frames(frames) => {
                for frame in frames {
                    let Some(said) = &said else { break };
                    // Nobody listens to a server that is being ended.
                    let _ = said.send(frame).await;
                }
            }
            AgentEvent::Gone(exit) => {
                // First the reason, then the end that makes somebody look for it.
                ended.send_replace(Some(exit));
                said = None;
            }
            _ => {}
        }
    }
}

impl Transport<RoleClient> for Pipe {
    type Error = PipeError;

    fn name() -> Cow<'static, str> {
        "stdio".into()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), PipeError>> + Send + 'static {
        let sent = serde_json::to_vec(&message).map_err(PipeError::Encode).and_then(|text| {
            self.handle.send(Bytes::from(text)).map_err(PipeError::Full)?;
            self.handle.flush();
            Ok(())
        });
        ready(sent)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let frame = self.frames.recv().await?;
            match serde_json::from_str(frame.text()) {
                Ok(message) => return Some(message),
                Err(error) => tracing::debug!(%error, "a frame of an MCP server means nothing"),
            }
        }
    }

    async fn close(&mut self) -> Result<(), PipeError> {
        self.handle.close_stdin();
        Ok(())
    }
}

//! The stdio transport: frames over the pipes of a process that runs under a guard, so that none of
//! its processes is left behind.

use super::connection::error_chain;
use crate::{
    process::{new_process_marker, open_ledger},
    spawn_context::ServerSpawnContext,
};
use agent_client_protocol::v1::schema::McpServerStdio;
use bytes::Bytes;
use jackfield_agents::{
    AgentExit, AgentHandle, AgentProcessEvent, BacklogFull, LaunchCommand, StdoutFormat,
    spawn_agent,
};
use jackfield_protocol::Frame;
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use std::{borrow::Cow, future::ready};
use tokio::sync::{mpsc, watch};

/// How many events and frames are queued before the pipe is no longer read.
const QUEUE_LEN_MAX: usize = 64;

/// Receives the exit of the process.
pub(super) type ExitReceiver = watch::Receiver<Option<AgentExit>>;

/// Dropping it ends the process and its child processes.
pub(super) struct StdioTransport {
    handle: AgentHandle,
    frames: mpsc::Receiver<Frame>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum StdioError {
    #[error("the server has not read its input for a long time")]
    QueueFull(#[source] BacklogFull),
    #[error("failed to encode a message")]
    Encode(#[source] serde_json::Error),
}

pub(super) fn connect(
    config: McpServerStdio,
    context: &ServerSpawnContext,
) -> Result<(StdioTransport, ExitReceiver), String> {
    let McpServerStdio { command, args, env, .. } = config;
    let program = command.to_string_lossy().into_owned();
    let client_env = env.into_iter().map(|it| (it.name, it.value)).collect();
    let launch = LaunchCommand {
        argv: std::iter::once(program).chain(args).collect(),
        cwd: context.dir.clone(),
        env: context.merge_env(client_env),
        stdout_format: StdoutFormat::Frames,
    };
    let (ledger, marker) = (open_ledger(&context.ledger_dir)?, new_process_marker("mcp")?);
    let (event_sender, events) = mpsc::channel(QUEUE_LEN_MAX);
    let handle = spawn_agent(&context.guard, &launch, &marker, &ledger, event_sender, ())
        .map_err(|error| error_chain(&error))?;
    let (frame_sender, frames) = mpsc::channel(QUEUE_LEN_MAX);
    let (exit_sender, exit) = watch::channel(None);
    tokio::spawn(forward_events(events, frame_sender, exit_sender));
    Ok((StdioTransport { handle, frames }, exit))
}

/// Forwards frames and the exit. Runs longer than the transport, because the exit of a process is
/// reported after it was stopped.
async fn forward_events(
    mut events: mpsc::Receiver<((), AgentProcessEvent)>,
    frame_sender: mpsc::Sender<Frame>,
    exit_sender: watch::Sender<Option<AgentExit>>,
) {
    let mut frame_sender = Some(frame_sender);
    while let Some(((), event)) = events.recv().await {
        match event {
            AgentProcessEvent::Frames(frames) => {
                for frame in frames {
                    let Some(sender) = &frame_sender else { break };
                    // This fails if the transport was dropped and the server is being ended.
                    let _ = sender.send(frame).await;
                }
            }
            AgentProcessEvent::Gone(exit) => {
                // The exit is set before the frames end, because their end makes readers look for
                // it.
                exit_sender.send_replace(Some(exit));
                frame_sender = None;
            }
            _ => {}
        }
    }
}

impl Transport<RoleClient> for StdioTransport {
    type Error = StdioError;

    fn name() -> Cow<'static, str> {
        "stdio".into()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), StdioError>> + Send + 'static {
        let sent = serde_json::to_vec(&message).map_err(StdioError::Encode).and_then(|text| {
            self.handle.send(Bytes::from(text)).map_err(StdioError::QueueFull)?;
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
                Err(error) => tracing::debug!(%error, "invalid frame from an MCP server"),
            }
        }
    }

    async fn close(&mut self) -> Result<(), StdioError> {
        self.handle.close_stdin();
        Ok(())
    }
}

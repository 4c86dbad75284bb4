//! Runs a command in a terminal of the client, which the user sees in the editor while it runs.

use super::{CommandExit, OUTPUT_BYTES_MAX, ShellCall, ShellResult};
use crate::tool::{ProgressSink, SessionContext};
use agent_client_protocol::{
    Client, Error,
    v1::{
        ConnectionTo,
        schema::{
            CreateTerminalRequest, KillTerminalRequest, ReleaseTerminalRequest, SessionId,
            Terminal, TerminalExitStatus, TerminalId, TerminalOutputRequest, ToolCallContent,
            ToolCallUpdateFields, WaitForTerminalExitRequest,
        },
    },
};
use std::time::Duration;
use tokio::{sync::oneshot, time::timeout};

/// How long the client may take to end a killed command.
const KILL_MAX: Duration = Duration::from_secs(5);

pub(super) async fn run_command(
    command: &ShellCall,
    context: &SessionContext,
    on_progress: ProgressSink<'_>,
) -> Result<ShellResult, String> {
    let terminal = ClientTerminal::create(command, context).await?;
    let content = vec![ToolCallContent::Terminal(Terminal::new(terminal.id.clone()))];
    on_progress(ToolCallUpdateFields::new().content(content.clone()));
    let exit = if let Ok(status) = timeout(command.timeout, terminal.wait_for_exit()).await {
        to_command_exit(&status?)
    } else {
        terminal.kill();
        // The output is returned even if the command does not end.
        let _ended = timeout(KILL_MAX, terminal.wait_for_exit()).await;
        CommandExit::TimedOut
    };
    let output = terminal.read_output().await?;
    Ok(ShellResult { exit, output, content })
}

/// A terminal of the client. Dropping it kills the command and releases the terminal.
struct ClientTerminal {
    client: ConnectionTo<Client>,
    session_id: SessionId,
    id: TerminalId,
}

impl ClientTerminal {
    /// Sends the request in a separate task, so that a terminal is released even if it is created
    /// after the call was canceled.
    async fn create(
        command: &ShellCall,
        context: &SessionContext,
    ) -> Result<ClientTerminal, String> {
        let (client, session_id) = (context.client.clone(), context.session_id.clone());
        let request = CreateTerminalRequest::new(session_id.clone(), "/bin/sh")
            .args(vec!["-c".to_owned(), command.line.clone()])
            .cwd(command.cwd.path.clone())
            .output_byte_limit(OUTPUT_BYTES_MAX as u64);
        let (sender, created) = oneshot::channel();
        tokio::spawn(async move {
            let response = client.send_request(request).block_task().await;
            let terminal =
                response.map(|it| ClientTerminal { client, session_id, id: it.terminal_id });
            drop(sender.send(terminal));
        });
        match created.await {
            Ok(terminal) => terminal.map_err(|error| describe_error("open a terminal", &error)),
            Err(_) => Err("The client has disconnected, so there are no terminals.".to_owned()),
        }
    }

    async fn wait_for_exit(&self) -> Result<TerminalExitStatus, String> {
        let request = WaitForTerminalExitRequest::new(self.session_id.clone(), self.id.clone());
        let response = self.client.send_request(request).block_task().await;
        response
            .map(|it| it.exit_status)
            .map_err(|error| describe_error("return the exit status of the command", &error))
    }

    async fn read_output(&self) -> Result<String, String> {
        let request = TerminalOutputRequest::new(self.session_id.clone(), self.id.clone());
        let response = self.client.send_request(request).block_task().await;
        let response =
            response.map_err(|error| describe_error("return the output of the command", &error))?;
        if response.truncated {
            Ok(format!("[… the beginning is left out here …]\n{}", response.output))
        } else {
            Ok(response.output)
        }
    }

    fn kill(&self) {
        let request = KillTerminalRequest::new(self.session_id.clone(), self.id.clone());
        self.client.send_request(request).detach();
    }
}

impl Drop for ClientTerminal {
    fn drop(&mut self) {
        // Clients accept this for a command that has ended.
        self.kill();
        let request = ReleaseTerminalRequest::new(self.session_id.clone(), self.id.clone());
        self.client.send_request(request).detach();
    }
}

fn to_command_exit(status: &TerminalExitStatus) -> CommandExit {
    match (status.exit_code, &status.signal) {
        (Some(code), _) => CommandExit::Code(code.into()),
        (None, Some(signal)) => CommandExit::Signal(signal.clone()),
        (None, None) => CommandExit::Unknown,
    }
}

fn describe_error(operation: &str, error: &Error) -> String {
    format!("The client cannot {operation}: {error}.")
}

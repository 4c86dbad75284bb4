//! A terminal of the client: people see it in their editor while it runs.

use super::{Ended, How, OUTPUT_BYTES_MAX, Shell};
use crate::tool::{Show, Site};
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

/// How long the client may take to end what was killed.
const KILL_MAX: Duration = Duration::from_secs(5);

pub(super) async fn run(shell: &Shell, site: &Site, show: Show<'_>) -> Result<Ended, String> {
    let lent = Lent::create(shell, site).await?;
    let content = vec![ToolCallContent::Terminal(Terminal::new(lent.id.clone()))];
    show(ToolCallUpdateFields::new().content(content.clone()));
    let how = if let Ok(status) = timeout(shell.limit, lent.wait()).await {
        how(&status?)
    } else {
        lent.kill();
        // What it printed is worth telling even if it does not end.
        let _ended = timeout(KILL_MAX, lent.wait()).await;
        How::TimedOut
    };
    let request = TerminalOutputRequest::new(lent.session.clone(), lent.id.clone());
    let answer = lent.client.send_request(request).block_task().await;
    let answer = answer.map_err(|error| failed("tell what the command printed", &error))?;
    let output = if answer.truncated {
        format!("[… the beginning is left out here …]\n{}", answer.output)
    } else {
        answer.output
    };
    Ok(Ended { how, output, content })
}

/// A terminal that is given back when it is dropped, and ended if it still runs.
struct Lent {
    client: ConnectionTo<Client>,
    session: SessionId,
    id: TerminalId,
}

impl Lent {
    /// In a task of its own: a terminal that comes when nobody waits for it any more is given back.
    async fn create(shell: &Shell, site: &Site) -> Result<Lent, String> {
        let (client, session) = (site.client.clone(), site.session.clone());
        let request = CreateTerminalRequest::new(session.clone(), "/bin/sh")
            .args(vec!["-c".to_owned(), shell.line.clone()])
            .cwd(shell.cwd.path.clone())
            .output_byte_limit(OUTPUT_BYTES_MAX as u64);
        let (sender, lent) = oneshot::channel();
        tokio::spawn(async move {
            let answer = client.send_request(request).block_task().await;
            let lent = answer.map(|it| Lent { client, session, id: it.terminal_id });
            drop(sender.send(lent));
        });
        match lent.await {
            Ok(lent) => lent.map_err(|error| failed("open a terminal", &error)),
            Err(_) => Err("The client is gone, and its terminals with it.".to_owned()),
        }
    }

    async fn wait(&self) -> Result<TerminalExitStatus, String> {
        let request = WaitForTerminalExitRequest::new(self.session.clone(), self.id.clone());
        let answer = self.client.send_request(request).block_task().await;
        answer
            .map(|it| it.exit_status)
            .map_err(|error| failed("tell how the command ended", &error))
    }

    fn kill(&self) {
        let request = KillTerminalRequest::new(self.session.clone(), self.id.clone());
        self.client.send_request(request).detach();
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // Of one that has ended there is nothing to kill, and the client does not mind.
        self.kill();
        let request = ReleaseTerminalRequest::new(self.session.clone(), self.id.clone());
        self.client.send_request(request).detach();
    }
}

fn how(status: &TerminalExitStatus) -> How {
    match (status.exit_code, &status.signal) {
        (Some(code), _) => How::Code(code.into()),
        (None, Some(signal)) => How::Signal(signal.clone()),
        (None, None) => How::Lost,
    }
}

fn failed(what: &str, error: &Error) -> String {
    format!("The client cannot {what}: {error}.")
}

//! `jackfield acp`: the command that an editor starts instead of an agent. It chooses the agent and then relays bytes
//! between stdio and the daemon without parsing them.

use crate::{
    context::CommandContext,
    env,
    hub::{
        AgentChoice, BlockingSocket, EndpointAddress, InProcessHub, send_single_request,
        working_directory,
    },
    report::CommandError,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use jackfield_transport::{RelayEnd, relay_bytes};
use serde_json::json;
use std::{ffi::OsString, io, path::PathBuf};

/// Speak ACP on stdin and stdout, for editors
///
/// Use it in an editor as the command of an agent. The session outlives the editor: `jackfield attach`
/// continues it in a terminal.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield acp claude
  $ jackfield acp -- goose acp
  \"command\": \"jackfield\", \"args\": [\"acp\", \"--\", \"goose\", \"acp\"]     in Zed's settings.json")]
pub(crate) struct AcpCommand {
    /// The name of an agent; `jackfield agents` lists them [default: `default_agent` in config.toml]
    #[arg(env = env::AGENT, hide_env_values = true)]
    agent: Option<String>,

    /// The directory in which the agent starts [default: the current one]
    #[arg(long, env = env::CWD, hide_env_values = true, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Run without a daemon and without stored sessions
    #[arg(long, env = env::ISOLATED, hide_env_values = true, value_parser = env::flag_parser())]
    isolated: bool,

    /// Open sessions even if policy rules deny something and the agent never asks for permission
    #[arg(long, env = env::UNENFORCED, hide_env_values = true, value_parser = env::flag_parser())]
    unenforced: bool,

    /// The command of an agent; it gets your environment
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl AcpCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let cwd = working_directory(self.cwd.as_deref())?;
        let choice = AgentChoice::new(self.agent, &self.command)?;
        if !matches!(context.daemon.address(), EndpointAddress::Tcp(_)) {
            choice.check_program()?;
        }
        if self.isolated {
            let (hub, socket) = InProcessHub::start(context.daemon.paths())?;
            let relayed = relay_stdio(socket, &choice, &cwd, self.unenforced);
            drop(hub);
            relayed
        } else {
            relay_stdio(context.daemon.dial_or_start()?, &choice, &cwd, self.unenforced)
        }
    }
}

fn relay_stdio(
    socket: BlockingSocket,
    choice: &AgentChoice,
    cwd: &std::path::Path,
    unenforced: bool,
) -> Result<(), CommandError> {
    let unenforced_params = unenforced.then(|| json!({ "unenforced": true }));
    let connected =
        send_single_request(&socket, Method::ControlConnect, &choice.connect_params(cwd));
    choice.accept_refusal(connected)?;
    if let Some(params) = unenforced_params {
        send_single_request(&socket, Method::ControlConnect, &params)?;
    }
    match relay_bytes(io::stdin(), io::stdout(), socket) {
        RelayEnd::Finished | RelayEnd::ClientGone => Ok(()),
        RelayEnd::DaemonGone => Err(CommandError::ConnectionClosed {
            waited_for: "messages of the editor or the agent".into(),
        }),
        RelayEnd::Failed(source) => Err(CommandError::local("cannot relay messages", source)),
    }
}

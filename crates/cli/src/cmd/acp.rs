//! `jackfield acp`: what an editor starts in place of an agent. It says which agent is meant and
//! then carries bytes; it understands none of them.

use crate::{
    app::Desk,
    env,
    hub::{AgentChoice, BlockingSocket, EndpointAddress, Hosted, answer_of, working_directory},
    report::Failure,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use jackfield_transport::{RelayEnd, relay_bytes};
use serde_json::json;
use std::{ffi::OsString, io, path::PathBuf};

/// Speak ACP on stdin and stdout, for editors
///
/// Paste it into an editor where the command of an agent goes. The session outlives the editor:
/// `jackfield attach` picks it up in a terminal.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield acp claude
  $ jackfield acp -- goose acp
  \"command\": \"jackfield\", \"args\": [\"acp\", \"--\", \"goose\", \"acp\"]     in Zed's settings.json")]
pub(crate) struct Acp {
    /// An agent by its name; `jackfield agents` lists them [default: the one configured as default]
    #[arg(env = env::AGENT, hide_env_values = true)]
    agent: Option<String>,

    /// The directory the agent starts in [default: this one]
    #[arg(long, env = env::CWD, hide_env_values = true, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Use no daemon: a hub in this process that forgets everything
    #[arg(long, env = env::ISOLATED, hide_env_values = true, value_parser = env::flag())]
    isolated: bool,

    /// Open sessions although their agent never asks and there are rules that deny something
    #[arg(long, env = env::UNENFORCED, hide_env_values = true, value_parser = env::flag())]
    unenforced: bool,

    /// The command of an agent; it sees your environment
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl Acp {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let cwd = working_directory(self.cwd.as_deref())?;
        let choice = AgentChoice::new(self.agent, &self.command)?;
        if !matches!(desk.dial.address(), EndpointAddress::Tcp(_)) {
            choice.check()?;
        }
        if self.isolated {
            let (hosted, socket) = Hosted::start(desk.dial.paths())?;
            let carried = carry(socket, &choice, &cwd, self.unenforced);
            drop(hosted);
            carried
        } else {
            carry(desk.dial.open()?, &choice, &cwd, self.unenforced)
        }
    }
}

fn carry(
    socket: BlockingSocket,
    choice: &AgentChoice,
    cwd: &std::path::Path,
    unenforced: bool,
) -> Result<(), Failure> {
    let accepted = unenforced.then(|| json!({ "unenforced": true }));
    for params in choice.params(cwd).into_iter().chain(accepted) {
        answer_of(&socket, Method::ControlConnect.name(), &params)?;
    }
    match relay_bytes(io::stdin(), io::stdout(), socket) {
        RelayEnd::Finished | RelayEnd::ClientGone => Ok(()),
        RelayEnd::DaemonGone => Err(Failure::HubGone {
            waited_for: "the next message of the editor or the agent".into(),
        }),
        RelayEnd::Failed(source) => Err(Failure::local("cannot go on", source)),
    }
}

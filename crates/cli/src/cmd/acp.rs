//! `jackfield acp`: the command that an editor starts instead of an agent. It chooses the agent and then relays messages
//! between stdio and the daemon, also across restarts of the daemon.

use crate::{
    complete,
    context::CommandContext,
    env,
    hub::{
        AgentChoice, BlockingSocket, BridgeEnd, BridgeHandle, BridgeLink, DaemonLink,
        EndpointAddress, InProcessHub, InProcessLink, LinkClient, RunningTurns,
        on_termination_signals, send_single_request, with_default_agent, working_directory,
    },
    report::CommandError,
};
use clap::Args;
use jackfield_hub_client::ClientRelay;
use jackfield_protocol::acp::Method;
use serde_json::{Value, json};
use std::{ffi::OsString, io, path::PathBuf};

/// Speak ACP on stdin and stdout, for editors
///
/// Use it in an editor as the command of an agent. The session outlives the editor: `jackfield attach`
/// continues it in a terminal. If the daemon ends, the command connects to the next one and resumes the
/// sessions of the editor; a running turn ends as interrupted.
///
/// SIGTERM and SIGINT end it with exit code 0, and a running turn continues in the daemon unless
/// `--cancel-on-exit` is given.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield acp
  $ jackfield acp claude
  $ jackfield acp -- goose acp
  \"command\": \"jackfield\", \"args\": [\"acp\", \"--\", \"goose\", \"acp\"]     in Zed's settings.json")]
pub(crate) struct AcpCommand {
    /// The name of an agent; `jackfield agents` lists them [default: `default_agent` in config.toml, or the only installed one]
    #[arg(env = env::AGENT, hide_env_values = true, add = complete::agents())]
    agent: Option<String>,

    /// The directory in which the agent starts [default: the current one]
    #[arg(long, env = env::CWD, hide_env_values = true, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Run without a daemon and without stored sessions
    #[arg(long, env = env::ISOLATED, hide_env_values = true, value_parser = env::flag_parser())]
    isolated: bool,

    /// The sandbox profile of the agent: open, workspace, read-only, or one of policy.toml [default: as configured]
    #[arg(long, env = env::SANDBOX, hide_env_values = true, value_name = "PROFILE")]
    sandbox: Option<String>,

    /// Open sessions even if policy rules deny something and the agent never asks for permission
    #[arg(long, env = env::UNENFORCED, hide_env_values = true, value_parser = env::flag_parser())]
    unenforced: bool,

    /// Cancel the running turn when the editor closes or ends this command
    #[arg(long, env = env::CANCEL_ON_EXIT, hide_env_values = true, value_parser = env::flag_parser())]
    cancel_on_exit: bool,

    /// The command of an agent; it gets your environment
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl AcpCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let is_typed = |it: &String| !env::is_value_of(env::AGENT, it.as_ref());
        if !self.command.is_empty() && self.agent.as_ref().is_some_and(is_typed) {
            let message = "the name of an agent cannot be combined with a command after `--`: both choose the agent";
            return Err(CommandError::usage(message, "leave out the name, or the command"));
        }
        let cwd = working_directory(self.cwd.as_deref())?;
        let is_remote = matches!(context.daemon.address(), EndpointAddress::Tcp(_));
        let choice = AgentChoice::new(self.agent.clone(), &self.command)?;
        let choice = with_default_agent(choice, &context.daemon)?;
        if !is_remote {
            choice.check_program()?;
        }
        let mut connect = choice.connect_params(&cwd);
        connect["unenforced"] = json!(self.unenforced);
        if let Some(profile) = &self.sandbox {
            connect["sandbox"] = json!(profile);
        }
        if self.isolated {
            let (hub, socket) = InProcessHub::start(context.daemon.paths())?;
            let relayed = self.relay_stdio(socket, connect, &InProcessLink);
            drop(hub);
            return relayed;
        }
        let socket = context.daemon.dial_or_start()?;
        let link = DaemonLink { connector: context.daemon.clone(), client: LinkClient::Editor };
        self.relay_stdio(socket, connect, &link)
    }

    fn relay_stdio(
        &self,
        socket: BlockingSocket,
        connect: Value,
        link: &dyn BridgeLink,
    ) -> Result<(), CommandError> {
        send_single_request(&socket, Method::ControlConnect, &connect)?;
        let seed = getrandom::u64()
            .map_err(|error| CommandError::local("cannot get random numbers", error.to_string()))?;
        let at_end =
            if self.cancel_on_exit { RunningTurns::Cancel } else { RunningTurns::Continue };
        let relay = ClientRelay::new(seed, &[connect]);
        let bridge = BridgeHandle::new(relay, socket, io::stdout(), at_end);
        let stopped = bridge.clone();
        on_termination_signals(move || {
            stopped.stop();
            true
        })
        .map_err(|source| CommandError::local("cannot handle signals", source))?;
        match bridge.run(io::stdin(), link) {
            BridgeEnd::Finished => Ok(()),
            BridgeEnd::DaemonGone => Err(CommandError::ConnectionClosed {
                waited_for: "messages of the editor or the agent".into(),
            }),
            BridgeEnd::Failed(source) => Err(CommandError::local("cannot relay messages", source)),
        }
    }
}

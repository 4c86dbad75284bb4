//! The agent of a session, its directory, and how long it may take to start.

use super::mcp;
use crate::{
    complete,
    context::CommandContext,
    env,
    hub::{
        AgentChoice, CommandConnection, EndpointAddress, ResponseWait, TimeLimit, WaitLimit,
        initialize, send_connect, with_default_agent, working_directory,
    },
    report::CommandError,
};
use clap::Args;
use jackfield_hub_client::ClientProtocol;
use jackfield_protocol::{acp::Method, mcp_servers::McpServers};
use jackfield_views::fallback::describe_fallback;
use serde_json::{Value, json};
use std::{ffi::OsString, path::PathBuf};

/// How much longer than this command the daemon waits for the agent.
const DAEMON_GRACE_SECONDS: u64 = 5;

#[derive(Debug, Args)]
pub(in crate::cmd) struct AgentLaunchArgs {
    /// The name of an agent; `jackfield agents` lists them
    #[arg(short, long, env = env::AGENT, hide_env_values = true, add = complete::agents())]
    agent: Option<String>,

    /// Start the agent with this launch variant and no other; `jackfield agents show` lists them
    #[arg(long, env = env::VARIANT, hide_env_values = true, value_name = "NAME")]
    variant: Option<String>,

    /// The working directory of the agent [default: the current one]
    #[arg(long, env = env::CWD, hide_env_values = true, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// How many seconds the agent may take to start, and then to open a session
    #[arg(long, env = env::START_TIMEOUT, hide_env_values = true, value_name = "SECS", default_value_t = 60)]
    start_timeout: u64,

    /// An MCP server for the session: a JSON file with servers, or the name of a configured one; can be repeated
    #[arg(long, env = env::MCP, hide_env_values = true, value_name = "FILE|NAME")]
    mcp: Vec<String>,

    /// The sandbox profile of the agent: open, workspace, read-only, or one of policy.toml [default: as configured]
    #[arg(long, env = env::SANDBOX, hide_env_values = true, value_name = "PROFILE")]
    sandbox: Option<String>,

    /// Open sessions even if policy rules deny something and the agent never asks for permission
    #[arg(long, env = env::UNENFORCED, hide_env_values = true, value_parser = env::flag_parser())]
    unenforced: bool,

    /// The command of an agent; it gets your environment
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl AgentLaunchArgs {
    pub(in crate::cmd) fn has_command(&self) -> bool {
        !self.command.is_empty()
    }

    pub(in crate::cmd) fn has_mcp_servers(&self) -> bool {
        !self.mcp.is_empty()
    }

    /// Whether the user typed `--agent`; a variable may also set it.
    pub(in crate::cmd) fn has_typed_agent(&self) -> bool {
        self.agent.as_ref().is_some_and(|it| !env::is_value_of(env::AGENT, it.as_ref()))
    }

    /// Whether the user typed `--cwd`; a variable may also set it.
    pub(in crate::cmd) fn has_typed_directory(&self) -> bool {
        self.cwd.as_ref().is_some_and(|it| !env::is_value_of(env::CWD, it.as_ref()))
    }

    pub(in crate::cmd) fn directory(&self) -> Result<PathBuf, CommandError> {
        working_directory(self.cwd.as_deref())
    }

    /// Rejects two agents. A command takes precedence over an agent that a variable names.
    pub(in crate::cmd) fn check_agent(&self) -> Result<(), CommandError> {
        if self.has_command() && self.has_typed_agent() {
            let message =
                "`--agent` cannot be combined with a command after `--`: both choose the agent";
            return Err(CommandError::usage(message, "leave out `--agent`, or the command"));
        }
        Ok(())
    }

    /// The chosen agent. For a local daemon, checks that the program exists.
    pub(in crate::cmd) fn choose_agent(
        &self,
        context: &CommandContext,
    ) -> Result<AgentChoice, CommandError> {
        let choice = AgentChoice::new(self.agent.clone(), &self.command)?;
        let choice = choice.with_variant(self.variant.clone())?;
        if !matches!(context.daemon.address(), EndpointAddress::Tcp(_)) {
            choice.check_program()?;
        }
        Ok(choice)
    }

    /// Resolves the flags; `time_limit` is the caller's limit for the whole command.
    pub(in crate::cmd) fn resolve(
        &self,
        context: &CommandContext,
        time_limit: Option<TimeLimit>,
    ) -> Result<AgentLaunch, CommandError> {
        let cwd = working_directory(self.cwd.as_deref())?;
        let (choice, start_seconds) = (self.choose_agent(context)?, self.start_timeout);
        let (mcp, unenforced) = (mcp::read_servers(&self.mcp)?, self.unenforced);
        let sandbox = self.sandbox.clone();
        Ok(AgentLaunch { choice, cwd, start_seconds, time_limit, unenforced, sandbox, mcp })
    }
}

/// An agent to start, with its directory and time limits.
pub(in crate::cmd) struct AgentLaunch {
    pub(in crate::cmd) choice: AgentChoice,
    pub(in crate::cmd) cwd: PathBuf,
    start_seconds: u64,
    time_limit: Option<TimeLimit>,
    unenforced: bool,
    sandbox: Option<String>,
    mcp: McpServers,
}

impl AgentLaunch {
    /// For a new session: without an agent on the command line, the default one or the only installed one.
    pub(in crate::cmd) fn name_agent(
        &mut self,
        context: &CommandContext,
    ) -> Result<(), CommandError> {
        self.choice = with_default_agent(self.choice.clone(), &context.daemon)?;
        Ok(())
    }
}

/// What is set when a session is opened.
#[derive(Debug, Default)]
pub(in crate::cmd) struct NewSessionOptions {
    pub(in crate::cmd) directories: Vec<PathBuf>,
    /// All permission requests are approved.
    pub(in crate::cmd) approves_all: bool,
}

impl AgentLaunch {
    /// Starts the agent and returns its response to `initialize`; null if the hub answered, because it chooses the agent
    /// later.
    pub(in crate::cmd) fn start_agent(
        &self,
        conn: &mut CommandConnection,
        client: &str,
        protocol: ClientProtocol,
    ) -> Result<Value, CommandError> {
        let mut params = self.choice.connect_params(&self.cwd);
        params["unenforced"] = json!(self.unenforced);
        if let Some(profile) = &self.sandbox {
            params["sandbox"] = json!(profile);
        }
        // This command gives up first, with its own hint.
        let start_seconds = self.start_seconds.saturating_add(DAEMON_GRACE_SECONDS);
        params["startTimeoutMs"] = json!(start_seconds.saturating_mul(1_000));
        send_connect(conn, &params)?;
        let waited_for = format!("{} to start", self.choice.display_name());
        let result = initialize(
            conn,
            client,
            protocol,
            ResponseWait { waited_for: &waited_for, limit: self.start_limit() },
        )?;
        if self.choice == AgentChoice::Configured {
            return Ok(Value::Null);
        }
        mcp::check_transports(&self.mcp, &result)?;
        Ok(result)
    }

    /// Opens a session and returns the result of `session/new`.
    pub(in crate::cmd) fn open_session(
        &self,
        conn: &mut CommandConnection,
        options: &NewSessionOptions,
    ) -> Result<Value, CommandError> {
        let waited_for = format!("{} to open a session", self.choice.display_name());
        let mut params = json!({ "cwd": self.cwd, "mcpServers": self.mcp.servers });
        if !self.mcp.names.is_empty() {
            params["_meta"]["jackfield"]["mcp"] = json!(self.mcp.names);
        }
        if !options.directories.is_empty() {
            params["additionalDirectories"] = json!(options.directories);
        }
        if options.approves_all {
            // An adapter may start its program with the option that approves everything.
            params["_meta"]["jackfield"]["approve"] = json!("all");
        }
        let opened = conn.call_method(
            Method::SessionNew,
            &params,
            ResponseWait { waited_for: &waited_for, limit: self.start_limit() },
        )?;
        if let Some(why) = opened["_meta"]["jackfield"]["unheard"].as_str() {
            let consequence = "`--approve`, `--on-ask` and policy rules have no effect";
            conn.print_warning(&format!("{why}; {consequence}"));
        }
        for failed in describe_fallback(&opened["_meta"]["jackfield"]["fallback"]) {
            conn.print_warning(&failed);
        }
        Ok(opened)
    }

    /// The limit for one step of the start: `--start-timeout`, or the rest of `--timeout` if that is shorter.
    pub(in crate::cmd) fn start_limit(&self) -> WaitLimit {
        let start = TimeLimit::after(self.start_seconds);
        match self.time_limit {
            Some(limit) if limit.at < start.at => WaitLimit::Caller(Some(limit)),
            _ => WaitLimit::AgentStart(start),
        }
    }
}

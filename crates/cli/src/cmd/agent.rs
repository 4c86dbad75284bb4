//! `jackfield agent`: the built-in agent on stdin and stdout.

use crate::{
    context::CommandContext, env, hub::guard_command, out::VerbosityLevel, report::CommandError,
};
use agent_client_protocol::{Agent as Role, ConnectTo};
use clap::Args;
use futures_util::{sink, stream};
use jackfield_chat_agent::{
    AgentProfile, ChatAgentConfig, ChatSettings, line_transport, serve_agent,
};
use jackfield_daemon::LogTarget;
use jackfield_protocol::{FRAME_BYTES_MAX, FRAME_ROOM_BYTES};
use std::io;

/// Run an ACP agent on stdin and stdout that uses any Chat Completions model, with tools
///
/// Environment variables configure the model: `OPENAI_BASE_URL`, `OPENAI_API_KEY`, `OPENAI_MODEL` and
/// more; docs/local-models.md lists them all. In the catalog it is the agent `chat`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_MODEL=qwen3 jackfield agent
  $ OPENAI_BASE_URL=http://localhost:8000/v1 OPENAI_MODEL=my-model jackfield run -a chat \"fix the test\"
  $ jackfield agent --bridge     as a worker of a bus, in place of openai-agent")]
pub(crate) struct AgentCommand {
    /// Only pass text between the client and the model, as `openai-agent` does: no tools, no
    /// prompt but `OPENAI_SYSTEM_PROMPT`, no stored sessions, model errors as text
    #[arg(long, env = env::BRIDGE, hide_env_values = true, value_parser = env::flag_parser())]
    bridge: bool,
}

/// The SDK warns three times about a request with an unknown method: when the request is dropped, when its handler fails,
/// and when the error is sent. The last warning is enough.
const NORMAL_LOG: &str =
    "warn,agent_client_protocol::jsonrpc=error,agent_client_protocol::jsonrpc::outgoing_actor=warn";

pub(crate) fn run(command: &AgentCommand, context: &CommandContext) -> Result<(), CommandError> {
    let level = match context.output.verbosity() {
        VerbosityLevel::Quiet => "error",
        VerbosityLevel::Normal => NORMAL_LOG,
        VerbosityLevel::Verbose => "info",
        VerbosityLevel::Debug => "debug",
    };
    let failed = |error| CommandError::local("cannot start the agent", error);
    jackfield_daemon::start_log(&LogTarget::Stderr, level).map_err(failed)?;
    let (settings, warnings) = ChatSettings::from_variables(|name| std::env::var(name).ok());
    for it in &warnings {
        context.output.print_note(it);
    }
    let paths = context.daemon.paths();
    let config = ChatAgentConfig {
        settings,
        profile: if command.bridge { AgentProfile::ChatBridge } else { AgentProfile::CodingAgent },
        guard: guard_command()?,
        store_path: paths.state.join("agent.db"),
        ledger_dir: paths.state.join("agent-ledger"),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed)?.block_on(async {
        let served = serve_agent(config, stdio_transport().map_err(failed)?).await;
        served.map_err(|error| CommandError::local("the agent failed", error))
    })
}

/// Stdin and stdout for the SDK. The SDK's own transport passes every line to another thread and back.
fn stdio_transport() -> io::Result<impl ConnectTo<Role>> {
    let (reader, writer) =
        jackfield_transport::open_stdio()?.into_frame_halves(FRAME_BYTES_MAX + FRAME_ROOM_BYTES);
    let incoming = stream::unfold(reader, async |mut reader| {
        let line = match reader.next_frame().await {
            Ok(None) => return None,
            Ok(Some(line)) => String::from_utf8(line.into()).map_err(io::Error::other),
            Err(error) => Err(error),
        };
        Some((line, reader))
    });
    let outgoing = sink::unfold(writer, async |mut writer, line: String| {
        writer.send_frame(line.as_bytes()).await?;
        Ok(writer)
    });
    Ok(line_transport(outgoing, incoming))
}

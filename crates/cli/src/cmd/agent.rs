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
use jackfield_daemon::{LogTarget, Paths};
use jackfield_private_files as private_files;
use jackfield_protocol::{FRAME_BYTES_MAX, FRAME_ROOM_BYTES};
use std::{fs, io, path::PathBuf, time::Duration};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

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

/// How long a client that does not read may delay the end of a stopped agent.
const FLUSH_MAX: Duration = Duration::from_secs(2);

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
    let folder = open_agent_folder(context.daemon.paths()).map_err(failed)?;
    let config = ChatAgentConfig {
        settings,
        profile: if command.bridge { AgentProfile::ChatBridge } else { AgentProfile::CodingAgent },
        guard: guard_command()?,
        store_path: folder.join("agent.db"),
        ledger_dir: folder.join("ledger"),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed)?.block_on(async {
        let stopped = watch_for_stop().map_err(failed)?;
        let transport = stdio_transport(stopped.clone()).map_err(failed)?;
        let flush_timeout = async {
            wait_for_stop(stopped).await;
            tokio::time::sleep(FLUSH_MAX).await;
        };
        tokio::select! {
            served = serve_agent(config, transport) => {
                served.map_err(|error| CommandError::local("the agent failed", error))
            }
            () = flush_timeout => Ok(()),
        }
    })
}

/// The folder of this agent. It is separate from the state of the daemon, which a sandbox hides. Earlier versions
/// stored the conversations beside the journal.
fn open_agent_folder(paths: &Paths) -> io::Result<PathBuf> {
    let folder = paths.chat_agent();
    private_files::create_dir(&folder)?;
    let old = paths.state.join("agent.db");
    if old.exists() && !folder.join("agent.db").exists() {
        // The log of uncommitted changes belongs to the database, so it is moved first.
        for ending in ["-wal", "-shm", ""] {
            let name = format!("agent.db{ending}");
            match fs::rename(paths.state.join(&name), folder.join(&name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(folder)
}

/// Returns a value that becomes true when SIGTERM arrives.
fn watch_for_stop() -> io::Result<watch::Receiver<bool>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let (sender, stopped) = watch::channel(false);
    tokio::spawn(async move {
        terminate.recv().await;
        sender.send_replace(true);
    });
    Ok(stopped)
}

async fn wait_for_stop(mut stopped: watch::Receiver<bool>) {
    if stopped.wait_for(|it| *it).await.is_err() {
        // The task that sends it has ended, so it never comes.
        std::future::pending::<()>().await;
    }
}

/// Stdin and stdout for the SDK. The SDK's own transport passes every line to another thread and back. When the agent is
/// stopped, its input ends, and the lines that it has sent are still written.
fn stdio_transport(stopped: watch::Receiver<bool>) -> io::Result<impl ConnectTo<Role>> {
    let (reader, writer) =
        jackfield_transport::open_stdio()?.into_frame_halves(FRAME_BYTES_MAX + FRAME_ROOM_BYTES);
    let incoming = stream::unfold((reader, stopped), async |(mut reader, stopped)| {
        let frame = tokio::select! {
            frame = reader.next_frame() => frame,
            () = wait_for_stop(stopped.clone()) => return None,
        };
        let line = match frame {
            Ok(None) => return None,
            Ok(Some(line)) => String::from_utf8(line.into()).map_err(io::Error::other),
            Err(error) => Err(error),
        };
        Some((line, (reader, stopped)))
    });
    let outgoing = sink::unfold(writer, async |mut writer, line: String| {
        writer.send_frame(line.as_bytes()).await?;
        Ok(writer)
    });
    Ok(line_transport(outgoing, incoming))
}

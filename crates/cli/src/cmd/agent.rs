//! `jackfield agent`: our own agent on stdin and stdout, with or without a daemon.

use crate::{app::Desk, hub::guard, out::Volume, report::Failure};
use agent_client_protocol::{Agent as Role, ConnectTo, Lines};
use clap::Args;
use futures_util::{sink, stream};
use jackfield_chat_agent::{ChatAgentConfig, ChatSettings, serve_agent};
use jackfield_daemon::LogTarget;
use jackfield_protocol::{FRAME_BYTES_MAX, FRAME_ROOM_BYTES};
use std::io;

/// Speak ACP on stdin and stdout as an agent: any Chat Completions model, with tools
///
/// Where the model is and how it is asked is said by the environment: `OPENAI_BASE_URL`,
/// `OPENAI_API_KEY`, `OPENAI_MODEL` and more; docs/local-models.md has them all. In the catalogue it
/// is the agent `chat`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ OPENAI_BASE_URL=http://localhost:11434/v1 OPENAI_MODEL=qwen3 jackfield agent
  $ OPENAI_BASE_URL=http://localhost:8000/v1 OPENAI_MODEL=my-model jackfield run -a chat \"fix the test\"")]
pub(crate) struct Agent {}

pub(crate) fn run(desk: &Desk) -> Result<(), Failure> {
    let level = match desk.out.volume() {
        Volume::Low => "error",
        Volume::Normal => "warn",
        Volume::High => "info",
        Volume::Full => "debug",
    };
    let failed = |error| Failure::local("the agent cannot be started", error);
    jackfield_daemon::start_log(&LogTarget::Stderr, level).map_err(failed)?;
    let (settings, warnings) = ChatSettings::from_variables(|name| std::env::var(name).ok());
    for it in &warnings {
        desk.out.note(it);
    }
    let paths = desk.dial.paths();
    let config = ChatAgentConfig {
        settings,
        guard: guard()?,
        store_path: paths.state.join("agent.db"),
        ledger_dir: paths.state.join("agent-ledger"),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(failed)?.block_on(async {
        let served = serve_agent(config, transport().map_err(failed)?).await;
        served.map_err(|error| Failure::local("the agent has ended", error))
    })
}

/// Our own pipes as the SDK wants them. Its own way hands every line to another thread and back.
fn transport() -> io::Result<impl ConnectTo<Role>> {
    let (hearing, speaking) =
        jackfield_transport::open_stdio()?.into_frame_halves(FRAME_BYTES_MAX + FRAME_ROOM_BYTES);
    let incoming = stream::unfold(hearing, async |mut hearing| {
        let line = match hearing.next_frame().await {
            Ok(None) => return None,
            Ok(Some(line)) => String::from_utf8(line.into()).map_err(io::Error::other),
            Err(error) => Err(error),
        };
        Some((line, hearing))
    });
    let outgoing = sink::unfold(speaking, async |mut speaking, line: String| {
        speaking.send_frame(line.as_bytes()).await?;
        Ok(speaking)
    });
    Ok(Lines::new(outgoing, incoming))
}

//! Log lines: the hub does not log, so what it notes becomes a line here, and nowhere else.

use jackfield_core::Note;
use std::{fs::OpenOptions, io, os::unix::fs::OpenOptionsExt as _, path::PathBuf, sync::Mutex};
use tracing_subscriber::EnvFilter;

/// Where log lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    Stderr,
    File(PathBuf),
    Nowhere,
}

/// Starts logging; `level` is a filter as in `info` or `jackfield=debug`.
pub(crate) fn start(target: &LogTarget, level: &str) -> io::Result<()> {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines =
        tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_target(false);
    // A second start in one process keeps the first logger: tests run many hubs.
    let _kept = match target {
        LogTarget::Nowhere => Ok(()),
        LogTarget::Stderr => lines.with_writer(io::stderr).try_init(),
        LogTarget::File(path) => {
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
            lines.with_writer(Mutex::new(file)).try_init()
        }
    };
    Ok(())
}

pub(crate) fn note(note: &Note) {
    match note {
        Note::SessionOpened { session, agent } => {
            tracing::info!(%session, %agent, "session opened");
        }
        Note::SessionWoke { session, agent, rung } => {
            tracing::info!(%session, %agent, rung, "session woke");
        }
        Note::SessionForked { session, from } => tracing::info!(%session, %from, "session forked"),
        Note::SessionFenced { session } => {
            tracing::error!(%session, "another hub writes to this session; it is no longer served here");
        }
        Note::SessionDeleted { session } => tracing::info!(%session, "session deleted"),
        Note::SessionImported { session, events } => {
            tracing::info!(%session, events, "session imported");
        }
        Note::TurnStarted { session, turn } => tracing::debug!(%session, turn, "turn started"),
        Note::TurnEnded { session, turn, how, .. } => {
            tracing::debug!(%session, turn, how, "turn ended");
        }
        Note::AskOpened { session, ask, .. } => {
            tracing::debug!(%session, ask, "an ask waits for a person");
        }
        Note::ClientBehind { session, conn } => {
            tracing::debug!(%session, %conn, "client is behind; it reads the journal");
        }
        Note::AppendRetried { session, held, why } => {
            tracing::error!(%session, held, why, "the journal could not append; trying again");
        }
        Note::AgentEnded { agent, status } => tracing::info!(%agent, status, "agent ended"),
    }
}

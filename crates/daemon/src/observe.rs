//! Log lines. The hub itself does not log; its notes are logged here. Secrets are redacted from all
//! lines, and repeated lines are counted.

use crate::{log_file::LogFile, log_repeats::RepeatLimit};
use jackfield_hub::Note;
use jackfield_protocol::redact;
use std::{
    io::{self, Write},
    path::PathBuf,
    sync::Mutex,
};
use tracing_subscriber::{
    EnvFilter, Layer as _,
    filter::FilterExt as _,
    fmt::MakeWriter,
    layer::SubscriberExt as _,
    util::{SubscriberInitExt as _, TryInitError},
};

/// Where log lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTarget {
    Stderr,
    File(PathBuf),
    Nowhere,
}

/// Starts logging; `level` is a filter such as `info` or `jackfield=debug`.
pub fn start_log(target: &LogTarget, level: &str) -> io::Result<()> {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    // A second start in one process keeps the first logger: tests run many hubs.
    let _ignored = match target {
        LogTarget::Nowhere => Ok(()),
        LogTarget::Stderr => install(filter, || RedactingWriter(io::stderr())),
        LogTarget::File(path) => install(filter, Mutex::new(RedactingWriter(LogFile::open(path)?))),
    };
    Ok(())
}

fn install<W>(filter: EnvFilter, writer: W) -> Result<(), TryInitError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_target(false);
    let lines = lines.with_writer(writer).with_filter(filter.and(RepeatLimit::default()));
    tracing_subscriber::registry().with(lines).try_init()
}

/// Redacts secrets. The logger writes one line per call.
struct RedactingWriter<W>(W);

impl<W: Write> Write for RedactingWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.write_all(redact::text(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

pub(crate) fn log_note(note: &Note) {
    match note {
        Note::SessionOpened { session, agent } => {
            tracing::info!(%session, %agent, "session opened");
        }
        Note::SessionWoke { session, agent, step } => {
            tracing::info!(%session, %agent, step, "session woke");
        }
        Note::SessionForked { session, from } => tracing::info!(%session, %from, "session forked"),
        Note::SessionFenced { session, held } => {
            tracing::error!(%session, held, "another hub writes to this session; releasing it");
        }
        Note::SessionDeleted { session } => tracing::info!(%session, "session deleted"),
        Note::SessionImported { session, events } => {
            tracing::info!(%session, events, "session imported");
        }
        Note::SessionAdopted { session, from } => {
            tracing::info!(%session, from = from.as_deref(), "session adopted");
        }
        Note::SessionReleased { session } => tracing::info!(%session, "session released"),
        Note::TurnStarted { session, turn } => tracing::debug!(%session, turn, "turn started"),
        Note::TurnEnded { session, turn, how, .. } => {
            tracing::debug!(%session, turn, how, "turn ended");
        }
        Note::AskOpened { session, ask, .. } => {
            tracing::debug!(%session, ask, "request to the user opened");
        }
        Note::ClientBehind { session, conn } => {
            tracing::debug!(%session, %conn, "client fell behind; it reads the journal");
        }
        Note::AppendRetried { session, held, why } => {
            tracing::error!(%session, held, why, "failed to append to the journal; retrying");
        }
        Note::StorageFailing { problem, error, way_out } => {
            tracing::error!(
                problem,
                error,
                way_out,
                "failed to write the journal; keeping events in memory"
            );
        }
        Note::StorageRecovered { after_ms } => {
            tracing::warn!(after_ms, "the journal is writable again; no events were lost");
        }
        Note::EventsUnwritten { events } => {
            tracing::error!(events, "stopped without writing these events; they are lost");
        }
        Note::AgentEnded { agent, status } => tracing::info!(%agent, status, "agent ended"),
        Note::FellBack { agent, instead, why } => {
            tracing::warn!(agent, instead, why, "agent is not available; using its fallback");
        }
        Note::OperationRefused { conn, operation, by, peer } => {
            let (pid, exe) = (peer.pid, peer.exe.as_deref());
            tracing::warn!(%conn, operation, %by, pid, exe, place = ?peer.place, "refused an operation that only the operator may perform, because the client may have been started by an agent");
        }
        Note::Unclaimed { agent } => {
            tracing::warn!(%agent, "agent sent a message for a session that it does not serve");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct LogBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for LogBuffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn secrets_in_any_field_are_redacted() {
        let buffer = LogBuffer::default();
        let writer = buffer.clone();
        let lines = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || RedactingWriter(writer.clone()))
            .finish();
        tracing::subscriber::with_default(lines, || {
            let key = "sk-ant-api03-0123456789abcdef";
            tracing::info!(session = "s-7f3abcdefghi", why = key, said = ?[key], "said {key}");
        });
        let written = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        assert!(!written.contains("0123456789"), "{written}");
        assert_eq!(written.matches("***").count(), 3, "{written}");
        assert!(written.contains("s-7f3abcdefghi") && written.ends_with('\n'), "{written}");
    }
}

//! Log lines: the hub does not log, so what it notes becomes a line here, and nowhere else. Whatever
//! a line was made of, secrets are taken out before it is written, and lines that repeat are counted.

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

/// Starts logging; `level` is a filter as in `info` or `jackfield=debug`.
pub fn start(target: &LogTarget, level: &str) -> io::Result<()> {
    let filter = EnvFilter::try_new(level).unwrap_or_else(|_| EnvFilter::new("info"));
    // A second start in one process keeps the first logger: tests run many hubs.
    let _kept = match target {
        LogTarget::Nowhere => Ok(()),
        LogTarget::Stderr => install(filter, || Veiled(io::stderr())),
        LogTarget::File(path) => install(filter, Mutex::new(Veiled(LogFile::open(path)?))),
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

/// Lines go through it, one at a time: that is how the logger writes.
struct Veiled<W>(W);

impl<W: Write> Write for Veiled<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        self.0.write_all(redact::text(&text).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
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
        Note::SessionFenced { session, held } => {
            tracing::error!(%session, held, "another hub writes to this session; it is no longer served here");
        }
        Note::SessionDeleted { session } => tracing::info!(%session, "session deleted"),
        Note::SessionImported { session, events } => {
            tracing::info!(%session, events, "session imported");
        }
        Note::SessionAdopted { session, from } => {
            tracing::info!(%session, from = from.as_deref(), "session adopted");
        }
        Note::SessionLetGo { session } => tracing::info!(%session, "session let go"),
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
        Note::StorageFailing { problem, error, way_out } => {
            tracing::error!(
                problem,
                error,
                way_out,
                "the journal cannot be written; events wait in memory"
            );
        }
        Note::StorageRecovered { after_ms } => {
            tracing::warn!(
                after_ms,
                "the journal can be written again; nothing that waited was lost"
            );
        }
        Note::EventsUnwritten { events } => {
            tracing::error!(events, "stopped without writing these events: they are lost");
        }
        Note::AgentEnded { agent, status } => tracing::info!(%agent, status, "agent ended"),
        Note::FellBack { agent, instead, why } => {
            tracing::warn!(agent, instead, why, "an agent cannot be had, and another is used");
        }
        Note::OperationRefused { conn, operation, by, peer } => {
            let (pid, exe) = (peer.pid, peer.exe.as_deref());
            tracing::warn!(%conn, operation, %by, pid, exe, place = ?peer.place, "refused what only the operator may do: the client is below an agent, or may be");
        }
        Note::Unclaimed { agent } => {
            tracing::warn!(%agent, "an agent that serves several sessions spoke in one that is none of them");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_secret_in_a_field_of_any_kind_is_not_written() {
        let kept = Kept::default();
        let writer = kept.clone();
        let lines = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || Veiled(writer.clone()))
            .finish();
        tracing::subscriber::with_default(lines, || {
            let key = "sk-ant-api03-0123456789abcdef";
            tracing::info!(session = "s-7f3abcdefghi", why = key, said = ?[key], "said {key}");
        });
        let written = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        assert!(!written.contains("0123456789"), "{written}");
        assert_eq!(written.matches("***").count(), 3, "{written}");
        assert!(written.contains("s-7f3abcdefghi") && written.ends_with('\n'), "{written}");
    }
}

//! `jackfield sessions export`: writes a session to a file.

use crate::{
    complete,
    context::CommandContext,
    env,
    exit::CliExitCode,
    hub::{CommandConnection, LogRange, SessionRow, find_session, list_sessions, read_log_range},
    out::{CommandOutput, rfc3339_now},
    plain_text::{format_count, format_event_range},
    report::CommandError,
};
use clap::{Args, ValueEnum};
use jackfield_events::{MissingEvent, ReceivedEvent};
use jackfield_views::{
    MarkdownTranscript, StreamingRedactor, export_file::ExportHeader, transcript::TranscriptHeader,
};
use serde_json::{Map, Value, json};
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
};

/// Write a session and its whole log to a file, by default without secrets
///
/// Secrets are replaced by `***`, even if they are split over several messages. `--raw` keeps the log
/// byte for byte, including secrets. A Markdown export cannot be imported.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions export s-7f3 -o session.ndjson
  $ jackfield sessions export s-7f3 | jq -r 'select(.is == \"ended\").turn'
  $ jackfield sessions export s-7f3 --raw -o backup.ndjson
  $ jackfield sessions export s-7f3 --format markdown -o session.md
  $ jackfield sessions export s-7f3 --skip-damaged -o rest.ndjson")]
pub(super) struct ExportSessionCommand {
    /// A name, an id, a unique prefix of an id, or a title
    #[arg(add = complete::sessions())]
    session: String,

    /// The file to write, readable only by you [default: stdout]
    #[arg(short, long, env = env::OUTPUT, hide_env_values = true, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Keep the log unchanged, including secrets
    #[arg(long, env = env::RAW, hide_env_values = true, value_parser = env::flag_parser())]
    raw: bool,

    /// Skip events whose record in the journal is damaged, and list them; such a file cannot be imported
    #[arg(long, env = env::SKIP_DAMAGED, hide_env_values = true, value_parser = env::flag_parser())]
    skip_damaged: bool,

    /// The format of the file
    #[arg(
        id = "export_format",
        long = "format",
        env = env::EXPORT_FORMAT,
        hide_env_values = true,
        value_name = "FORMAT",
        value_enum,
        default_value_t
    )]
    format: ExportFormat,
}

// Not `OutputFormat`: `JACKFIELD_FORMAT=quiet` must not affect an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum ExportFormat {
    /// The log with one event per line, for `sessions import` and for programs
    #[default]
    Ndjson,
    /// The conversation as a readable document, with its usage
    Markdown,
}

impl ExportSessionCommand {
    pub(super) fn run(
        &self,
        context: &CommandContext,
        conn: &mut CommandConnection,
    ) -> Result<(), CommandError> {
        let row = find_session(&list_sessions(conn)?, &self.session)?;
        let result = match &self.output {
            None => self.write(
                conn,
                &row,
                &mut ExportSink::Stdout(context.output.clone(), String::new()),
            )?,
            Some(path) => {
                let file = create_private_file(path)?;
                let mut sink = ExportSink::File(BufWriter::new(file), path.clone());
                self.write(conn, &row, &mut sink).inspect_err(|_| remove_incomplete_file(path))?
            }
        };
        let destination =
            self.output.as_ref().map(|it| format!(" to {}", it.display())).unwrap_or_default();
        let secrets = if self.raw { "secrets included" } else { "secrets hidden" };
        let events = format_count(result.events, "event");
        context
            .output
            .print_note(&format!("exported {}{destination} ({events}, {secrets})", row.session_id));
        for MissingEvents { first, last, why } in &result.missing {
            let events = format_event_range(*first, *last);
            context.output.print_alert(&format!("warning: {events} missing: {why}"));
        }
        Ok(())
    }

    fn write(
        &self,
        conn: &mut CommandConnection,
        row: &SessionRow,
        sink: &mut ExportSink,
    ) -> Result<ExportResult, CommandError> {
        let events = match self.format {
            ExportFormat::Ndjson => self.write_log(conn, row, sink)?,
            ExportFormat::Markdown => self.write_markdown(conn, row, sink)?,
        };
        sink.finish()?;
        Ok(events)
    }

    fn write_markdown(
        &self,
        conn: &mut CommandConnection,
        row: &SessionRow,
        sink: &mut ExportSink,
    ) -> Result<ExportResult, CommandError> {
        let (mut redactor, mut transcript) =
            (StreamingRedactor::default(), MarkdownTranscript::default());
        sink.write_text(&MarkdownTranscript::render_header(&transcript_header(row)))?;
        let mut result = ExportResult::default();
        read_log_range(conn, &row.session_id, self.log_range(), &mut |event| {
            if let Some(missing) = result.add_event(event) {
                return sink.write_text(&format!(
                    "\n*Event {} is missing: {}*\n",
                    missing.last, missing.why
                ));
            }
            // An event that is nested too deeply to be parsed is skipped.
            let event = serde_json::from_str(event).unwrap_or_default();
            let shown = if self.raw { vec![event] } else { redactor.push(event) };
            shown.into_iter().try_for_each(|it| sink.write_text(&fold_event(&mut transcript, it)))
        })?;
        let rest = redactor.finish();
        rest.into_iter().try_for_each(|it| sink.write_text(&fold_event(&mut transcript, it)))?;
        sink.write_text(&transcript.finish())?;
        Ok(result)
    }

    fn log_range(&self) -> LogRange {
        LogRange { skip_damaged: self.skip_damaged, ..LogRange::default() }
    }

    fn write_log(
        &self,
        conn: &mut CommandConnection,
        row: &SessionRow,
        sink: &mut ExportSink,
    ) -> Result<ExportResult, CommandError> {
        let (mut export, first) = jackfield_views::SessionExport::start(&self.header(row));
        sink.write_line(&first)?;
        let mut result = ExportResult::default();
        read_log_range(conn, &row.session_id, self.log_range(), &mut |event| {
            result.add_event(event);
            export.add_event(event).iter().try_for_each(|it| sink.write_line(it))
        })?;
        export.finish().iter().try_for_each(|it| sink.write_line(it))?;
        Ok(result)
    }

    fn header(&self, row: &SessionRow) -> ExportHeader {
        let more = json!({
            "agent": row.agent, "cwd": row.cwd, "title": row.title, "openedAt": row.opened_at,
            "jackfieldVersion": env!("CARGO_PKG_VERSION"),
        });
        ExportHeader {
            session_id: row.session_id.clone(),
            redacted: !self.raw,
            exported_at: rfc3339_now(),
            more: if let Value::Object(more) = more { more } else { Map::new() },
        }
    }
}

/// How many events an export has, and which are missing.
#[derive(Debug, Default)]
struct ExportResult {
    events: usize,
    missing: Vec<MissingEvents>,
}

/// Consecutive events that are damaged in the same way.
#[derive(Debug)]
struct MissingEvents {
    first: u64,
    last: u64,
    why: String,
}

impl ExportResult {
    /// Counts an event. A placeholder for a damaged event is added to the missing ones.
    fn add_event(&mut self, event: &str) -> Option<&MissingEvents> {
        let value = serde_json::from_str(event).ok();
        let Some(MissingEvent { seq, why }) = value.as_ref().and_then(MissingEvent::from_value)
        else {
            self.events += 1;
            return None;
        };
        // `…damaged at event 4: the checksum does not match`: only the last part is new.
        let (seq, why) = (seq.0, why.rsplit_once(": ").map_or(&*why, |(_, it)| it).to_owned());
        match self.missing.last_mut().filter(|it| it.last + 1 == seq && it.why == why) {
            Some(it) => it.last = seq,
            None => self.missing.push(MissingEvents { first: seq, last: seq, why }),
        }
        self.missing.last()
    }
}

/// The Markdown that an event completes. Unknown events of a newer daemon have none.
fn fold_event(transcript: &mut MarkdownTranscript, event: Value) -> String {
    ReceivedEvent::from_value(event).map(|it| transcript.fold_event(&it)).unwrap_or_default()
}

fn transcript_header(row: &SessionRow) -> TranscriptHeader {
    TranscriptHeader {
        session: row.session_id.clone(),
        title: row.title.clone(),
        agent: row.agent.clone(),
        cwd: row.cwd.clone(),
        opened_at: row.opened_at.clone(),
    }
}

/// Creates a file that only its owner can read. An existing file is replaced.
pub(in crate::cmd) fn create_private_file(path: &Path) -> Result<File, CommandError> {
    jackfield_private_files::create_file(path).map_err(|source| write_error(path, source))
}

/// Removes an incomplete export, which could not be imported.
fn remove_incomplete_file(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|it| it.is_file()) {
        // The error that led here is more important.
        let _left = fs::remove_file(path);
    }
}

/// Where an export is written.
enum ExportSink {
    File(BufWriter<File>, PathBuf),
    Stdout(CommandOutput, String),
}

const CHUNK_BYTES: usize = 64 * 1024;

impl ExportSink {
    fn write_line(&mut self, line: &str) -> Result<(), CommandError> {
        self.write_text(line)?;
        self.write_text("\n")
    }

    fn write_text(&mut self, text: &str) -> Result<(), CommandError> {
        match self {
            ExportSink::File(file, path) => {
                file.write_all(text.as_bytes()).map_err(|it| write_error(path, it))
            }
            ExportSink::Stdout(output, buffer) => {
                buffer.push_str(text);
                let is_full = CHUNK_BYTES <= buffer.len();
                if is_full { output.print_raw(&std::mem::take(buffer)) } else { Ok(()) }
            }
        }
    }

    fn finish(&mut self) -> Result<(), CommandError> {
        match self {
            ExportSink::File(file, path) => file.flush().map_err(|it| write_error(path, it)),
            ExportSink::Stdout(output, buffer) => output.print_raw(&std::mem::take(buffer)),
        }
    }
}

pub(in crate::cmd) fn write_error(path: &Path, source: io::Error) -> CommandError {
    CommandError::Local {
        what: format!("cannot write `{}`", path.display()),
        source: source.into(),
        exit: CliExitCode::Failed,
        hint: "choose another file with `-o`".into(),
    }
}

//! `jackfield sessions import`: creates a session from a file that `export` wrote.

use crate::{
    context::CommandContext,
    env,
    exit::CliExitCode,
    hub::CommandConnection,
    plain_text::{format_count, to_one_line},
    report::CommandError,
};
use clap::Args;
use jackfield_protocol::{FRAME_BYTES_MAX, acp::Method};
use jackfield_views::{
    ExportError, ExportLine, ExportReader,
    export_file::{ExportHeader, NEWER_FORMAT},
};
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

/// Create a session from a file that `export` wrote
///
/// It keeps its id if that is not used here, and gets a new one otherwise. Its agent does not have to
/// be installed. A truncated or changed file is rejected, and nothing of it is stored.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions import session.ndjson
  $ jackfield sessions import session.ndjson --name \"from the laptop\"
  $ ssh laptop jackfield sessions export s-7f3 --raw | jackfield sessions import -")]
pub(super) struct ImportSessionCommand {
    /// The file; `-` for stdin
    file: PathBuf,

    /// A new title
    #[arg(long, env = env::NAME, hide_env_values = true, value_name = "TITLE")]
    name: Option<String>,
}

/// How many bytes are sent at once. The next slice is sent when the journal has stored the previous one.
const SLICE_BYTES: usize = 256 * 1024;
/// A line is a message with a few more members.
const LINE_BYTES_MAX: usize = FRAME_BYTES_MAX + (1 << 20);

impl ImportSessionCommand {
    pub(super) fn run(
        &self,
        context: &CommandContext,
        conn: &mut CommandConnection,
    ) -> Result<(), CommandError> {
        let mut lines =
            ArchiveLines { input: open_input(&self.file)?, reader: ExportReader::default() };
        let file = describe_file(&self.file);
        let rejected = |error: ExportError| rejected_error(&file, &error);
        let header = lines.read_header().map_err(rejected)?;
        let started = send_import(conn, &json!({ "from": header.session_id }))?;
        let id = started["sessionId"].as_str().unwrap_or_default().to_owned();
        let events = loop {
            let (slice, end) = lines.read_slice().map_err(rejected)?;
            if !slice.is_empty() {
                send_import(conn, &json!({ "sessionId": id, "lines": slice }))
                    .map_err(|error| locate_error(&file, error))?;
            }
            if let Some(events) = end {
                break events;
            }
        };
        let mut last = json!({ "sessionId": id, "end": true });
        if let Some(name) = &self.name {
            last["title"] = json!(to_one_line(name, 200));
        }
        send_import(conn, &last)?;
        context.output.print_line(&id)?;
        let events = format_count(usize::try_from(events).unwrap_or(usize::MAX), "event");
        let name = if id == header.session_id {
            format!("under its own id {id}")
        } else {
            format!("as {id}, because {} is already used here", header.session_id)
        };
        let hidden = if header.redacted { "; its secrets were hidden by the export" } else { "" };
        context.output.print_note(&format!("imported {name} ({events}{hidden})"));
        Ok(())
    }
}

fn open_input(path: &Path) -> Result<Box<dyn BufRead>, CommandError> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path);
    let file = file.map_err(|source| CommandError::Local {
        what: format!("cannot read `{}`", path.display()),
        source: source.into(),
        exit: CliExitCode::NotFound,
        hint: "pass a file that `jackfield sessions export` wrote".into(),
    })?;
    Ok(Box::new(BufReader::new(file)))
}

/// Reads the lines of an export.
struct ArchiveLines {
    input: Box<dyn BufRead>,
    reader: ExportReader,
}

impl ArchiveLines {
    fn read_header(&mut self) -> Result<ExportHeader, ExportError> {
        let Some(line) = self.next_line()? else { return Err(self.truncated_error()) };
        match self.reader.read_line(&line)? {
            ExportLine::Header(header) => Ok(*header),
            ExportLine::Event(_) | ExportLine::End => {
                Err(self.reader.error_at_line("the header is missing"))
            }
        }
    }

    /// The next events. The last slice comes with the total number of events, if the whole file is valid.
    fn read_slice(&mut self) -> Result<(Vec<String>, Option<u64>), ExportError> {
        let (mut slice, mut bytes) = (Vec::new(), 0);
        while bytes < SLICE_BYTES {
            let Some(line) = self.next_line()? else {
                return self.reader.finish().map(|events| (slice, Some(events)));
            };
            if let ExportLine::Event(event) = self.reader.read_line(&line)? {
                bytes += event.len();
                slice.push(event.into_owned());
            }
        }
        Ok((slice, None))
    }

    fn next_line(&mut self) -> Result<Option<String>, ExportError> {
        let mut line = Vec::new();
        let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        let mut limited = io::Read::take(&mut self.input, limit);
        let read = limited.read_until(b'\n', &mut line);
        read.map_err(|error| {
            self.reader.error_at_line(&format!("cannot read the next line: {error}"))
        })?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.pop_if(|it| *it == b'\n').is_none() && LINE_BYTES_MAX <= line.len() {
            return Err(self.reader.error_at_line("the next line exceeds the limit of 17 MiB"));
        }
        line.pop_if(|it| *it == b'\r');
        let text = String::from_utf8(line);
        text.map(Some).map_err(|_| self.reader.error_at_line("the next line is not valid UTF-8"))
    }

    fn truncated_error(&self) -> ExportError {
        self.reader.finish().err().unwrap_or_else(|| self.reader.error_at_line("the file is empty"))
    }
}

fn send_import(conn: &mut CommandConnection, params: &Value) -> Result<Value, CommandError> {
    conn.call_hub(Method::ControlImport, params, "the daemon to store the events")
}

fn describe_file(path: &Path) -> String {
    if path == Path::new("-") { "stdin".into() } else { format!("`{}`", path.display()) }
}

fn rejected_error(file: &str, error: &ExportError) -> CommandError {
    let hint = if error.reason == NEWER_FORMAT {
        "update jackfield and import the file again"
    } else {
        "export the session again; an edited file cannot be imported"
    };
    CommandError::Local {
        what: format!("cannot import {file}; nothing of it was stored"),
        source: error.to_string().into(),
        exit: CliExitCode::Failed,
        hint: hint.into(),
    }
}

/// Replaces the event number in an error of the hub by the line number in the file.
fn locate_error(file: &str, error: CommandError) -> CommandError {
    let message = error.to_string();
    let place = message.split_once("event ").and_then(|(_, it)| it.split_once(": "));
    let place = place.and_then(|(seq, why)| Some((seq.parse::<usize>().ok()?, why)));
    match place {
        Some((seq, why)) => {
            rejected_error(file, &ExportError { line: seq + 1, reason: why.to_owned() })
        }
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_that_the_hub_rejects_is_reported_by_its_line() {
        let rejected = |why: &str| locate_error("`x`", CommandError::usage(why, "none"));
        let CommandError::Local { source, .. } =
            rejected("invalid params: event 2: it is no event")
        else {
            panic!("the error has no line");
        };
        assert_eq!(source.to_string(), "line 3: it is no event");
        assert!(matches!(rejected("the event is odd: why"), CommandError::Usage { .. }));
    }
}

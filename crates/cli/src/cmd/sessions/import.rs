//! `jackfield sessions import`: a session out of a file that `export` wrote.

use crate::{
    app::Desk,
    env,
    exit::Exit,
    hub::{Conn, Until, Wait},
    out::{count, one_line},
    report::Failure,
};
use clap::Args;
use jackfield_protocol::acp::Method;
use jackfield_views::{
    Entry, Flaw, Reader,
    archive::{Header, NEWER},
};
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

/// Make a session of a file that `export` wrote
///
/// It keeps its id if that is free here, and gets a new one otherwise. Its agent need not be
/// installed to read it. A file that was cut or changed is refused, and nothing of it is kept.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions import session.ndjson
  $ jackfield sessions import session.ndjson --name \"from the laptop\"
  $ ssh laptop jackfield sessions export s-7f3 --raw | jackfield sessions import -")]
pub(super) struct Import {
    /// The file, `-` for stdin
    file: PathBuf,

    /// A title of its own
    #[arg(long, env = env::NAME, hide_env_values = true, value_name = "TITLE")]
    name: Option<String>,
}

/// So much is sent at once; the next is sent when the journal has it.
const SLICE_BYTES: usize = 256 * 1024;
/// A line is a message and a little.
const LINE_BYTES_MAX: usize = 17 << 20;

impl Import {
    pub(super) fn run(&self, desk: &Desk, conn: &mut Conn) -> Result<(), Failure> {
        let mut lines = Lines { input: open(&self.file)?, reader: Reader::default() };
        let shown = shown(&self.file);
        let refused = |flaw: Flaw| refused(&shown, &flaw);
        let header = lines.header().map_err(refused)?;
        let begun = call(conn, &json!({ "from": header.session_id }))?;
        let id = begun["sessionId"].as_str().unwrap_or_default().to_owned();
        let events = loop {
            let (slice, end) = lines.slice().map_err(refused)?;
            if !slice.is_empty() {
                call(conn, &json!({ "sessionId": id, "lines": slice }))
                    .map_err(|failure| placed(&shown, failure))?;
            }
            if let Some(events) = end {
                break events;
            }
        };
        let mut last = json!({ "sessionId": id, "end": true });
        if let Some(name) = &self.name {
            last["title"] = json!(one_line(name, 200));
        }
        call(conn, &last)?;
        desk.out.line(&id)?;
        let events = count(usize::try_from(events).unwrap_or(usize::MAX), "event");
        let named = if id == header.session_id {
            format!("under its own id {id}")
        } else {
            format!("as {id}: {} is taken here", header.session_id)
        };
        let hidden =
            if header.redacted { "; its secrets were hidden when it was exported" } else { "" };
        desk.out.note(&format!("imported {named} ({events}{hidden})"));
        Ok(())
    }
}

fn open(path: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    let file = File::open(path);
    let file = file.map_err(|source| Failure::Local {
        what: format!("cannot read `{}`", path.display()),
        source: source.into(),
        exit: Exit::NotFound,
        hint: "give a file that `jackfield sessions export` wrote".into(),
    })?;
    Ok(Box::new(BufReader::new(file)))
}

struct Lines {
    input: Box<dyn BufRead>,
    reader: Reader,
}

impl Lines {
    fn header(&mut self) -> Result<Header, Flaw> {
        let Some(line) = self.next()? else { return Err(self.cut()) };
        match self.reader.read(&line)? {
            Entry::Header(header) => Ok(*header),
            Entry::Event(_) | Entry::End => Err(self.reader.flaw("the header is missing")),
        }
    }

    /// The next events; with the last ones how many there were, when the whole file was good.
    fn slice(&mut self) -> Result<(Vec<String>, Option<u64>), Flaw> {
        let (mut slice, mut bytes) = (Vec::new(), 0);
        while bytes < SLICE_BYTES {
            let Some(line) = self.next()? else {
                return self.reader.finish().map(|events| (slice, Some(events)));
            };
            if let Entry::Event(event) = self.reader.read(&line)? {
                bytes += event.len();
                slice.push(event.into_owned());
            }
        }
        Ok((slice, None))
    }

    fn next(&mut self) -> Result<Option<String>, Flaw> {
        let mut line = Vec::new();
        let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
        let mut limited = io::Read::take(&mut self.input, limit);
        let read = limited.read_until(b'\n', &mut line);
        read.map_err(|error| self.reader.flaw(&format!("cannot read on: {error}")))?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.pop_if(|it| *it == b'\n').is_none() && LINE_BYTES_MAX <= line.len() {
            return Err(self.reader.flaw("the next line is longer than any event"));
        }
        line.pop_if(|it| *it == b'\r');
        let text = String::from_utf8(line);
        text.map(Some).map_err(|_| self.reader.flaw("the next line is no text"))
    }

    fn cut(&self) -> Flaw {
        self.reader.finish().err().unwrap_or_else(|| self.reader.flaw("the file is empty"))
    }
}

fn call(conn: &mut Conn, params: &Value) -> Result<Value, Failure> {
    let wait = Wait { what: "the events to be written", until: Until::Hub };
    conn.call(Method::ControlImport.name(), params, wait)
}

fn shown(path: &Path) -> String {
    if path == Path::new("-") { "stdin".into() } else { format!("`{}`", path.display()) }
}

fn refused(file: &str, flaw: &Flaw) -> Failure {
    let hint = if flaw.why == NEWER {
        "update jackfield here, and import it again"
    } else {
        "export the session again; files are not meant to be edited"
    };
    Failure::Local {
        what: format!("{file} cannot be imported; nothing of it was kept"),
        source: flaw.to_string().into(),
        exit: Exit::Failed,
        hint: hint.into(),
    }
}

/// The hub counts events; people count lines.
fn placed(file: &str, failure: Failure) -> Failure {
    let told = failure.to_string();
    let place = told.split_once("event ").and_then(|(_, it)| it.split_once(": "));
    let place = place.and_then(|(seq, why)| Some((seq.parse::<usize>().ok()?, why)));
    match place {
        Some((seq, why)) => refused(file, &Flaw { line: seq + 1, why: why.to_owned() }),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_the_hub_refuses_is_named_by_its_line() {
        let refused = |why: &str| placed("`x`", Failure::usage(why, "none"));
        let Failure::Local { source, .. } = refused("invalid params: event 2: it is no event")
        else {
            panic!("it has a line");
        };
        assert_eq!(source.to_string(), "line 3: it is no event");
        assert!(matches!(refused("the event is odd: why"), Failure::Usage { .. }));
    }
}

//! `jackfield sessions export`: a session in a file, to keep, to send or to import elsewhere.

use crate::{
    app::Desk,
    env,
    exit::Exit,
    hub::{Conn, Part, Row, facts_of, find, sessions},
    out::{Out, count, events_between, rfc3339_now},
    report::Failure,
};
use clap::{Args, ValueEnum};
use jackfield_events::{MissingEvent, ReceivedEvent};
use jackfield_views::{Transcript, Veil, archive::Header, transcript::About};
use serde_json::{Map, Value, json};
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
};

/// Write a session and its whole log to a file, without secrets unless you want them
///
/// What looks like a secret is replaced by `***`, also where it is split over several messages.
/// `--raw` keeps everything byte for byte: whoever has such a file has what was said in the session.
/// As Markdown a session can be read and shown, but not imported.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield sessions export s-7f3 -o session.ndjson
  $ jackfield sessions export s-7f3 | jq -r 'select(.is == \"ended\").turn'
  $ jackfield sessions export s-7f3 --raw -o backup.ndjson
  $ jackfield sessions export s-7f3 --format markdown -o session.md
  $ jackfield sessions export s-7f3 --skip-damaged -o rest.ndjson")]
pub(super) struct Export {
    /// An id, a unique prefix of one, or a title
    session: String,

    /// The file to write, readable by you alone [default: stdout]
    #[arg(short, long, env = env::OUTPUT, hide_env_values = true, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Keep everything as it is, secrets too
    #[arg(long, env = env::RAW, hide_env_values = true, value_parser = env::flag())]
    raw: bool,

    /// Leave out events whose record in the journal is damaged, and name them; such a file cannot be imported
    #[arg(long, env = env::SKIP_DAMAGED, hide_env_values = true, value_parser = env::flag())]
    skip_damaged: bool,

    /// What to write
    #[arg(
        id = "export_format",
        long = "format",
        env = env::EXPORT_FORMAT,
        hide_env_values = true,
        value_name = "FORMAT",
        value_enum,
        default_value_t
    )]
    form: Form,
}

// Apart from how commands print: with `JACKFIELD_FORMAT=quiet` an export is still one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Form {
    /// The log, an event a line, for `sessions import` and for programs
    #[default]
    Ndjson,
    /// The conversation, for people: what was said and done, and what it has used
    Markdown,
}

impl Export {
    pub(super) fn run(&self, desk: &Desk, conn: &mut Conn) -> Result<(), Failure> {
        let row = find(&sessions(conn)?, &self.session)?;
        let written = match &self.output {
            None => self.write(conn, &row, &mut Sink::Stdout(desk.out.clone(), String::new()))?,
            Some(path) => {
                let file = private_file(path)?;
                let mut sink = Sink::File(BufWriter::new(file), path.clone());
                self.write(conn, &row, &mut sink).inspect_err(|_| discard(path))?
            }
        };
        let to = self.output.as_ref().map(|it| format!(" to {}", it.display())).unwrap_or_default();
        let secrets = if self.raw { "secrets included" } else { "secrets hidden" };
        let events = count(written.events, "event");
        desk.out.note(&format!("exported {}{to} ({events}, {secrets})", row.session_id));
        for MissingEvents { first, last, why } in &written.missing {
            let events = events_between(*first, *last);
            desk.out.alert(&format!("warning: {events} missing: {why}"));
        }
        Ok(())
    }

    fn write(&self, conn: &mut Conn, row: &Row, sink: &mut Sink) -> Result<Written, Failure> {
        let events = match self.form {
            Form::Ndjson => self.write_log(conn, row, sink)?,
            Form::Markdown => self.write_markdown(conn, row, sink)?,
        };
        sink.finish()?;
        Ok(events)
    }

    fn write_markdown(
        &self,
        conn: &mut Conn,
        row: &Row,
        sink: &mut Sink,
    ) -> Result<Written, Failure> {
        let (mut veil, mut transcript) = (Veil::default(), Transcript::default());
        sink.text(&Transcript::header(&about(row)))?;
        let mut written = Written::default();
        facts_of(conn, &row.session_id, self.part(), &mut |event| {
            if let Some(missing) = written.add(event) {
                return sink
                    .text(&format!("\n*Event {} is missing: {}*\n", missing.last, missing.why));
            }
            // An event that is nested too deep to be read is not shown to people.
            let event = serde_json::from_str(event).unwrap_or_default();
            let shown = if self.raw { vec![event] } else { veil.push(event) };
            shown.into_iter().try_for_each(|it| sink.text(&fold_into(&mut transcript, it)))
        })?;
        let rest = veil.finish();
        rest.into_iter().try_for_each(|it| sink.text(&fold_into(&mut transcript, it)))?;
        sink.text(&transcript.finish())?;
        Ok(written)
    }

    fn part(&self) -> Part {
        Part { skip_damaged: self.skip_damaged, ..Part::default() }
    }

    fn write_log(&self, conn: &mut Conn, row: &Row, sink: &mut Sink) -> Result<Written, Failure> {
        let (mut export, first) = jackfield_views::Export::new(&self.header(row));
        sink.line(&first)?;
        let mut written = Written::default();
        facts_of(conn, &row.session_id, self.part(), &mut |event| {
            written.add(event);
            export.event(event).iter().try_for_each(|it| sink.line(it))
        })?;
        export.finish().iter().try_for_each(|it| sink.line(it))?;
        Ok(written)
    }

    fn header(&self, row: &Row) -> Header {
        let more = json!({
            "agent": row.agent, "cwd": row.cwd, "title": row.title, "openedAt": row.opened_at,
            "jackfieldVersion": env!("CARGO_PKG_VERSION"),
        });
        Header {
            session_id: row.session_id.clone(),
            redacted: !self.raw,
            exported_at: rfc3339_now(),
            more: if let Value::Object(more) = more { more } else { Map::new() },
        }
    }
}

/// What an export has, and what it lacks.
#[derive(Debug, Default)]
struct Written {
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

impl Written {
    /// Counts an event. One that only stands for a damaged event is not counted but noted.
    fn add(&mut self, event: &str) -> Option<&MissingEvents> {
        let value = serde_json::from_str(event).ok();
        let Some(MissingEvent { seq, why }) = value.as_ref().and_then(MissingEvent::from_value)
        else {
            self.events += 1;
            return None;
        };
        // `…damaged at event 4: the checksum does not match`: the number is shown already.
        let (seq, why) = (seq.0, why.rsplit_once(": ").map_or(&*why, |(_, it)| it).to_owned());
        match self.missing.last_mut().filter(|it| it.last + 1 == seq && it.why == why) {
            Some(it) => it.last = seq,
            None => self.missing.push(MissingEvents { first: seq, last: seq, why }),
        }
        self.missing.last()
    }
}

/// The Markdown that an event completes. An event of a newer daemon has none.
fn fold_into(transcript: &mut Transcript, event: Value) -> String {
    ReceivedEvent::from_value(event).map(|it| transcript.fold(&it)).unwrap_or_default()
}

fn about(row: &Row) -> About {
    About {
        session: row.session_id.clone(),
        title: row.title.clone(),
        agent: row.agent.clone(),
        cwd: row.cwd.clone(),
        opened_at: row.opened_at.clone(),
    }
}

/// A file that only its owner can read, over whatever was there.
pub(in crate::cmd) fn private_file(path: &Path) -> Result<File, Failure> {
    jackfield_private_files::create_file(path).map_err(|source| unwritten(path, source))
}

/// Half a file would only be refused later.
fn discard(path: &Path) {
    if fs::symlink_metadata(path).is_ok_and(|it| it.is_file()) {
        // The failure that led here says more than one about this.
        let _left = fs::remove_file(path);
    }
}

/// Where it goes.
enum Sink {
    File(BufWriter<File>, PathBuf),
    Stdout(Out, String),
}

const CHUNK_BYTES: usize = 64 * 1024;

impl Sink {
    fn line(&mut self, line: &str) -> Result<(), Failure> {
        self.text(line)?;
        self.text("\n")
    }

    fn text(&mut self, text: &str) -> Result<(), Failure> {
        match self {
            Sink::File(file, path) => {
                file.write_all(text.as_bytes()).map_err(|it| unwritten(path, it))
            }
            Sink::Stdout(out, held) => {
                held.push_str(text);
                let full = CHUNK_BYTES <= held.len();
                if full { out.exact(&std::mem::take(held)) } else { Ok(()) }
            }
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        match self {
            Sink::File(file, path) => file.flush().map_err(|it| unwritten(path, it)),
            Sink::Stdout(out, held) => out.exact(&std::mem::take(held)),
        }
    }
}

pub(in crate::cmd) fn unwritten(path: &Path, source: io::Error) -> Failure {
    Failure::Local {
        what: format!("cannot write `{}`", path.display()),
        source: source.into(),
        exit: Exit::Failed,
        hint: "name another file with `-o`".into(),
    }
}

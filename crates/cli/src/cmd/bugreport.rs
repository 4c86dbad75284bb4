//! `jackfield bugreport`: one file with what it takes to look into a session, without secrets.

use super::sessions::{private_file, unwritten};
use crate::{
    app::Desk,
    env,
    hub::{Conn, Row, facts, find, sessions},
    out::{count, rfc3339_now},
    report::Failure,
};
use clap::Args;
use jackfield_daemon::Paths;
use jackfield_protocol::redact::{self, HIDDEN};
use jackfield_views::Veil;
use serde_json::Value;
use std::{collections::VecDeque, fmt::Write as _, fs, io::Write as _, path::PathBuf};

/// Collect what is known of a session in one file, without secrets, to add to an issue
///
/// Nothing is sent anywhere. Read the file before you share it: what was said is in it, unless you
/// leave it out with `--no-text`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield bugreport s-7f3
  $ jackfield bugreport s-7f3 --no-text -o report.txt
  $ jackfield bugreport s-7f3 --events 1000")]
pub(crate) struct Bugreport {
    /// An id, a unique prefix of one, or a title
    session: String,

    /// The file to write [default: jackfield-SESSION.txt here]
    #[arg(short, long, env = env::OUTPUT, hide_env_values = true, value_name = "FILE")]
    output: Option<PathBuf>,

    /// How many events, the last ones
    #[arg(long, env = env::EVENTS, hide_env_values = true, value_name = "COUNT", default_value_t = 200)]
    events: usize,

    /// Leave out what was said and what tools printed
    #[arg(long, env = env::NO_TEXT, hide_env_values = true, value_parser = env::flag())]
    no_text: bool,
}

/// Of the daemon's log; what matters stands at its end.
const LOG_LINES_MAX: usize = 200;
/// Of the log's end, so much is looked at.
const LOG_BYTES_MAX: usize = 4 << 20;

impl Bugreport {
    pub(crate) fn run(self, desk: &Desk) -> Result<(), Failure> {
        let mut conn = desk.dial.talk("bugreport")?;
        let row = find(&sessions(&mut conn)?, &self.session)?;
        let paths = desk.dial.paths();
        let events = self.last_events(&mut conn, &row)?;
        let log = log_lines(paths, &row.session_id);
        let mut text = versions(&conn, paths, &row);
        section(&mut text, "session", &pretty(&row.raw));
        section(&mut text, "config.toml", &config(paths));
        section(&mut text, "daemon.log", &log.join("\n"));
        section(&mut text, "flight recorder", &dumps(paths).join("\n"));
        section(&mut text, "events", &events.join("\n"));
        let path =
            self.output.unwrap_or_else(|| format!("jackfield-{}.txt", row.session_id).into());
        let written = private_file(&path)?.write_all(text.as_bytes());
        written.map_err(|source| unwritten(&path, source))?;
        desk.out.line(&path.display().to_string())?;
        let said = if self.no_text { "without what was said" } else { "with what was said" };
        desk.out.note(&format!(
            "it contains versions, the session's row, the configuration, {} of the daemon's log \
             and {}, {said}; secrets are hidden, nothing was sent: read it before you share it",
            count(log.len(), "line"),
            count(events.len(), "event"),
        ));
        Ok(())
    }

    fn last_events(&self, conn: &mut Conn, row: &Row) -> Result<Vec<String>, Failure> {
        let (mut veil, mut last) = (Veil::default(), VecDeque::new());
        let mut keep = |facts: Vec<Value>| {
            for mut fact in facts {
                if self.no_text {
                    elide(&mut fact);
                }
                last.push_back(fact.to_string());
                if self.events < last.len() {
                    last.pop_front();
                }
            }
        };
        facts(conn, &row.session_id, &mut |event| {
            // What is nested too deep to be read is told by its size.
            let unread = || serde_json::json!({ "unread": event.len() });
            keep(veil.push(serde_json::from_str(event).unwrap_or_else(|_| unread())));
            Ok(())
        })?;
        keep(veil.finish());
        Ok(last.into())
    }
}

fn section(text: &mut String, name: &str, body: &str) {
    let body = if body.trim().is_empty() { "none" } else { body.trim_end() };
    write!(text, "\n## {name}\n\n{body}\n").expect("writing to memory cannot fail");
}

fn versions(conn: &Conn, paths: &Paths, row: &Row) -> String {
    let os = fs::read_to_string("/proc/version").unwrap_or_else(|_| std::env::consts::OS.into());
    let probes = fs::read(paths.probes()).unwrap_or_default();
    let probes: Value = serde_json::from_slice(&probes).unwrap_or_default();
    let mut known = probes["agents"][&row.agent]["knowledge"].clone();
    redact::json(&mut known);
    format!(
        "# bug report, {}\n\njackfield {}, daemon pid {:?}\nos        {}\nagent     {}, {}\nprobed    {known}\n",
        rfc3339_now(),
        env!("CARGO_PKG_VERSION"),
        conn.peer_pid(),
        os.trim(),
        row.agent,
        row.argv.join(" "),
    )
}

fn pretty(value: &Value) -> String {
    let mut value = value.clone();
    redact::json(&mut value);
    format!("{value:#}")
}

/// The configuration with its names; the values of variables are hidden whatever they are.
fn config(paths: &Paths) -> String {
    let text = fs::read_to_string(paths.config_file()).unwrap_or_default();
    let mut in_env = false;
    let line = |line: &str| {
        let trimmed = line.trim();
        if trimmed.starts_with('[') {
            in_env = trimmed.trim_end_matches(']').ends_with("env");
        }
        match line.split_once('=') {
            Some((name, _)) if in_env || is_secret(name) => format!("{name}= \"{HIDDEN}\""),
            _ => line.to_owned(),
        }
    };
    let lines: Vec<String> = text.lines().map(line).collect();
    redact::text(&lines.join("\n")).into_owned()
}

fn is_secret(name: &str) -> bool {
    let name = name.trim();
    name == "env" || name.contains(".env") || redact::is_secret_name(name)
}

/// The last lines about this session.
fn log_lines(paths: &Paths, session: &str) -> Vec<String> {
    let bytes = fs::read(paths.log()).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LOG_BYTES_MAX)..]);
    let about = |it: &&str| it.contains(session) || it.contains("ERROR") || it.contains("WARN");
    let lines: Vec<&str> = text.lines().filter(about).collect();
    let last = lines.len().saturating_sub(LOG_LINES_MAX);
    lines[last..].iter().map(|it| redact::text(it).into_owned()).collect()
}

/// Names only: the dumps themselves are for whoever asks for them.
fn dumps(paths: &Paths) -> Vec<String> {
    let entries = fs::read_dir(&paths.state).into_iter().flatten().flatten();
    let names = entries.map(|it| it.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|it| it.starts_with("crash-")).collect();
    names.sort();
    names
}

/// Leaves the shape: how long each text was, and not what it said.
fn elide(value: &mut Value) {
    const TEXTS: [&str; 9] = [
        "text",
        "data",
        "rawInput",
        "rawOutput",
        "oldText",
        "newText",
        "stderr",
        "title",
        "message",
    ];
    match value {
        Value::Array(items) => items.iter_mut().for_each(elide),
        Value::Object(members) => {
            for (name, member) in members {
                if TEXTS.contains(&name.as_str()) && !member.is_null() {
                    let size = member.as_str().map_or_else(|| member.to_string().len(), str::len);
                    *member = Value::String(format!("({size} bytes)"));
                } else {
                    elide(member);
                }
            }
        }
        _ => {}
    }
}

//! `jackfield bugreport`: collects diagnostic information about a session in one file, without secrets.

use super::sessions::{create_private_file, write_error};
use crate::{
    complete,
    context::CommandContext,
    env,
    hub::{CommandConnection, SessionRow, find_session, list_sessions, read_log},
    out::rfc3339_now,
    plain_text::format_count,
    report::CommandError,
};
use clap::Args;
use jackfield_daemon::Paths;
use jackfield_protocol::{
    quote_argv,
    redact::{self, HIDDEN},
};
use jackfield_views::StreamingRedactor;
use serde_json::Value;
use std::{collections::VecDeque, fmt::Write as _, fs, io::Write as _, path::PathBuf};

/// Collect diagnostics of a session in one file for an issue, without secrets
///
/// Nothing is sent. Read the file before you share it: it contains the conversation, unless you pass
/// `--no-text`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield bugreport s-7f3
  $ jackfield bugreport s-7f3 --no-text -o report.txt
  $ jackfield bugreport s-7f3 --events 1000")]
pub(crate) struct BugreportCommand {
    /// A name, an id, a unique prefix of an id, or a title
    #[arg(add = complete::sessions())]
    session: String,

    /// The file to write [default: jackfield-SESSION.txt in the current directory]
    #[arg(short, long, env = env::OUTPUT, hide_env_values = true, value_name = "FILE")]
    output: Option<PathBuf>,

    /// How many of the last events to include
    #[arg(long, env = env::EVENTS, hide_env_values = true, value_name = "COUNT", default_value_t = 200)]
    events: usize,

    /// Leave out messages and tool output
    #[arg(long, env = env::NO_TEXT, hide_env_values = true, value_parser = env::flag_parser())]
    no_text: bool,
}

/// How many of the last lines of the daemon's log are included.
const LOG_LINES_MAX: usize = 200;
/// How many bytes at the end of the log are searched.
const LOG_BYTES_MAX: usize = 4 << 20;

impl BugreportCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let mut conn = context.daemon.connect("bugreport")?;
        let row = find_session(&list_sessions(&mut conn)?, &self.session)?;
        let paths = context.daemon.paths();
        let events = self.last_events(&mut conn, &row)?;
        let log = read_log_lines(paths, &row.session_id);
        let mut text = describe_versions(&conn, paths, &row);
        add_section(&mut text, "session", &format_redacted(&row.raw));
        add_section(&mut text, "config.toml", &read_config(paths));
        add_section(&mut text, "daemon.log", &log.join("\n"));
        add_section(&mut text, "flight recorder", &list_dumps(paths).join("\n"));
        add_section(&mut text, "events", &events.join("\n"));
        let path =
            self.output.unwrap_or_else(|| format!("jackfield-{}.txt", row.session_id).into());
        let written = create_private_file(&path)?.write_all(text.as_bytes());
        written.map_err(|source| write_error(&path, source))?;
        context.output.print_line(&path.display().to_string())?;
        let messages = if self.no_text { "without messages" } else { "with messages" };
        context.output.print_note(&format!(
            "it contains versions, the session's state, the configuration, {} of the daemon's log and \
             {} {messages}; secrets are hidden and nothing was sent: read it before you share it",
            format_count(log.len(), "line"),
            format_count(events.len(), "event"),
        ));
        Ok(())
    }

    fn last_events(
        &self,
        conn: &mut CommandConnection,
        row: &SessionRow,
    ) -> Result<Vec<String>, CommandError> {
        let (mut redactor, mut last) = (StreamingRedactor::default(), VecDeque::new());
        let mut add_events = |events: Vec<Value>| {
            for mut event in events {
                if self.no_text {
                    replace_texts(&mut event);
                }
                last.push_back(event.to_string());
                if self.events < last.len() {
                    last.pop_front();
                }
            }
        };
        read_log(conn, &row.session_id, &mut |event| {
            // An event that is nested too deeply to be parsed is replaced by its size.
            let unread = || serde_json::json!({ "unread": event.len() });
            add_events(redactor.push(serde_json::from_str(event).unwrap_or_else(|_| unread())));
            Ok(())
        })?;
        add_events(redactor.finish());
        Ok(last.into())
    }
}

fn add_section(text: &mut String, name: &str, body: &str) {
    let body = if body.trim().is_empty() { "none" } else { body.trim_end() };
    write!(text, "\n## {name}\n\n{body}\n").expect("writing to memory cannot fail");
}

fn describe_versions(conn: &CommandConnection, paths: &Paths, row: &SessionRow) -> String {
    let os = fs::read_to_string("/proc/version").unwrap_or_else(|_| std::env::consts::OS.into());
    let probes = fs::read(paths.probes()).unwrap_or_default();
    let probes: Value = serde_json::from_slice(&probes).unwrap_or_default();
    let mut known = probes["agents"][&row.agent]["knowledge"].clone();
    redact::json(&mut known);
    format!(
        "# bug report, {}\n\njackfield {}, daemon pid {}\nos        {}\nagent     {}, {}\nprobed    {known}\n",
        rfc3339_now(),
        env!("CARGO_PKG_VERSION"),
        conn.peer_pid().map_or_else(|| "none".to_owned(), |it| it.to_string()),
        os.trim(),
        row.agent,
        quote_argv(&row.argv),
    )
}

fn format_redacted(value: &Value) -> String {
    let mut value = value.clone();
    redact::json(&mut value);
    format!("{value:#}")
}

/// The configuration with the values of secrets and of all environment variables hidden.
fn read_config(paths: &Paths) -> String {
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

/// The last log lines about this session, and the last warnings and errors.
fn read_log_lines(paths: &Paths, session: &str) -> Vec<String> {
    let bytes = fs::read(paths.log()).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(LOG_BYTES_MAX)..]);
    let is_relevant =
        |it: &&str| it.contains(session) || it.contains("ERROR") || it.contains("WARN");
    let lines: Vec<&str> = text.lines().filter(is_relevant).collect();
    let start = lines.len().saturating_sub(LOG_LINES_MAX);
    lines[start..].iter().map(|it| redact::text(it).into_owned()).collect()
}

/// The file names of the flight recorder's dumps. Their contents are not included.
fn list_dumps(paths: &Paths) -> Vec<String> {
    let entries = fs::read_dir(&paths.state).into_iter().flatten().flatten();
    let names = entries.map(|it| it.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|it| it.starts_with("crash-")).collect();
    names.sort();
    names
}

/// Replaces every text by its length.
fn replace_texts(value: &mut Value) {
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
        Value::Array(items) => items.iter_mut().for_each(replace_texts),
        Value::Object(members) => {
            for (name, member) in members {
                if TEXTS.contains(&name.as_str()) && !member.is_null() {
                    let size = member.as_str().map_or_else(|| member.to_string().len(), str::len);
                    *member = Value::String(format!("({size} bytes)"));
                } else {
                    replace_texts(member);
                }
            }
        }
        _ => {}
    }
}

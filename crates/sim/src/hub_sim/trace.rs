//! A readable record of a run, kept only when a failed seed is run again.

use bytes::Bytes;
use jackfield_hub::{Input, Output, Time};

#[derive(Debug, Default)]
pub(super) struct RunTrace {
    /// `None` unless tracing is on: formatting costs more than the simulation.
    lines: Option<Vec<String>>,
}

impl RunTrace {
    pub(super) fn new(wanted: bool) -> RunTrace {
        RunTrace { lines: wanted.then(Vec::new) }
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }

    pub(super) fn note(&mut self, now: Time, text: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{:>9} {}", now.0, text()));
        }
    }

    pub(super) fn input(&mut self, now: Time, input: &Input) {
        self.note(now, || format!(">> {}", format_input(input)));
    }

    pub(super) fn output(&mut self, now: Time, output: &Output) {
        self.note(now, || format!("   << {}", format_output(output)));
    }
}

fn shorten_text(bytes: &Bytes) -> String {
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], bytes.len()),
        None => text.into_owned(),
    }
}

fn format_input(input: &Input) -> String {
    match input {
        Input::ClientSpoke { conn, frame } => {
            format!("from {conn}: {}", shorten_text(frame.bytes()))
        }
        Input::AgentSpoke { agent, frame } => {
            format!("from {agent}: {}", shorten_text(frame.bytes()))
        }
        Input::Read { conn, session, after, events } => {
            format!("read {session} for {conn} after {}: {} events", after.0, events.len())
        }
        Input::Durable { session, upto } => format!("durable {session} up to {}", upto.0),
        other => format!("{other:?}"),
    }
}

fn format_output(output: &Output) -> String {
    match output {
        Output::ToClient { conn, text: frame } => format!("to {conn}: {}", shorten_text(frame)),
        Output::ToAgent { agent, text: frame } => format!("to {agent}: {}", shorten_text(frame)),
        Output::Append { session, event, summary } => {
            let mut line = Vec::new();
            event.encode(&mut line);
            let summary = if summary.is_some() { " with summary" } else { "" };
            format!("append {session} {}{summary}: {}", event.seq.0, shorten_text(&line.into()))
        }
        Output::Summarize { session, upto, .. } => {
            format!("summarize {session} up to {}", upto.0)
        }
        Output::Read { conn, session, after } => {
            format!("read {session} for {conn} after {}", after.0)
        }
        other => format!("{other:?}"),
    }
}

//! `jackfield log`: prints the log of a session.

use crate::{
    complete,
    context::CommandContext,
    env,
    hub::{
        CommandConnection, ConnectionEvent, LogRange, find_session, list_sessions, read_log_range,
        warn_if_incomplete,
    },
    out::{
        CommandOutput, ConversationFormat, NoteDestination, OutputFormat, TranscriptPrinter,
        ViewPrinter,
    },
    report::CommandError,
};
use clap::{Args, ValueEnum};
use jackfield_events::ReceivedEvent;
use jackfield_protocol::{Frame, Kind, acp::Method};
use jackfield_views::StreamingRedactor;
use serde_json::{Value, json};

/// Print the log of a session, and with `-f` new events
///
/// Secrets are hidden, except in the acp view, which is the unchanged conversation.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  $ jackfield log s-7f3
  $ jackfield log s-7f3 -f
  $ jackfield log s-7f3 --view acp --after 120 | jq -c .params.update
  $ jackfield log s-7f3 --view events -f | jq -rj 'select(.type == \"text_delta\").delta'")]
pub(crate) struct LogCommand {
    /// A name, an id, a unique prefix of an id, or a title
    #[arg(add = complete::sessions())]
    session: String,

    /// Also print new events, until interrupted
    #[arg(short, long, env = env::FOLLOW, hide_env_values = true, value_parser = env::flag_parser())]
    follow: bool,

    /// Start after this event; the acp view shows the numbers
    #[arg(long, env = env::AFTER, hide_env_values = true, value_name = "SEQ", default_value_t)]
    after: u64,

    /// What to print
    #[arg(long, env = env::VIEW, hide_env_values = true, value_enum, default_value_t)]
    view: LogView,

    /// How to print it; `json` is the acp view, `quiet` prints only the agent's messages
    #[arg(long, env = env::FORMAT, hide_env_values = true, value_enum, default_value_t)]
    format: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum LogView {
    /// The conversation
    #[default]
    Text,
    /// ACP messages as the hub sends them, one per line, with their numbers
    Acp,
    /// Agent events, one per line, in the same form for every agent
    Events,
    /// Session envelopes, one per line, with stable ids
    Envelopes,
    /// Session envelopes with additions to their protocol: permission requests, errors, usage
    #[value(name = "envelopes+")]
    ExtendedEnvelopes,
}

impl LogCommand {
    pub(crate) fn run(self, context: &CommandContext) -> Result<(), CommandError> {
        let mut conn = context.daemon.connect("log")?;
        let session = find_session(&list_sessions(&mut conn)?, &self.session)?.session_id;
        let format = match self.view {
            LogView::Text | LogView::Acp => None,
            LogView::Events => Some(ConversationFormat::Events),
            LogView::Envelopes => Some(ConversationFormat::Envelopes),
            LogView::ExtendedEnvelopes => Some(ConversationFormat::ExtendedEnvelopes),
        };
        match format.and_then(|it| ViewPrinter::new(&context.output, it, &session)) {
            Some(mut printer) => self.print_view(&mut conn, &session, &mut printer),
            None => self.print_messages(&mut conn, &session, &context.output),
        }
    }

    /// Prints the events of the log as agent events or envelopes.
    fn print_view(
        &self,
        conn: &mut CommandConnection,
        session: &str,
        printer: &mut ViewPrinter,
    ) -> Result<(), CommandError> {
        let mut redactor = StreamingRedactor::default();
        let range = LogRange { after: self.after, follow: self.follow, skip_damaged: false };
        let read = read_log_range(conn, session, range, &mut |event| {
            // Events that are nested too deeply to be parsed are skipped.
            let Ok(event) = serde_json::from_str(event) else { return Ok(()) };
            print_events(printer, redactor.push(event))
        });
        print_events(printer, redactor.finish())?;
        read
    }

    /// Prints the messages of the hub as text, or unchanged in the acp view.
    fn print_messages(
        &self,
        conn: &mut CommandConnection,
        session: &str,
        output: &CommandOutput,
    ) -> Result<(), CommandError> {
        let params = json!({ "sessionId": session, "after": self.after, "observe": true });
        let id = conn.send_request(Method::ControlAttach, &params)?;
        let is_raw = self.view == LogView::Acp || self.format == OutputFormat::Json;
        let mut transcript = TranscriptPrinter::new(output, NoteDestination::Stdout);
        let mut redactor = StreamingRedactor::default();
        loop {
            match conn.next_event(None)? {
                ConnectionEvent::Response(response) if response.id == id => {
                    warn_if_incomplete(conn, session, &response.into_result()?);
                    if !self.follow {
                        self.print_redacted(&mut transcript, redactor.finish())?;
                        return transcript.finish();
                    }
                }
                ConnectionEvent::Frame(frame) if frame.kind() != Kind::Notification => {}
                ConnectionEvent::Frame(frame) if is_raw => {
                    output.print_raw(&format!("{}\n", frame.text()))?;
                }
                ConnectionEvent::Frame(frame) => {
                    self.print_redacted(&mut transcript, redactor.push(frame_to_value(&frame)))?;
                }
                ConnectionEvent::Closed => {
                    self.print_redacted(&mut transcript, redactor.finish())?;
                    transcript.finish()?;
                    return Err(CommandError::ConnectionClosed { waited_for: "new events".into() });
                }
                ConnectionEvent::Response(_)
                | ConnectionEvent::LogEvent(_)
                | ConnectionEvent::StdinLine(_)
                | ConnectionEvent::StdinClosed
                | ConnectionEvent::Interrupt
                | ConnectionEvent::TimedOut => {}
            }
        }
    }

    /// Prints redacted messages as text.
    fn print_redacted(
        &self,
        transcript: &mut TranscriptPrinter,
        messages: Vec<Value>,
    ) -> Result<(), CommandError> {
        for message in messages {
            let kind = message["params"]["update"]["sessionUpdate"].as_str().unwrap_or_default();
            match kind {
                _ if self.format != OutputFormat::Quiet => transcript.print_message(&message)?,
                "agent_message_chunk" => transcript.print_message(&message)?,
                // Agents send these in the middle of a message.
                "usage_update" | "session_info_update" | "available_commands_update" => {}
                _ => transcript.finish()?,
            }
        }
        Ok(())
    }
}

/// Prints redacted events. Unknown events of a newer daemon are skipped.
fn print_events(printer: &mut ViewPrinter, events: Vec<Value>) -> Result<(), CommandError> {
    let known = events.into_iter().filter_map(|it| ReceivedEvent::from_value(it).ok());
    known.into_iter().try_for_each(|it| printer.print_event(&it))
}

/// Prints one message of the hub as text.
pub(super) fn print_frame(
    transcript: &mut TranscriptPrinter,
    frame: &Frame,
) -> Result<(), CommandError> {
    transcript.print_message(&frame_to_value(frame))
}

fn frame_to_value(frame: &Frame) -> Value {
    let params = frame.params_value();
    json!({ "method": frame.method(), "params": params })
}

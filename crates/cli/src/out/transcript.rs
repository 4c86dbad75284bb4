//! Prints a session as text: the agent's messages are data, its actions are short notes. `jackfield_views::text`
//! decides what is printed.

use super::{BRIGHT, CommandOutput, DIM, WARNING, paint};
use crate::{
    plain_text::{escape_control_chars, to_one_line},
    report::CommandError,
};
use jackfield_events::{ReceivedEvent, UserAsked};
use jackfield_views::text::{TextPiece, TextRenderer, ToolSummary};
use serde_json::Value;

/// Where the notes about the agent's actions are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoteDestination {
    /// On stderr; only the agent's messages are data.
    Stderr,
    /// On stdout, as a part of the data.
    Stdout,
    /// Not at all. The agent's messages are not printed either.
    Nowhere,
}

const LINE_CHARS_MAX: usize = 160;

/// Prints one session while it runs.
#[derive(Debug)]
pub(crate) struct TranscriptPrinter {
    output: CommandOutput,
    notes: NoteDestination,
    text: TextRenderer,
}

impl TranscriptPrinter {
    pub(crate) fn new(output: &CommandOutput, notes: NoteDestination) -> TranscriptPrinter {
        TranscriptPrinter { output: output.clone(), notes, text: TextRenderer::default() }
    }

    /// The tool call of a permission request, merged with the earlier updates about it.
    pub(crate) fn find_tool(&mut self, call: &Value) -> ToolSummary {
        self.text.merge_tool_call(call)
    }

    /// The agent's message after its last tool call.
    pub(crate) fn final_message(&self) -> &str {
        self.text.final_text()
    }

    /// Prints one notification of the hub: `{"method":…,"params":…}`.
    pub(crate) fn print_message(&mut self, message: &Value) -> Result<(), CommandError> {
        let pieces = self.text.render_message(message);
        self.print_pieces(pieces)
    }

    /// Prints one `session/update`.
    pub(crate) fn print_update(&mut self, update: &Value) -> Result<(), CommandError> {
        let pieces = self.text.render_update(update);
        self.print_pieces(pieces)
    }

    /// Prints one event that has no ACP message.
    pub(crate) fn print_event(&mut self, event: &ReceivedEvent) -> Result<(), CommandError> {
        let pieces = self.text.render_event(event);
        self.print_pieces(pieces)
    }

    /// Stores the options of a request for its answer; prints nothing.
    pub(crate) fn store_request(&mut self, asked: &UserAsked<Value>) {
        self.text.render_question(asked);
    }

    /// Ends the current line.
    pub(crate) fn finish(&mut self) -> Result<(), CommandError> {
        let pieces = self.text.finish();
        self.print_pieces(pieces)
    }

    fn print_pieces(&self, pieces: Vec<TextPiece>) -> Result<(), CommandError> {
        if self.notes == NoteDestination::Nowhere {
            return Ok(());
        }
        pieces.into_iter().try_for_each(|piece| match piece {
            TextPiece::AgentText(text) => self.output.print_text(&text),
            TextPiece::UserLine(line) => {
                self.print_note(&paint(BRIGHT, format!("> {}", escape_control_chars(&line))))
            }
            TextPiece::Line { label, text } => self.print_short_line(label, &text),
            TextPiece::Detail { label, text } if self.output.is_verbose() => {
                self.print_short_line(label, &text)
            }
            TextPiece::Detail { .. } => Ok(()),
            TextPiece::Remark(text) => self
                .print_note(&paint(WARNING, format!("-- {}", to_one_line(&text, LINE_CHARS_MAX)))),
            TextPiece::EndLine => self.output.end_line(),
        })
    }

    fn print_short_line(&self, label: &str, text: &str) -> Result<(), CommandError> {
        let text = to_one_line(text, LINE_CHARS_MAX);
        if text.is_empty() {
            Ok(())
        } else {
            self.print_note(&paint(DIM, format!("{label:<5} {text}")))
        }
    }

    fn print_note(&self, line: &str) -> Result<(), CommandError> {
        if self.notes == NoteDestination::Stdout {
            return self.output.print_line(line);
        }
        self.output.print_note(line);
        Ok(())
    }
}

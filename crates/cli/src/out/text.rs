//! Prints a session as it is told: what the agent says is data, what it does are short lines beside
//! it. What to tell is decided in `jackfield_views::text`.

use super::{BRIGHT, DIM, Out, WARNING, clean, one_line, paint};
use crate::report::Failure;
use jackfield_events::{ReceivedEvent, UserAsked};
use jackfield_views::text::{Piece, Text, Tool};
use serde_json::Value;

/// Where the short lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Beside the data: only the agent's words are what was asked for.
    Stderr,
    /// They are part of the data, as in a log.
    Stdout,
    /// Nowhere, and the words only at the end.
    Nowhere,
}

const LINE_CHARS_MAX: usize = 160;

/// Tells one session as it goes.
#[derive(Debug)]
pub(crate) struct Transcript {
    out: Out,
    side: Side,
    text: Text,
}

impl Transcript {
    pub(crate) fn new(out: &Out, side: Side) -> Transcript {
        Transcript { out: out.clone(), side, text: Text::default() }
    }

    /// What is known of a tool call that an ask names, put together with what the ask says itself.
    pub(crate) fn tool(&mut self, call: &Value) -> Tool {
        self.text.tool(call)
    }

    /// The agent's latest words, without those before its last tool call.
    pub(crate) fn final_words(&self) -> &str {
        self.text.final_words()
    }

    /// One message of the hub: `{"method":…,"params":…}`.
    pub(crate) fn message(&mut self, message: &Value) -> Result<(), Failure> {
        let told = self.text.message(message);
        self.print(told)
    }

    /// One `session/update`.
    pub(crate) fn update(&mut self, update: &Value) -> Result<(), Failure> {
        let told = self.text.update(update);
        self.print(told)
    }

    /// One event that ACP has no message for.
    pub(crate) fn event(&mut self, event: &ReceivedEvent) -> Result<(), Failure> {
        let told = self.text.event(event);
        self.print(told)
    }

    /// Remembers the options for the answer; prints nothing.
    pub(crate) fn asked(&mut self, asked: &UserAsked<Value>) {
        self.text.asked(asked);
    }

    /// Everything was said: no line stays open.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        let told = self.text.finish();
        self.print(told)
    }

    fn print(&self, told: Vec<Piece>) -> Result<(), Failure> {
        if self.side == Side::Nowhere {
            return Ok(());
        }
        told.into_iter().try_for_each(|piece| match piece {
            Piece::Words(words) => self.out.data(&words),
            Piece::UserLine(line) => self.line(&paint(BRIGHT, format!("> {}", clean(&line)))),
            Piece::Line { word, text } => self.short_line(word, &text),
            Piece::Detail { word, text } if self.out.is_verbose() => self.short_line(word, &text),
            Piece::Detail { .. } => Ok(()),
            Piece::Remark(text) => {
                self.line(&paint(WARNING, format!("-- {}", one_line(&text, LINE_CHARS_MAX))))
            }
            Piece::EndLine => self.out.end_line(),
        })
    }

    fn short_line(&self, word: &str, text: &str) -> Result<(), Failure> {
        let text = one_line(text, LINE_CHARS_MAX);
        if text.is_empty() { Ok(()) } else { self.line(&paint(DIM, format!("{word:<5} {text}"))) }
    }

    fn line(&self, line: &str) -> Result<(), Failure> {
        if self.side == Side::Stdout {
            return self.out.line(line);
        }
        self.out.note(line);
        Ok(())
    }
}

//! What a command line runs, as far as that can be said for certain, and what may be seen in it.
//!
//! Two readers look at it. An allow needs certainty: every simple command of the line, each with the
//! words that say which program runs; a line that is *opaque* has none. A deny or an ask needs a
//! suspicion: the same commands from behind every wrapper, and in an opaque line every word.
//!
//! **Invariant:** a reading takes time and memory in proportion to the length of the line, and a
//! line is read only when a rule or a person wants to know.

mod git;
mod hazard;
mod lex;
mod loose;
mod pattern;
mod program;
mod reading;
mod script;
mod wild;
mod wrapper;

pub(crate) use loose::loose;
pub(crate) use pattern::{Pattern, flaw};
pub(crate) use program::{base, interpreter, runs_others};
pub(crate) use reading::Reading;
pub(crate) use wild::{Hit, Token, could_meet, tokens};

use serde::{Serialize, Serializer};
use std::{borrow::Cow, ops::Range};

/// Longer lines are not searched: every rule that forbids something holds for them.
pub(crate) const LINE_BYTES_MAX: usize = 256 * 1024;

/// One command line that an agent wants to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    text: String,
    /// The words, if no shell has read them.
    argv: Option<Vec<String>>,
}

/// How much the reading of a line consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadingSize {
    pub words: usize,
    /// The lengths of all words.
    pub bytes: usize,
    /// How often a program was looked at with its arguments.
    pub programs: usize,
}

/// One program and its arguments, with all that stands before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple {
    /// Its words among those of the reading.
    pub(crate) words: Range<usize>,
    /// How many words an allow has to spell: up to the innermost program.
    pub(crate) reach: usize,
    /// The words that name programs, counted from its first.
    pub(crate) programs: Vec<usize>,
}

/// A word after quotes and escapes are gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) kind: WordKind,
    /// It may be the first of a command.
    pub(crate) is_start: bool,
}

/// What a shell makes of a word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WordKind {
    /// Itself.
    #[default]
    Fixed,
    /// Names of files.
    Glob,
    /// Anything: a variable, or braces that become several words.
    Open,
}

impl Shell {
    /// A line as a shell reads it.
    pub fn of_line(text: &str) -> Shell {
        Shell { text: text.to_owned(), argv: None }
    }

    /// A program and its arguments, which no shell has read.
    pub fn of_argv(argv: &[String]) -> Shell {
        Shell { text: argv.join(" "), argv: Some(argv.to_vec()) }
    }

    /// The line itself; the words of an argument list joined by spaces.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line by which a rule knows exactly this command: words that no shell has read are quoted.
    pub(crate) fn exact_text(&self) -> Cow<'_, str> {
        let Some(argv) = &self.argv else { return self.text.trim().into() };
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./=:,+@%".contains(it);
        let quoted = |it: &String| {
            let plain = !it.is_empty() && it.chars().all(is_plain);
            if plain { it.clone() } else { format!("'{}'", it.replace('\'', r"'\''")) }
        };
        argv.iter().map(quoted).collect::<Vec<_>>().join(" ").into()
    }

    /// Why nothing can be said for certain about what it runs.
    pub fn opaque(&self) -> Option<&'static str> {
        self.read().opaque()
    }

    /// The size of its reading: in proportion to the length of the line, whatever stands in it.
    pub fn reading_size(&self) -> ReadingSize {
        self.read().size()
    }

    pub(crate) fn read(&self) -> Reading {
        match &self.argv {
            Some(argv) => Reading::of_argv(&self.text, argv),
            None => Reading::of_line(&self.text),
        }
    }
}

impl Serialize for Shell {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Told<'a> {
            text: &'a str,
            runs: Vec<Vec<&'a str>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            opaque: Option<&'static str>,
        }
        let reading = self.read();
        let words = |it: &'_ Simple| -> Vec<&str> {
            reading.words_of(it).iter().map(|it| it.text.as_str()).collect()
        };
        let runs = reading.commands().iter().map(words).collect();
        Told { text: &self.text, runs, opaque: reading.opaque() }.serialize(to)
    }
}

//! Analyzes shell command lines: which programs a line runs for certain, and which it may run.
//!
//! The analysis serves two purposes. An allow rule needs certainty: every simple command of the
//! line, each with the words that identify the program; an *opaque* line has none. A deny or ask
//! rule needs only a possibility: the same commands without their wrappers, and every word of an
//! opaque line.
//!
//! **Invariant:** an analysis takes time and memory in proportion to the length of the line, and a
//! line is analyzed only when a rule or a user needs the result.

mod analysis;
mod command_pattern;
mod expansion;
mod git;
mod hazard;
mod lexer;
mod loose_words;
mod program;
mod sed_awk;
mod wrapper;

pub(crate) use analysis::CommandAnalysis;
pub(crate) use command_pattern::{CommandPattern, find_pattern_error};
pub(crate) use expansion::{GlobToken, MatchCertainty, could_overlap, tokenize_word};
pub(crate) use loose_words::loose_words;
pub(crate) use program::{interpreter_code_options, program_name, runs_other_programs};

use serde::{Serialize, Serializer};
use std::ops::Range;

/// Longer lines are not searched: every deny and ask rule about commands or paths matches them.
pub(crate) const LINE_BYTES_MAX: usize = 256 * 1024;

/// One command line that an agent wants to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    text: String,
    /// The argument list, if the agent runs the program without a shell.
    argv: Option<Vec<String>>,
}

/// The size of the analysis of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnalysisSize {
    pub words: usize,
    /// The total length of all words.
    pub bytes: usize,
    /// The number of programs whose arguments were examined.
    pub programs: usize,
}

/// One program and its arguments, with its assignments and wrappers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    /// The range of its words in the analysis.
    pub(crate) words: Range<usize>,
    /// The number of words that an allow rule must spell out: up to the innermost program.
    pub(crate) spelled_len: usize,
    /// The indexes of the words that name programs, counted from its first word.
    pub(crate) programs: Vec<usize>,
}

/// A word after quotes and escapes are removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ShellWord {
    pub(crate) text: String,
    pub(crate) kind: WordKind,
    /// Whether it may be the first word of a command.
    pub(crate) is_start: bool,
}

/// How a shell expands a word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WordKind {
    /// Not at all.
    #[default]
    Fixed,
    /// To file names.
    Glob,
    /// To any text: a variable, or braces that become several words.
    Open,
}

impl ShellCommand {
    /// A line for a shell.
    pub fn from_line(text: &str) -> ShellCommand {
        ShellCommand { text: text.to_owned(), argv: None }
    }

    /// A program and its arguments, which run without a shell.
    pub fn from_argv(argv: &[String]) -> ShellCommand {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./=:,+@%".contains(it);
        let quoted = |it: &String| {
            let plain = !it.is_empty() && it.chars().all(is_plain);
            if plain { it.clone() } else { format!("'{}'", it.replace('\'', r"'\''")) }
        };
        let text = argv.iter().map(quoted).collect::<Vec<_>>().join(" ");
        ShellCommand { text, argv: Some(argv.to_vec()) }
    }

    /// The line as a user sees it. The words of an argument list are quoted, so that `a b` and `a`, `b` differ.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line that an `exact` matcher must have.
    pub(crate) fn exact_text(&self) -> &str {
        if self.argv.is_some() { &self.text } else { self.text.trim() }
    }

    /// Why it is not certain what the line runs; `None` if it is.
    pub fn opaque_reason(&self) -> Option<&'static str> {
        self.analyze().opaque_reason()
    }

    /// The size of its analysis, which is always in proportion to the length of the line.
    pub fn analysis_size(&self) -> AnalysisSize {
        self.analyze().size()
    }

    pub(crate) fn analyze(&self) -> CommandAnalysis {
        match &self.argv {
            Some(argv) => CommandAnalysis::from_argv(&self.text, argv),
            None => CommandAnalysis::from_line(&self.text),
        }
    }
}

impl Serialize for ShellCommand {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct SerializedCommand<'a> {
            text: &'a str,
            runs: Vec<Vec<&'a str>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            opaque: Option<&'static str>,
        }
        let analysis = self.analyze();
        let words = |it: &'_ SimpleCommand| -> Vec<&str> {
            analysis.words_of(it).iter().map(|it| it.text.as_str()).collect()
        };
        let runs = analysis.commands().iter().map(words).collect();
        SerializedCommand { text: &self.text, runs, opaque: analysis.opaque_reason() }.serialize(to)
    }
}

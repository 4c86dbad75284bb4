//! What a command line runs, as far as that can be said for certain, and what may be seen in it.
//!
//! Two readers look at it. An allow needs certainty: every simple command of the line, each with the
//! words that say which program runs; a line that is *opaque* has none. A deny or an ask needs a
//! suspicion: the same commands from behind every wrapper, and in an opaque line every word.

mod lex;
mod pattern;
mod program;

pub(crate) use pattern::{Pattern, flaw};
pub(crate) use program::{base, interpreter, runs_others};

use program::{Role, is_assignment, role};
use serde::{Serialize, Serializer};

/// Longer lines are not searched: who forbids something is asked about them.
const LINE_BYTES_MAX: usize = 256 * 1024;

/// `bash -c "bash -c …"` is followed this deep.
const DEPTH_MAX: usize = 4;

/// One command line that an agent wants to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shell {
    text: String,
    commands: Vec<Simple>,
    opaque: Option<&'static str>,
    /// Where a deny looks: words with the program first.
    seen: Vec<Vec<Word>>,
}

/// One program and its arguments, with all that stands before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) words: Vec<Word>,
    /// How many words an allow has to spell: up to the innermost program.
    pub(crate) reach: usize,
    /// The words that name programs.
    pub(crate) programs: Vec<usize>,
}

/// A word after quotes and escapes are gone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) kind: WordKind,
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
        let mut shell = Shell::empty(text.to_owned());
        shell.read_line(text, 0);
        shell.finish()
    }

    /// A program and its arguments, which no shell has read.
    pub fn of_argv(argv: &[String]) -> Shell {
        let mut shell = Shell::empty(argv.join(" "));
        let fixed = |it: &String| Word { text: it.clone(), kind: WordKind::Fixed };
        shell.examine(argv.iter().map(fixed).collect(), 0);
        // Some agents call a list of lines by the same name.
        for line in argv.iter().filter(|it| it.contains(char::is_whitespace)) {
            shell.seen.extend(loose(line));
        }
        shell.finish()
    }

    fn empty(text: String) -> Shell {
        Shell { text, commands: Vec::new(), opaque: None, seen: Vec::new() }
    }

    fn finish(mut self) -> Shell {
        if self.text.len() > LINE_BYTES_MAX {
            self.opaque = Some("it is too long");
            self.seen.clear();
        } else if self.opaque.is_none() && self.runs_from_elsewhere() {
            self.opaque = Some("it changes the folder and runs a file");
        }
        if self.opaque.is_some() {
            self.commands.clear();
            self.seen.extend(loose(&self.text));
        }
        self
    }

    /// The line itself; the words of an argument list joined by spaces.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Why nothing can be said for certain about what it runs.
    pub fn opaque(&self) -> Option<&'static str> {
        self.opaque
    }

    /// All that it runs; nothing if that is not certain.
    pub(crate) fn commands(&self) -> &[Simple] {
        &self.commands
    }

    /// Every word that may be an argument of something.
    pub(crate) fn words(&self) -> impl Iterator<Item = &str> {
        self.seen.iter().flatten().map(|it| it.text.as_str())
    }

    /// Whether a pattern is found in it: what a deny or an ask wants to know.
    pub(crate) fn shows(&self, pattern: &Pattern<'_>) -> bool {
        if self.text.len() > LINE_BYTES_MAX {
            return true;
        }
        let anywhere = self.opaque.is_some();
        self.seen.iter().any(|words| {
            let starts = if anywhere { words.len() } else { 1 };
            (0..starts).any(|start| pattern.is_seen_in(&words[start..]))
        })
    }

    fn read_line(&mut self, text: &str, depth: usize) {
        if text.len() > LINE_BYTES_MAX {
            return;
        }
        match lex::split(text) {
            Err(why) => self.opaque = self.opaque.or(Some(why)),
            Ok(commands) => commands.into_iter().for_each(|it| self.examine(it, depth)),
        }
    }

    /// Whether it runs a file that is named from a folder it went to before.
    fn runs_from_elsewhere(&self) -> bool {
        let goes = |it: &Simple| matches!(it.words[0].text.as_str(), "cd" | "pushd" | "popd");
        let relative = |it: &String| it.contains('/') && !it.starts_with('/');
        let runs = |it: &Simple| it.programs.iter().any(|at| relative(&it.words[*at].text));
        self.commands.iter().skip_while(|it| !goes(it)).any(runs)
    }

    /// Follows one simple command to the program that it runs in the end.
    fn examine(&mut self, words: Vec<Word>, depth: usize) {
        let skip =
            |from: usize| from + words[from..].iter().take_while(|it| is_assignment(it)).count();
        let mut at = skip(0);
        let mut programs = Vec::new();
        self.seen.push(words.clone());
        let reach = loop {
            if at >= words.len() {
                break words.len();
            }
            programs.push(at);
            if at > 0 {
                self.seen.push(words[at..].to_vec());
            }
            match role(&words, at) {
                Role::Plain => break at + 1,
                Role::Upto(file) => break file + 1,
                Role::Runs(next) => at = next,
                // Under another user or in another environment the line is not the same line.
                Role::Line(line) if at == 0 && depth < DEPTH_MAX => {
                    let line = words[line].text.clone();
                    return self.read_line(&line, depth + 1);
                }
                Role::Line(_) => {
                    self.opaque = self.opaque.or(Some("a program runs a shell with a line"));
                    return;
                }
                Role::Unreadable(why) => {
                    self.opaque = self.opaque.or(Some(why));
                    return;
                }
            }
        };
        if reach > 0 {
            self.commands.push(Simple { words, reach, programs });
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
        let mut runs: Vec<Vec<&str>> = Vec::new();
        for command in &self.commands {
            runs.push(command.words.iter().map(|it| it.text.as_str()).collect());
        }
        Told { text: &self.text, runs, opaque: self.opaque }.serialize(to)
    }
}

/// The words of a text that nobody can read: split where a shell might, with the quotes taken for
/// the ends of words and, once more, for nothing.
pub(crate) fn loose(text: &str) -> [Vec<Word>; 2] {
    let words = |text: &str| {
        let ends = |it: char| it.is_whitespace() || "'\"`$(){}<>|;&=,\\\0".contains(it);
        let word = |it: &str| Word { text: it.to_owned(), kind: WordKind::Fixed };
        text.split(ends).filter(|it| !it.is_empty()).map(word).collect()
    };
    if text.len() > LINE_BYTES_MAX {
        return [Vec::new(), Vec::new()];
    }
    [words(text), words(&text.replace(['\'', '"', '\\'], ""))]
}

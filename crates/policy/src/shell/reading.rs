//! One reading of a command line: its words once, and everything else as places among them.

use super::{
    Hit, LINE_BYTES_MAX, Pattern, ReadingSize, Simple, Word, base, hazard,
    lex::{self, WORDS_MAX},
    loose::loose,
    program::{Role, is_assignment, role, runs_others},
};
use std::ops::Range;

/// `bash -c "bash -c …"` is followed this deep.
const LINES_DEEP_MAX: usize = 4;

/// `sudo env nice …` is followed this far.
const WRAPPERS_DEEP_MAX: usize = 16;

/// What a line runs and what may be seen in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    words: Vec<Word>,
    commands: Vec<Simple>,
    opaque: Option<&'static str>,
    /// Where a deny looks: words with the program first.
    seen: Vec<Seen>,
    /// It is too long to be searched.
    is_unsearched: bool,
    programs: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    words: Range<usize>,
    /// Any of them may be the program.
    anywhere: bool,
}

impl Reading {
    pub(super) fn of_line(text: &str) -> Reading {
        let mut reading = Reading::default();
        reading.read_line(text, 0);
        reading.finish(text)
    }

    pub(super) fn of_argv(text: &str, argv: &[String]) -> Reading {
        let mut reading = Reading::default();
        if text.len() <= LINE_BYTES_MAX && argv.len() <= WORDS_MAX {
            let fixed = |it: &String| Word { text: it.clone(), ..Word::default() };
            reading.examine(argv.iter().map(fixed).collect(), 0);
            // Some agents call a list of lines by the same name.
            for line in argv.iter().filter(|it| it.contains(char::is_whitespace)) {
                reading.look_loosely(line);
            }
        } else {
            reading.opaque = Some("it is too long");
        }
        reading.finish(text)
    }

    fn finish(mut self, text: &str) -> Reading {
        if self.opaque.is_none() && self.runs_from_elsewhere() {
            self.opaque = Some("it changes the folder and runs a file");
        }
        if self.opaque.is_some() {
            self.commands.clear();
            self.look_loosely(text);
        }
        self
    }

    pub(crate) fn opaque(&self) -> Option<&'static str> {
        self.opaque
    }

    /// All that it runs; nothing if that is not certain.
    pub(crate) fn commands(&self) -> &[Simple] {
        &self.commands
    }

    pub(crate) fn words_of(&self, command: &Simple) -> &[Word] {
        &self.words[command.words.clone()]
    }

    /// Every word that may be an argument of something, and whether there are more.
    pub(crate) fn words(&self) -> (&[Word], bool) {
        (&self.words, self.is_unsearched)
    }

    pub(super) fn size(&self) -> ReadingSize {
        let bytes = self.words.iter().map(|it| it.text.len()).sum();
        ReadingSize { words: self.words.len(), bytes, programs: self.programs }
    }

    /// Whether a pattern is found in it: what a deny or an ask wants to know.
    pub(crate) fn hit(&self, pattern: &Pattern<'_>) -> Hit {
        if self.is_unsearched {
            return Hit::Yes;
        }
        let mut best = Hit::No;
        for seen in &self.seen {
            let words = &self.words[seen.words.clone()];
            let starts = if seen.anywhere { words.len() } else { 1 };
            for start in 0..starts {
                best = best.max(pattern.hit(&words[start..]));
            }
        }
        best
    }

    fn read_line(&mut self, text: &str, depth: usize) {
        if text.len() > LINE_BYTES_MAX {
            return self.give_up("it is too long");
        }
        match lex::split(text) {
            Err(why) => self.give_up(why),
            Ok(commands) => commands.into_iter().for_each(|it| self.examine(it, depth)),
        }
        // A line inside of another is quoted there, which hides its own quotes.
        if depth > 0 && self.opaque.is_some() {
            self.look_loosely(text);
        }
    }

    fn give_up(&mut self, why: &'static str) {
        self.opaque = self.opaque.or(Some(why));
    }

    fn look_loosely(&mut self, text: &str) {
        if text.len() > LINE_BYTES_MAX {
            self.is_unsearched = true;
            return;
        }
        for words in loose(text) {
            if words.len() > 2 * WORDS_MAX {
                self.is_unsearched = true;
                return;
            }
            let words = self.add(words);
            self.seen.push(Seen { words, anywhere: true });
        }
    }

    fn add(&mut self, words: Vec<Word>) -> Range<usize> {
        let start = self.words.len();
        self.words.extend(words);
        start..self.words.len()
    }

    /// Whether it runs a file that is named from a folder it went to before.
    fn runs_from_elsewhere(&self) -> bool {
        let text = |it: &Simple, at: usize| self.words_of(it)[at].text.as_str();
        let goes = |it: &Simple| matches!(text(it, 0), "cd" | "pushd" | "popd");
        let relative = |it: &str| it.contains('/') && !it.starts_with('/');
        let runs = |it: &Simple| it.programs.iter().any(|at| relative(text(it, *at)));
        self.commands.iter().skip_while(|it| !goes(it)).any(runs)
    }

    /// Whether a program is named by a path that depends on the folder.
    pub(crate) fn runs_relative_file(&self) -> bool {
        self.commands.iter().any(|command| {
            let words = self.words_of(command);
            command.programs.iter().any(|at| {
                let text = words[*at].text.as_str();
                text.contains('/') && !text.starts_with('/')
            })
        })
    }

    /// Follows one simple command to the program that it runs in the end.
    fn examine(&mut self, mut words: Vec<Word>, depth: usize) {
        if let Some(first) = words.first_mut() {
            first.is_start = true;
        }
        let all = self.add(words);
        self.seen.push(Seen { words: all.clone(), anywhere: false });
        let skip = |it: &[Word]| it.iter().take_while(|it| is_assignment(it)).count();
        let mut at = skip(&self.words[all.clone()]);
        let mut programs = Vec::new();
        let reach = loop {
            if at >= all.len() {
                break all.len();
            }
            if programs.len() == WRAPPERS_DEEP_MAX {
                return self.give_up("programs that run others stand too deep in each other");
            }
            programs.push(at);
            self.programs += 1;
            if at > 0 {
                self.seen.push(Seen { words: all.start + at..all.end, anywhere: false });
            }
            let words = &self.words[all.clone()];
            let fed = programs[..programs.len() - 1].iter().any(|it| is_xargs(&words[*it]));
            match role(words, at) {
                Role::Plain if fed && takes_more_words(base(&words[at].text)) => {
                    return self.give_up("xargs gives it words that are not known");
                }
                Role::Plain => break at + 1,
                Role::Upto(file) => break file + 1,
                Role::Runs(next) => at = next,
                // Under another user or in another environment the line is not the same line.
                Role::Line(line) if at == 0 && depth < LINES_DEEP_MAX => {
                    let line = words[line].text.clone();
                    return self.read_line(&line, depth + 1);
                }
                Role::Line(line) => {
                    let line = words[line].text.clone();
                    self.look_loosely(&line);
                    return self.give_up("a program runs a shell with a line");
                }
                Role::Unreadable(why) => return self.give_up(why),
            }
        };
        if reach > 0 {
            self.commands.push(Simple { words: all, reach, programs });
        }
    }
}

fn is_xargs(word: &Word) -> bool {
    matches!(base(&word.text), "xargs" | "gxargs")
}

/// Whether further words could make a program write files or run another.
fn takes_more_words(name: &str) -> bool {
    runs_others(name) || hazard::is_listed(name) || matches!(name, "git" | "find" | "fd")
}

//! The analysis of one command line. It stores each word once; everything else refers to ranges of
//! words.

use super::{
    AnalysisSize, CommandPattern, LINE_BYTES_MAX, MatchCertainty, ShellWord, SimpleCommand, hazard,
    lexer::{WORDS_MAX, split_commands},
    loose_words::loose_words,
    program::{ProgramRole, classify_program, is_assignment, program_name, runs_other_programs},
};
use std::ops::Range;

/// The maximum depth of nested lines: `bash -c "bash -c …"`.
const NESTED_LINES_MAX: usize = 4;

/// The maximum number of nested wrappers: `sudo env nice …`.
const NESTED_WRAPPERS_MAX: usize = 16;

/// The commands that a line runs, and the words in which deny and ask rules search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommandAnalysis {
    words: Vec<ShellWord>,
    commands: Vec<SimpleCommand>,
    opaque_reason: Option<&'static str>,
    /// The ranges that a deny rule searches, each with the program first.
    search_ranges: Vec<SearchRange>,
    /// Whether the line is too long to be searched.
    is_unsearched: bool,
    program_count: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct SearchRange {
    words: Range<usize>,
    program: ProgramPosition,
}

/// Which word of a range may be the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProgramPosition {
    First,
    Any,
}

impl CommandAnalysis {
    pub(super) fn from_line(text: &str) -> CommandAnalysis {
        let mut analysis = CommandAnalysis::default();
        analysis.read_line(text, 0);
        analysis.finish(text)
    }

    pub(super) fn from_argv(text: &str, argv: &[String]) -> CommandAnalysis {
        let mut analysis = CommandAnalysis::default();
        if text.len() <= LINE_BYTES_MAX && argv.len() <= WORDS_MAX {
            let fixed = |it: &String| ShellWord { text: it.clone(), ..ShellWord::default() };
            analysis.follow_command(argv.iter().map(fixed).collect(), 0);
            // Some agents use the same member for a list of lines.
            for line in argv.iter().filter(|it| it.contains(char::is_whitespace)) {
                analysis.add_loose_words(line);
            }
        } else {
            analysis.opaque_reason = Some("the line is too long");
        }
        analysis.finish(text)
    }

    fn finish(mut self, text: &str) -> CommandAnalysis {
        if self.opaque_reason.is_none() && self.runs_file_after_folder_change() {
            self.opaque_reason = Some("it changes the folder and runs a file by a relative path");
        }
        if self.opaque_reason.is_some() {
            self.commands.clear();
            self.add_loose_words(text);
        }
        self
    }

    /// Why it is not certain what the line runs; `None` if it is.
    pub(crate) fn opaque_reason(&self) -> Option<&'static str> {
        self.opaque_reason
    }

    /// All commands that the line runs; empty if it is opaque.
    pub(crate) fn commands(&self) -> &[SimpleCommand] {
        &self.commands
    }

    pub(crate) fn words_of(&self, command: &SimpleCommand) -> &[ShellWord] {
        &self.words[command.words.clone()]
    }

    /// Every word that may be an argument.
    pub(crate) fn words(&self) -> &[ShellWord] {
        &self.words
    }

    /// Whether the line is too long, so that [`Self::words`] does not have all its words.
    pub(crate) fn is_unsearched(&self) -> bool {
        self.is_unsearched
    }

    pub(super) fn size(&self) -> AnalysisSize {
        let bytes = self.words.iter().map(|it| it.text.len()).sum();
        AnalysisSize { words: self.words.len(), bytes, programs: self.program_count }
    }

    /// Whether the pattern of a deny or ask rule occurs in the line.
    pub(crate) fn match_pattern(&self, pattern: &CommandPattern<'_>) -> MatchCertainty {
        if self.is_unsearched {
            return MatchCertainty::Certain;
        }
        let mut best = MatchCertainty::None;
        for range in &self.search_ranges {
            let words = &self.words[range.words.clone()];
            let start_count = match range.program {
                ProgramPosition::First => 1,
                ProgramPosition::Any => words.len(),
            };
            for start in 0..start_count {
                best = best.max(pattern.match_words(&words[start..]));
            }
        }
        best
    }

    fn read_line(&mut self, text: &str, depth: usize) {
        if text.len() > LINE_BYTES_MAX {
            return self.mark_opaque("the line is too long");
        }
        match split_commands(text) {
            Err(reason) => self.mark_opaque(reason),
            Ok(commands) => commands.into_iter().for_each(|it| self.follow_command(it, depth)),
        }
        // A nested line is quoted in the outer line, which hides its own quotes.
        if depth > 0 && self.opaque_reason.is_some() {
            self.add_loose_words(text);
        }
    }

    fn mark_opaque(&mut self, reason: &'static str) {
        self.opaque_reason = self.opaque_reason.or(Some(reason));
    }

    fn add_loose_words(&mut self, text: &str) {
        if text.len() > LINE_BYTES_MAX {
            self.is_unsearched = true;
            return;
        }
        for words in loose_words(text) {
            if words.len() > 2 * WORDS_MAX {
                self.is_unsearched = true;
                return;
            }
            let words = self.add_words(words);
            self.search_ranges.push(SearchRange { words, program: ProgramPosition::Any });
        }
    }

    fn add_words(&mut self, words: Vec<ShellWord>) -> Range<usize> {
        let start = self.words.len();
        self.words.extend(words);
        start..self.words.len()
    }

    /// Whether it changes the folder and then runs a file by a relative path.
    fn runs_file_after_folder_change(&self) -> bool {
        let text = |it: &SimpleCommand, at: usize| self.words_of(it)[at].text.as_str();
        let changes_folder = |it: &SimpleCommand| matches!(text(it, 0), "cd" | "pushd" | "popd");
        let mut later = self.commands.iter().skip_while(|it| !changes_folder(it));
        later.any(|it| self.names_relative_program(it))
    }

    /// Whether a program is named by a relative path.
    pub(crate) fn runs_relative_file(&self) -> bool {
        self.commands.iter().any(|it| self.names_relative_program(it))
    }

    fn names_relative_program(&self, command: &SimpleCommand) -> bool {
        let words = self.words_of(command);
        command.programs.iter().any(|at| {
            let text = words[*at].text.as_str();
            text.contains('/') && !text.starts_with('/')
        })
    }

    /// Follows the wrappers of one simple command to the innermost program.
    fn follow_command(&mut self, mut words: Vec<ShellWord>, depth: usize) {
        if let Some(first) = words.first_mut() {
            first.is_start = true;
        }
        let all = self.add_words(words);
        let program = ProgramPosition::First;
        self.search_ranges.push(SearchRange { words: all.clone(), program });
        let mut at = self.words[all.clone()].iter().take_while(|it| is_assignment(it)).count();
        let mut programs = Vec::new();
        let spelled_len = loop {
            if at >= all.len() {
                break all.len();
            }
            if programs.len() == NESTED_WRAPPERS_MAX {
                return self.mark_opaque("programs that run other programs are nested too deep");
            }
            programs.push(at);
            self.program_count += 1;
            if at > 0 {
                self.search_ranges.push(SearchRange { words: all.start + at..all.end, program });
            }
            let words = &self.words[all.clone()];
            let is_below_xargs =
                programs[..programs.len() - 1].iter().any(|it| is_xargs(&words[*it]));
            match classify_program(words, at) {
                ProgramRole::Plain
                    if is_below_xargs
                        && is_sensitive_to_arguments(program_name(&words[at].text)) =>
                {
                    return self.mark_opaque("`xargs` adds unknown arguments");
                }
                ProgramRole::Plain => break at + 1,
                ProgramRole::NamedUpTo(file) => break file + 1,
                ProgramRole::RunsCommandAt(next) => at = next,
                // Under another user or in another environment the line may run other programs.
                ProgramRole::RunsLineAt(line) if at == 0 && depth < NESTED_LINES_MAX => {
                    let line = words[line].text.clone();
                    return self.read_line(&line, depth + 1);
                }
                ProgramRole::RunsLineAt(line) => {
                    let line = words[line].text.clone();
                    self.add_loose_words(&line);
                    return self.mark_opaque("a wrapped or nested shell runs a line");
                }
                ProgramRole::Unreadable(reason) => return self.mark_opaque(reason),
            }
        };
        if spelled_len > 0 {
            self.commands.push(SimpleCommand { words: all, spelled_len, programs });
        }
    }
}

fn is_xargs(word: &ShellWord) -> bool {
    matches!(program_name(&word.text), "xargs" | "gxargs")
}

/// Whether further arguments could make a program write files or run another program.
fn is_sensitive_to_arguments(name: &str) -> bool {
    runs_other_programs(name) || hazard::is_listed(name) || matches!(name, "git" | "find" | "fd")
}

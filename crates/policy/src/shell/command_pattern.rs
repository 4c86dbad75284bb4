//! The words of a `run` matcher: `git push`, `timeout * npm test`, `rm`.

use super::{
    ShellWord, SimpleCommand, WordKind,
    expansion::{MatchCertainty, could_equal, could_run},
    program::{program_name, trusted_name},
};

/// The number of words after a program in which a deny rule searches the words of its pattern.
const WINDOW_WORDS_MAX: usize = 64;

/// A program and the arguments that must follow it. Any further arguments are accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandPattern<'a> {
    words: Vec<&'a str>,
}

impl<'a> CommandPattern<'a> {
    pub(crate) fn new(text: &'a str) -> CommandPattern<'a> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        if words.last() == Some(&"**") {
            words.pop();
        }
        CommandPattern { words }
    }

    /// The number of its words.
    pub(crate) fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether it spells out the program that the command runs, as an allow rule must.
    pub(crate) fn is_spelled_by(&self, command: &SimpleCommand, words: &[ShellWord]) -> bool {
        let has_length = command.spelled_len <= self.words.len() && self.words.len() <= words.len();
        let is_same = |index: usize| {
            let (pattern, word) = (self.words[index], &words[index]);
            if pattern == "*" {
                return true;
            }
            if command.programs.contains(&index) {
                return pattern == trusted_name(&word.text) || pattern == word.text;
            }
            word.kind == WordKind::Fixed && pattern == word.text
        };
        has_length && (0..self.words.len()).all(is_same)
    }

    /// Whether these words may run the pattern of a deny or ask rule. The folder of the program is
    /// ignored, and options between the words of the pattern are skipped, with or without a value.
    pub(crate) fn match_words(&self, words: &[ShellWord]) -> MatchCertainty {
        let Some((program, arguments)) = self.words.split_first() else {
            return if words.is_empty() { MatchCertainty::None } else { MatchCertainty::Certain };
        };
        let Some(first) = words.first() else { return MatchCertainty::None };
        let certainty = match could_run(first, program_name(program)) {
            _ if *program == "*" => MatchCertainty::Certain,
            // A word that could be any text counts as a program only at the start of a command.
            MatchCertainty::Possible if !first.is_start => MatchCertainty::None,
            certainty => certainty,
        };
        if certainty == MatchCertainty::None
            || !arguments_could_be(arguments, &words[1..words.len().min(WINDOW_WORDS_MAX)])
        {
            return MatchCertainty::None;
        }
        certainty
    }
}

fn arguments_could_be(arguments: &[&str], words: &[ShellWord]) -> bool {
    // Whether the next word of the pattern may be at this index.
    let mut positions = vec![true];
    positions.resize(words.len() + 1, false);
    for argument in arguments {
        skip_options(&mut positions, words);
        let mut next = vec![false; words.len() + 1];
        for (index, word) in words.iter().enumerate() {
            // Braces and variables may become several words, or none.
            let could =
                *argument == "*" || word.kind == WordKind::Open || could_equal(word, argument);
            if positions[index] && could {
                next[index + 1] = true;
            }
        }
        positions = next;
    }
    positions.contains(&true)
}

fn skip_options(positions: &mut [bool], words: &[ShellWord]) {
    for (index, word) in words.iter().enumerate() {
        if positions[index] && word.text.starts_with('-') {
            positions[index + 1] = true;
            if let Some(next) = positions.get_mut(index + 2) {
                *next = true;
            }
        }
    }
}

/// Why a text is not a valid pattern; `None` if it is one.
pub(crate) fn find_pattern_error(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() || words == ["**"] {
        return Some("a `run` pattern must begin with a program, or with `*` for any".into());
    }
    if words[..words.len() - 1].contains(&"**") {
        return Some(format!("`{text}`: `**` must be the last word"));
    }
    // The same lexer as for command lines of agents: a pattern must be one plain command.
    let plain = text.replace('*', "x");
    let is_single_command = super::lexer::split_commands(&plain).is_ok_and(|it| {
        let [words] = it.as_slice() else { return false };
        let are_fixed = words.iter().all(|it| it.kind == WordKind::Fixed);
        are_fixed && words.iter().map(|it| it.text.as_str()).eq(plain.split_whitespace())
    });
    (!is_single_command).then(|| {
        format!(
            "`{text}` is not a plain command; a `run` pattern is one program and its first \
             arguments, without quotes, variables and operators"
        )
    })
}

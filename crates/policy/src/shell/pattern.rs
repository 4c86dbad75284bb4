//! The words of a `run` matcher: `git push`, `timeout * npm test`, `rm`.

use super::{
    Simple, Word, WordKind,
    program::{base, trusted_name},
    wild::{Hit, could_be, could_run},
};

/// How far behind a program a deny looks for the words of its pattern.
const WINDOW: usize = 64;

/// A program and the arguments that must follow it; what comes after them is free.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern<'a> {
    words: Vec<&'a str>,
}

impl<'a> Pattern<'a> {
    pub(crate) fn of(text: &'a str) -> Pattern<'a> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        if words.last() == Some(&"**") {
            words.pop();
        }
        Pattern { words }
    }

    /// How many words it has.
    pub(crate) fn length(&self) -> usize {
        self.words.len()
    }

    /// Whether it spells which program the command runs: what an allow wants to know.
    pub(crate) fn spells(&self, command: &Simple, words: &[Word]) -> bool {
        let long = command.reach <= self.words.len() && self.words.len() <= words.len();
        let same = |index: usize| {
            let (pattern, word) = (self.words[index], &words[index]);
            if pattern == "*" {
                return true;
            }
            if command.programs.contains(&index) {
                return pattern == trusted_name(&word.text) || pattern == word.text;
            }
            word.kind == WordKind::Fixed && pattern == word.text
        };
        long && (0..self.words.len()).all(same)
    }

    /// Whether it may be what these words run: the program by its name alone, options between the
    /// words of the pattern skipped, with a value or without.
    pub(crate) fn hit(&self, words: &[Word]) -> Hit {
        let Some((program, arguments)) = self.words.split_first() else {
            return if words.is_empty() { Hit::No } else { Hit::Yes };
        };
        let Some(first) = words.first() else { return Hit::No };
        let hit = match could_run(first, base(program)) {
            _ if *program == "*" => Hit::Yes,
            // A word that could be anything is a program only where a program stands.
            Hit::Possible if !first.is_start => Hit::No,
            hit => hit,
        };
        if hit == Hit::No || !arguments_could_be(arguments, &words[1..words.len().min(WINDOW)]) {
            return Hit::No;
        }
        hit
    }
}

fn arguments_could_be(arguments: &[&str], words: &[Word]) -> bool {
    // Where the next word of the pattern may stand.
    let mut places = vec![true];
    places.resize(words.len() + 1, false);
    for argument in arguments {
        skip_options(&mut places, words);
        let mut next = vec![false; words.len() + 1];
        for (index, word) in words.iter().enumerate() {
            // Braces and variables become several words, or none.
            let could = *argument == "*" || word.kind == WordKind::Open || could_be(word, argument);
            if places[index] && could {
                next[index + 1] = true;
            }
        }
        places = next;
    }
    places.contains(&true)
}

fn skip_options(places: &mut [bool], words: &[Word]) {
    for (index, word) in words.iter().enumerate() {
        if places[index] && word.text.starts_with('-') {
            places[index + 1] = true;
            if let Some(behind) = places.get_mut(index + 2) {
                *behind = true;
            }
        }
    }
}

/// Why a text is no pattern.
pub(crate) fn flaw(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() || words == ["**"] {
        return Some("a `run` pattern begins with a program: `git push`, or `*` for any".into());
    }
    if words[..words.len() - 1].contains(&"**") {
        return Some(format!("`{text}`: `**` stands for the rest and is the last word"));
    }
    // The same reader as for what agents run: one plain command, or no pattern at all.
    let plain = text.replace('*', "x");
    let single = super::lex::split(&plain).is_ok_and(|it| {
        let [words] = it.as_slice() else { return false };
        let fixed = words.iter().all(|it| it.kind == WordKind::Fixed);
        fixed && words.iter().map(|it| it.text.as_str()).eq(plain.split_whitespace())
    });
    (!single).then(|| {
        format!(
            "`{text}` is no plain command: a `run` pattern is one program and its first words, \
             without quotes, variables and operators"
        )
    })
}

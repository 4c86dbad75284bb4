//! The texts that a word could become when a shell expands it.
//!
//! The result is conservative: if a word could become a text, this module never denies it.

use super::{ShellWord, WordKind};

/// The distance up to which the end of a class or of braces is searched.
const CLOSING_DISTANCE_MAX: usize = 256;

/// A word with more variables could be any text.
const VALUES_MAX: usize = 8;

/// One token of a word or of a glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GlobToken {
    Char(char),
    /// One character except a slash.
    One,
    /// Any characters except slashes.
    Segment,
    /// `*` at the start of a name: nothing, or a character that is neither a slash nor a dot,
    /// followed by the next token, a [`GlobToken::Segment`].
    Name,
    /// Any text.
    Any,
    /// `**/` in a glob: this many tokens that follow may be absent.
    Maybe(usize),
    /// A variable: any text, which may also end this word and start another.
    Value,
}

/// How certain it is that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MatchCertainty {
    None,
    /// Only because a word could become any text.
    Possible,
    Certain,
}

/// Splits a word into tokens as a shell expands it.
pub(crate) fn tokenize_word(word: &ShellWord) -> Vec<GlobToken> {
    if word.kind == WordKind::Fixed {
        return word.text.chars().map(GlobToken::Char).collect();
    }
    let chars: Vec<char> = word.text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = chars.get(at) {
        let is_start = at == 0 || chars[at - 1] == '/';
        let (token, length) = match next {
            '*' if is_start => (GlobToken::Name, 1),
            '*' => (GlobToken::Segment, 1),
            '?' => (GlobToken::One, 1),
            '[' => tokenize_class(&chars[at..]),
            '{' => tokenize_braces(&chars[at..]),
            '$' => (GlobToken::Value, 1 + variable_len(&chars[at + 1..])),
            it => (GlobToken::Char(*it), 1),
        };
        at += length;
        tokens.push(token);
        if token == GlobToken::Name {
            tokens.push(GlobToken::Segment);
        }
    }
    tokens
}

/// The token of a class, and its length. The search for its end is bounded; beyond the bound the
/// rest of the word could be any text.
fn tokenize_class(chars: &[char]) -> (GlobToken, usize) {
    let near = &chars[..chars.len().min(CLOSING_DISTANCE_MAX)];
    match near.iter().position(|it| *it == ']') {
        // `[]x]` and `[!]x]` contain the bracket.
        Some(end) if end < 3 && chars[1..end].iter().all(|it| "!^".contains(*it)) => {
            (GlobToken::Any, chars.len())
        }
        Some(end) => (GlobToken::One, end + 1),
        None if near.len() == chars.len() => (GlobToken::Char('['), 1),
        None => (GlobToken::Any, chars.len()),
    }
}

/// The token of braces, and its length.
fn tokenize_braces(chars: &[char]) -> (GlobToken, usize) {
    let near = &chars[..chars.len().min(CLOSING_DISTANCE_MAX)];
    let mut depth = 0_usize;
    for (at, next) in near.iter().enumerate() {
        match next {
            '{' => depth += 1,
            '}' if depth == 1 => return (GlobToken::Any, at + 1),
            '}' => depth -= 1,
            _ => {}
        }
    }
    if near.len() == chars.len() {
        (GlobToken::Char('{'), 1)
    } else {
        (GlobToken::Any, chars.len())
    }
}

/// The length of a variable's name.
fn variable_len(chars: &[char]) -> usize {
    let named = chars.iter().take_while(|it| it.is_ascii_alphanumeric() || **it == '_').count();
    let special = chars.first().is_some_and(|it| "@*#?$!-".contains(*it));
    if named == 0 { usize::from(special) } else { named }
}

/// Whether a word could be this program in any folder.
pub(crate) fn could_run(word: &ShellWord, program: &str) -> MatchCertainty {
    let target: Vec<char> = program.chars().flat_map(char::to_lowercase).collect();
    if word.kind == WordKind::Fixed {
        // zsh runs `rm` for `=rm`; a line from another system may end with a carriage return.
        let name = super::program_name(word.text.trim_end_matches('\r')).trim_start_matches('=');
        let same = name.chars().flat_map(char::to_lowercase).eq(target.iter().copied());
        return if same { MatchCertainty::Certain } else { MatchCertainty::None };
    }
    let tokens = tokenize_word(word);
    if tokens.iter().filter(|it| **it == GlobToken::Value).count() > VALUES_MAX {
        return MatchCertainty::Certain;
    }
    let mut certainty = could_end_with(&tokens, &target);
    // The value of a variable may end the word.
    for (at, _) in tokens.iter().enumerate().filter(|it| *it.1 == GlobToken::Value) {
        certainty = certainty.max(could_end_with(&tokens[..=at], &target));
    }
    certainty
}

/// Whether the last part of a path could be this name.
fn could_end_with(tokens: &[GlobToken], target: &[char]) -> MatchCertainty {
    // For each number of characters that are still to be matched: `Some` if it is reachable, and
    // whether a literal character was matched on the way.
    let mut open = vec![None; target.len() + 1];
    open[target.len()] = Some(false);
    let mut best = MatchCertainty::None;
    let rate =
        |literal: bool| if literal { MatchCertainty::Certain } else { MatchCertainty::Possible };
    for token in tokens.iter().rev() {
        if let Some(literal) = open[0]
            && matches!(token, GlobToken::Char('/') | GlobToken::Any | GlobToken::Value)
        {
            best = best.max(rate(literal));
        }
        let mut next = vec![None; target.len() + 1];
        for left in 0..=target.len() {
            let Some(literal) = open[left] else { continue };
            let mut put = |left: usize, literal: bool| {
                next[left] = next[left].max(Some(literal));
            };
            match token {
                GlobToken::Char(it) if left > 0 && it.to_lowercase().eq([target[left - 1]]) => {
                    put(left - 1, true);
                }
                GlobToken::One if left > 0 => put(left - 1, literal),
                GlobToken::Char(_) | GlobToken::One | GlobToken::Maybe(_) => {}
                GlobToken::Name | GlobToken::Segment | GlobToken::Any | GlobToken::Value => {
                    (0..=left).for_each(|it| put(it, literal));
                }
            }
        }
        if matches!(token, GlobToken::Any | GlobToken::Value)
            && let Some(literal) = next[0]
        {
            best = best.max(rate(literal));
        }
        open = next;
        if open.iter().all(Option::is_none) {
            return best;
        }
    }
    open[0].map_or(best, |literal| best.max(rate(literal)))
}

/// Whether a word could be this argument.
pub(crate) fn could_equal(word: &ShellWord, text: &str) -> bool {
    if word.kind == WordKind::Fixed {
        return word.text.trim_end_matches('\r') == text;
    }
    let text: Vec<GlobToken> = text.chars().map(GlobToken::Char).collect();
    could_overlap(&tokenize_word(word), &text)
}

/// Whether a word that does not begin with a hyphen could expand to one that does.
pub(crate) fn could_be_option(word: &ShellWord) -> bool {
    let first = tokenize_word(word).first().copied();
    word.kind != WordKind::Fixed && first.is_some_and(|it| !matches!(it, GlobToken::Char(_)))
}

/// Whether both could become the same text.
pub(crate) fn could_overlap(left: &[GlobToken], right: &[GlobToken]) -> bool {
    let width = right.len() + 1;
    let mut seen = vec![false; (left.len() + 1) * width];
    let mut open = vec![(0, 0)];
    while let Some((at, other)) = open.pop() {
        let place = at * width + other;
        if std::mem::replace(&mut seen[place], true) {
            continue;
        }
        if at == left.len() && other == right.len() {
            return true;
        }
        open.extend(positions_after_skipping(left, at).into_iter().flatten().map(|it| (it, other)));
        open.extend(
            positions_after_skipping(right, other).into_iter().flatten().map(|it| (at, it)),
        );
        let (Some(one), Some(two)) = (left.get(at), right.get(other)) else { continue };
        if can_share_character(*one, *two) {
            let step = |token: GlobToken, at: usize| match token {
                GlobToken::Segment | GlobToken::Any | GlobToken::Value => at,
                GlobToken::Char(_) | GlobToken::One | GlobToken::Name | GlobToken::Maybe(_) => {
                    at + 1
                }
            };
            open.push((step(*one, at), step(*two, other)));
        }
    }
    false
}

/// The positions after the token at `at` if it matches no character.
fn positions_after_skipping(tokens: &[GlobToken], at: usize) -> [Option<usize>; 2] {
    match tokens.get(at) {
        Some(GlobToken::Segment | GlobToken::Any | GlobToken::Value) => [Some(at + 1), None],
        Some(GlobToken::Name) => [Some(at + 2), None],
        Some(GlobToken::Maybe(count)) => [Some(at + 1), Some(at + 1 + count)],
        Some(GlobToken::Char(_) | GlobToken::One) | None => [None, None],
    }
}

fn can_share_character(one: GlobToken, two: GlobToken) -> bool {
    let takes = |token: GlobToken, it: char| match token {
        GlobToken::Char(own) => own == it || own.to_lowercase().eq(it.to_lowercase()),
        GlobToken::One | GlobToken::Segment => it != '/',
        GlobToken::Name => !matches!(it, '/' | '.'),
        GlobToken::Any | GlobToken::Value => true,
        GlobToken::Maybe(_) => false,
    };
    match (one, two) {
        (GlobToken::Maybe(_), _) | (_, GlobToken::Maybe(_)) => false,
        (GlobToken::Char(it), other) | (other, GlobToken::Char(it)) => takes(other, it),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> ShellWord {
        ShellWord { text: text.to_owned(), kind: WordKind::Open, is_start: true }
    }

    #[test]
    fn word_that_could_become_a_program_matches() {
        for text in ["r?", "/bin/r?", "{r,}m", "/???/rm", "[r]m", "r$@m", "rm$IFS-rf", "*m"] {
            assert_eq!(could_run(&word(text), "rm"), MatchCertainty::Certain, "{text}");
        }
        for text in ["$X", "*", "{/bin/rm,x}", "/bin/$X", "$A$B", "$X/*", "foo$X"] {
            assert_eq!(could_run(&word(text), "rm"), MatchCertainty::Possible, "{text}");
        }
        for text in ["*.rs", "src/*/mod", "[a]b", "x?"] {
            assert_eq!(could_run(&word(text), "rm"), MatchCertainty::None, "{text}");
        }
    }

    #[test]
    fn star_matches_neither_a_slash_nor_a_hidden_file() {
        let overlaps = |one: &str, two: &str| {
            could_overlap(&tokenize_word(&word(one)), &tokenize_word(&word(two)))
        };
        assert!(overlaps("/user/.ss*/id", "/user/.ssh/$X") && overlaps("/user/*", "/user/secret"));
        assert!(!overlaps("/user/*", "/user/.env") && !overlaps("/user/*", "/user/a/b"));
        assert!(overlaps("/user/.*", "/user/.env") && overlaps("/us$X", "/user/a/b"));
        assert!(!overlaps("/user/a*", "/user/b*") && overlaps("/user/a*", "/user/*b"));
    }
}

//! Words that a shell expands: what they could become.
//!
//! The answers err on one side only: a word that could become a text is never said not to.

use super::{Word, WordKind};

/// How far the end of a class or of braces is looked for.
const LOOK_MAX: usize = 256;

/// A word with more variables than this could be anything.
const VALUES_MAX: usize = 8;

/// One piece of a word or of a glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Token {
    Char(char),
    /// One character, but no slash.
    One,
    /// Any characters but slashes.
    Segment,
    /// Nothing, or a character that is neither a slash nor a dot and the [`Token::Segment`] that
    /// follows: what `*` is at the start of a name.
    Name,
    /// Anything at all.
    Any,
    /// So many pieces that follow may be left out: what `**/` is in a glob.
    Maybe(usize),
    /// A variable: anything at all, also the end of this word and the start of another.
    Value,
}

/// How sure it is that a rule speaks of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Hit {
    No,
    /// Only because a word could become anything.
    Possible,
    Yes,
}

/// The pieces of a word as a shell expands it.
pub(crate) fn tokens(word: &Word) -> Vec<Token> {
    if word.kind == WordKind::Fixed {
        return word.text.chars().map(Token::Char).collect();
    }
    let chars: Vec<char> = word.text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(next) = chars.get(at) {
        let is_start = at == 0 || chars[at - 1] == '/';
        let (token, length) = match next {
            '*' if is_start => (Token::Name, 1),
            '*' => (Token::Segment, 1),
            '?' => (Token::One, 1),
            '[' => bracket(&chars[at..]),
            '{' => brace(&chars[at..]),
            '$' => (Token::Value, 1 + variable(&chars[at + 1..])),
            it => (Token::Char(*it), 1),
        };
        at += length;
        tokens.push(token);
        if token == Token::Name {
            tokens.push(Token::Segment);
        }
    }
    tokens
}

/// A class, and how many characters it is. Where it ends is not looked for without end: then the
/// rest of the word could be anything.
fn bracket(chars: &[char]) -> (Token, usize) {
    let near = &chars[..chars.len().min(LOOK_MAX)];
    match near.iter().position(|it| *it == ']') {
        // `[]x]` and `[!]x]` have the bracket in them.
        Some(end) if end < 3 && chars[1..end].iter().all(|it| "!^".contains(*it)) => {
            (Token::Any, chars.len())
        }
        Some(end) => (Token::One, end + 1),
        None if near.len() == chars.len() => (Token::Char('['), 1),
        None => (Token::Any, chars.len()),
    }
}

/// Braces, and how many characters they are.
fn brace(chars: &[char]) -> (Token, usize) {
    let near = &chars[..chars.len().min(LOOK_MAX)];
    let mut depth = 0_usize;
    for (at, next) in near.iter().enumerate() {
        match next {
            '{' => depth += 1,
            '}' if depth == 1 => return (Token::Any, at + 1),
            '}' => depth -= 1,
            _ => {}
        }
    }
    if near.len() == chars.len() { (Token::Char('{'), 1) } else { (Token::Any, chars.len()) }
}

/// How many characters the name of a variable has.
fn variable(chars: &[char]) -> usize {
    let named = chars.iter().take_while(|it| it.is_ascii_alphanumeric() || **it == '_').count();
    let special = chars.first().is_some_and(|it| "@*#?$!-".contains(*it));
    if named == 0 { usize::from(special) } else { named }
}

/// Whether a word could be this program: by its name alone, in whatever folder.
pub(crate) fn could_run(word: &Word, program: &str) -> Hit {
    let target: Vec<char> = program.chars().flat_map(char::to_lowercase).collect();
    if word.kind == WordKind::Fixed {
        // zsh runs `=rm`; a line from elsewhere may end with a carriage return.
        let name = super::base(word.text.trim_end_matches('\r')).trim_start_matches('=');
        let same = name.chars().flat_map(char::to_lowercase).eq(target.iter().copied());
        return if same { Hit::Yes } else { Hit::No };
    }
    let tokens = tokens(word);
    if tokens.iter().filter(|it| **it == Token::Value).count() > VALUES_MAX {
        return Hit::Yes;
    }
    let mut hit = could_end(&tokens, &target);
    // What a variable holds may end the word.
    for (at, _) in tokens.iter().enumerate().filter(|it| *it.1 == Token::Value) {
        hit = hit.max(could_end(&tokens[..=at], &target));
    }
    hit
}

/// Whether the last part of a path could be this name.
fn could_end(tokens: &[Token], target: &[char]) -> Hit {
    // For each number of characters that are still to be found: was any found as itself.
    let mut open = vec![None; target.len() + 1];
    open[target.len()] = Some(false);
    let mut best = Hit::No;
    let rate = |literal: bool| if literal { Hit::Yes } else { Hit::Possible };
    for token in tokens.iter().rev() {
        if let Some(literal) = open[0]
            && matches!(token, Token::Char('/') | Token::Any | Token::Value)
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
                Token::Char(it) if left > 0 && it.to_lowercase().eq([target[left - 1]]) => {
                    put(left - 1, true);
                }
                Token::One if left > 0 => put(left - 1, literal),
                Token::Char(_) | Token::One | Token::Maybe(_) => {}
                Token::Name | Token::Segment | Token::Any | Token::Value => {
                    (0..=left).for_each(|it| put(it, literal));
                }
            }
        }
        if matches!(token, Token::Any | Token::Value)
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
pub(crate) fn could_be(word: &Word, text: &str) -> bool {
    if word.kind == WordKind::Fixed {
        return word.text.trim_end_matches('\r') == text;
    }
    let text: Vec<Token> = text.chars().map(Token::Char).collect();
    could_meet(&tokens(word), &text)
}

/// Whether a word could begin with a hyphen, though it does not say so.
pub(crate) fn could_be_option(word: &Word) -> bool {
    let first = tokens(word).first().copied();
    word.kind != WordKind::Fixed && first.is_some_and(|it| !matches!(it, Token::Char(_)))
}

/// Whether there is a text that both could become.
pub(crate) fn could_meet(left: &[Token], right: &[Token]) -> bool {
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
        open.extend(skip(left, at).into_iter().flatten().map(|it| (it, other)));
        open.extend(skip(right, other).into_iter().flatten().map(|it| (at, it)));
        let (Some(one), Some(two)) = (left.get(at), right.get(other)) else { continue };
        if share_a_character(*one, *two) {
            let step = |token: Token, at: usize| match token {
                Token::Segment | Token::Any | Token::Value => at,
                Token::Char(_) | Token::One | Token::Name | Token::Maybe(_) => at + 1,
            };
            open.push((step(*one, at), step(*two, other)));
        }
    }
    false
}

/// Where it goes on without a character for the piece here.
fn skip(tokens: &[Token], at: usize) -> [Option<usize>; 2] {
    match tokens.get(at) {
        Some(Token::Segment | Token::Any | Token::Value) => [Some(at + 1), None],
        Some(Token::Name) => [Some(at + 2), None],
        Some(Token::Maybe(count)) => [Some(at + 1), Some(at + 1 + count)],
        Some(Token::Char(_) | Token::One) | None => [None, None],
    }
}

fn share_a_character(one: Token, two: Token) -> bool {
    let takes = |token: Token, it: char| match token {
        Token::Char(own) => own == it || own.to_lowercase().eq(it.to_lowercase()),
        Token::One | Token::Segment => it != '/',
        Token::Name => !matches!(it, '/' | '.'),
        Token::Any | Token::Value => true,
        Token::Maybe(_) => false,
    };
    match (one, two) {
        (Token::Maybe(_), _) | (_, Token::Maybe(_)) => false,
        (Token::Char(it), other) | (other, Token::Char(it)) => takes(other, it),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Word {
        Word { text: text.to_owned(), kind: WordKind::Open, is_start: true }
    }

    #[test]
    fn word_that_could_become_a_program_is_found() {
        for text in ["r?", "/bin/r?", "{r,}m", "/???/rm", "[r]m", "r$@m", "rm$IFS-rf", "*m"] {
            assert_eq!(could_run(&word(text), "rm"), Hit::Yes, "{text}");
        }
        for text in ["$X", "*", "{/bin/rm,x}", "/bin/$X", "$A$B", "$X/*", "foo$X"] {
            assert_eq!(could_run(&word(text), "rm"), Hit::Possible, "{text}");
        }
        for text in ["*.rs", "src/*/mod", "[a]b", "x?"] {
            assert_eq!(could_run(&word(text), "rm"), Hit::No, "{text}");
        }
    }

    #[test]
    fn star_does_not_leave_its_folder_and_finds_no_hidden_file() {
        let meets = |one: &str, two: &str| could_meet(&tokens(&word(one)), &tokens(&word(two)));
        assert!(meets("/user/.ss*/id", "/user/.ssh/$X") && meets("/user/*", "/user/secret"));
        assert!(!meets("/user/*", "/user/.env") && !meets("/user/*", "/user/a/b"));
        assert!(meets("/user/.*", "/user/.env") && meets("/us$X", "/user/a/b"));
        assert!(!meets("/user/a*", "/user/b*") && meets("/user/a*", "/user/*b"));
    }
}

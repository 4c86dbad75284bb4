//! HTML in words that others wrote, shown instead of obeyed.

use std::ops::Range;

/// The words of a paragraph, with a backslash before each `<` that a browser would take for a tag or
/// a comment. What stands between backticks is code and needs none.
pub(super) fn without_html(words: &str) -> String {
    let (code, links) = verbatim(words, 0);
    // If this is a table, a bar ends a cell and with it the code: what is code either way is code.
    let cells: Option<Vec<Range<usize>>> = words.contains('|').then(|| {
        let mut at = 0;
        let cells = words.split_inclusive(['|', '\n']).flat_map(|cell| {
            at += cell.len();
            verbatim(cell, at - cell.len()).0
        });
        cells.collect()
    });
    let is_in = |ranges: &[Range<usize>], at: usize| {
        let next = ranges.partition_point(|it| it.end <= at);
        ranges.get(next).is_some_and(|it| it.contains(&at))
    };
    let mut shown = String::with_capacity(words.len());
    let mut line = 0;
    for (at, it) in words.char_indices() {
        if it == '<' && is_html(&words[at + 1..]) && !is_in(&links, at) {
            let is_code = is_in(&code, at) && cells.as_ref().is_none_or(|it| is_in(it, at));
            // At the beginning of a line it would end the paragraph, and the code in it.
            let is_first = words[line..at].trim_start_matches([' ', '\t', '>']).is_empty();
            let escaped = words[..at].bytes().rev().take_while(|it| *it == b'\\').count() % 2 == 1;
            if is_first || !is_code && !escaped {
                shown.push('\\');
            }
        }
        if it == '\n' {
            line = at + 1;
        }
        shown.push(it);
    }
    shown
}

/// Where code stands in a paragraph, and where addresses in `<…>`.
fn verbatim(words: &str, offset: usize) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let (mut code, mut links) = (Vec::new(), Vec::new());
    let (mut at, mut even) = (0, true);
    while let Some(next) = words[at..].find(['\\', '`', '<']) {
        at += next;
        let rest = &words[at..];
        let (found, length) = match rest.as_bytes()[0] {
            // Whatever it is before, it is a word.
            b'\\' => (None, 1 + rest[1..].chars().next().map_or(0, char::len_utf8)),
            b'`' => {
                let (is_code, length) = backticks(rest);
                even &= is_code;
                (is_code.then_some(&mut code), length)
            }
            _ => match autolink(rest) {
                Some(length) => (Some(&mut links), length),
                None => (None, 1),
            },
        };
        if let Some(found) = found {
            found.push(offset + at..offset + at + length);
        }
        at += length;
    }
    if !even {
        // Behind backticks that nothing matches, readers disagree about what is code.
        code.clear();
    }
    (code, links)
}

/// Whether code begins here, and how long it is, or else the backticks are.
fn backticks(text: &str) -> (bool, usize) {
    let ticks = |it: &str| it.bytes().take_while(|it| *it == b'`').count();
    let length = ticks(text);
    let mut at = length;
    while let Some(next) = text[at..].find('`') {
        at += next;
        let end = ticks(&text[at..]);
        at += end;
        if end == length {
            return (true, at);
        }
    }
    (false, length)
}

/// How long `<https://…>` or `<somebody@…>` is.
fn autolink(text: &str) -> Option<usize> {
    let end = text.find('>')?;
    let address = &text[1..end];
    let word = address.bytes().take_while(|it| it.is_ascii_alphanumeric() || b"+.-".contains(it));
    let mark = address.as_bytes().get(word.count())?;
    let plain = !address.contains(|it: char| it.is_whitespace() || it == '<');
    (plain && matches!(mark, b':' | b'@')).then_some(end + 1)
}

fn is_html(behind: &str) -> bool {
    if behind.starts_with(['!', '?']) {
        return true;
    }
    let name = behind.strip_prefix('/').unwrap_or(behind);
    let length = name.bytes().take_while(|it| it.is_ascii_alphanumeric() || *it == b'-').count();
    let ends =
        name[length..].chars().next().is_none_or(|it| it.is_whitespace() || "/>".contains(it));
    name.starts_with(|it: char| it.is_ascii_alphabetic()) && ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_shown_and_not_obeyed() {
        let cases = [
            ("a <!-- b", "a \\<!-- b"),
            ("<details>\na", "\\<details>\na"),
            ("</details >", "\\</details >"),
            ("a Vec<String> and `Vec<String>`", "a Vec\\<String> and `Vec<String>`"),
            // Nobody knows where this code ends.
            ("``a ` <b> `", "``a ` \\<b> `"),
            ("| `a | <b>` |\n|--|--|", "| `a | \\<b>` |\n|--|--|"),
            ("`a\n<div>\nb`", "`a\n\\<div>\nb`"),
        ];
        for (text, shown) in cases {
            assert_eq!(without_html(text), shown);
            assert_eq!(without_html(shown), shown);
        }
    }

    #[test]
    fn code_and_addresses_need_no_backslash() {
        for text in ["`<b>` ``a ` <i>``", "1 < 2 <3", "<https://a.b/c> <me@a.b>", "\\<b>"] {
            assert_eq!(without_html(text), text);
        }
    }
}

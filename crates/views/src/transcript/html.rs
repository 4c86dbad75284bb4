//! Neutralizes the active parts of foreign Markdown: HTML, images, and links with schemes such as
//! `javascript:` are displayed as text, not run or loaded.

use super::links::is_refused;
use std::ops::Range;

/// Escapes a paragraph: a backslash before each `<` that a browser may read as a tag or a comment,
/// `[image: ` for `![`, and a backslash in each refused link. Text between backticks is code and stays
/// unchanged.
pub(super) fn escape_active_parts(paragraph: &str) -> String {
    let verbatim = VerbatimRanges::find(paragraph);
    let mut escaped_text = String::with_capacity(paragraph.len());
    let (mut line, mut slashes) = (0, 0);
    let mut rest = paragraph.char_indices().peekable();
    while let Some((at, it)) = rest.next() {
        let escaped = slashes % 2 == 1;
        slashes = if it == '\\' { slashes + 1 } else { 0 };
        let rest_of_text = &paragraph[at + it.len_utf8()..];
        let follows_label = paragraph[..at].ends_with(']');
        match it {
            '<' if is_html(rest_of_text) && !VerbatimRanges::contains(&verbatim.links, at) => {
                // At the start of a line a tag ends the paragraph, and the code in it.
                let is_first = paragraph[line..at].trim_start_matches([' ', '\t', '>']).is_empty();
                if is_first || !verbatim.is_code(at) && !escaped {
                    escaped_text.push('\\');
                }
            }
            '!' if rest_of_text.starts_with('[') && !escaped && !verbatim.is_code(at) => {
                // After another `!` it would be an image again.
                escaped_text.push_str(if escaped_text.ends_with('!') {
                    " [image: "
                } else {
                    "[image: "
                });
                rest.next();
                continue;
            }
            // `[x](…)` and `[x]: …`
            '(' | ':' if follows_label && !verbatim.is_code(at) && is_refused(rest_of_text) => {
                escaped_text.push('\\');
            }
            '\n' => line = at + 1,
            _ => {}
        }
        escaped_text.push(it);
    }
    escaped_text
}

/// The ranges of a paragraph that are code, and those that are addresses in `<…>`.
struct VerbatimRanges {
    code: Vec<Range<usize>>,
    /// In a table, a bar ends a cell and the code in it. Only text that is code in both readings is code.
    cells: Option<Vec<Range<usize>>>,
    links: Vec<Range<usize>>,
}

impl VerbatimRanges {
    fn find(paragraph: &str) -> VerbatimRanges {
        let (code, links) = find_verbatim(paragraph, 0);
        let cells = paragraph.contains('|').then(|| {
            let mut at = 0;
            let cells = paragraph.split_inclusive(['|', '\n']).flat_map(|cell| {
                at += cell.len();
                find_verbatim(cell, at - cell.len()).0
            });
            cells.collect()
        });
        VerbatimRanges { code, cells, links }
    }

    fn is_code(&self, at: usize) -> bool {
        VerbatimRanges::contains(&self.code, at)
            && self.cells.as_ref().is_none_or(|it| VerbatimRanges::contains(it, at))
    }

    fn contains(ranges: &[Range<usize>], at: usize) -> bool {
        let next = ranges.partition_point(|it| it.end <= at);
        ranges.get(next).is_some_and(|it| it.contains(&at))
    }
}

/// Finds the ranges that are code, and those that are addresses in `<…>`.
fn find_verbatim(paragraph: &str, offset: usize) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let (mut code, mut links) = (Vec::new(), Vec::new());
    let (mut at, mut is_balanced) = (0, true);
    while let Some(next) = paragraph[at..].find(['\\', '`', '<']) {
        at += next;
        let rest = &paragraph[at..];
        let (found, length) = match rest.as_bytes()[0] {
            // An escaped character is text.
            b'\\' => (None, 1 + rest[1..].chars().next().map_or(0, char::len_utf8)),
            b'`' => {
                let (is_code, length) = read_backticks(rest);
                is_balanced &= is_code;
                (is_code.then_some(&mut code), length)
            }
            _ => match autolink_length(rest) {
                Some(length) => (Some(&mut links), length),
                None => (None, 1),
            },
        };
        if let Some(found) = found {
            found.push(offset + at..offset + at + length);
        }
        at += length;
    }
    if !is_balanced {
        // After unmatched backticks, Markdown readers disagree about what is code.
        code.clear();
    }
    (code, links)
}

/// Whether code starts here, and the length of the code, or else of the backticks.
fn read_backticks(text: &str) -> (bool, usize) {
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

/// The length of `<https://…>` or `<user@…>`; `None` if it is refused or not an address.
fn autolink_length(text: &str) -> Option<usize> {
    let end = 1 + text[1..].find(['>', '<', '\n', ' '])?;
    let address = &text[1..end];
    let scheme = address.bytes().take_while(|it| it.is_ascii_alphanumeric() || b"+.-".contains(it));
    let (scheme, rest_of_text) = address.split_at(scheme.count());
    let is_url = rest_of_text.starts_with(':')
        && (2..=32).contains(&scheme.len())
        && scheme.starts_with(|it: char| it.is_ascii_alphabetic());
    let is_domain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-');
    let is_mail = rest_of_text
        .strip_prefix('@')
        .is_some_and(|it| !it.is_empty() && it.chars().all(is_domain));
    let is_plain = text[end..].starts_with('>');
    (is_plain && (is_mail || is_url && !is_refused(address))).then_some(end + 1)
}

/// Whether a `<` before this text starts a tag or a comment for any reader.
fn is_html(rest_of_text: &str) -> bool {
    rest_of_text.starts_with(|it: char| it.is_ascii_alphabetic() || matches!(it, '/' | '!' | '?'))
}

#[cfg(test)]
mod tests {
    use super::escape_active_parts;

    #[test]
    fn html_is_escaped() {
        let cases = [
            ("a <!-- b", "a \\<!-- b"),
            ("<details>\na", "\\<details>\na"),
            ("</details >", "\\</details >"),
            ("a Vec<String> and `Vec<String>`", "a Vec\\<String> and `Vec<String>`"),
            // It is ambiguous where this code ends.
            ("``a ` <b> `", "``a ` \\<b> `"),
            ("| `a | <b>` |\n|--|--|", "| `a | \\<b>` |\n|--|--|"),
            ("`a\n<div>\nb`", "`a\n\\<div>\nb`"),
            ("<svg/onload=x>", "\\<svg/onload=x>"),
            ("<img\nsrc=x onerror=y>", "\\<img\nsrc=x onerror=y>"),
            ("<a\thref=x>", "\\<a\thref=x>"),
            ("<?php x ?>", "\\<?php x ?>"),
            ("<![CDATA[x]]>", "\\<[image: CDATA[x]]>"),
            ("\\\\<b>", "\\\\\\<b>"),
        ];
        for (text, expected) in cases {
            assert_eq!(escape_active_parts(text), expected);
            assert_eq!(escape_active_parts(expected), expected);
        }
    }

    #[test]
    fn code_and_addresses_stay_unchanged() {
        for text in ["`<b>` ``a ` <i>``", "1 < 2 <3", "<https://a.b/c> <me@a.b>", "\\<b>"] {
            assert_eq!(escape_active_parts(text), text);
        }
    }
}

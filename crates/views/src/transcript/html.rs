//! What would be run or loaded in words that others wrote, shown instead: HTML, images, and links with
//! addresses such as `javascript:`.

use super::links::is_refused;
use std::ops::Range;

/// The words of a paragraph, with a backslash before each `<` that a browser may take for a tag or a
/// comment, `[image: ` for `![`, and a backslash in each link that is refused. What stands between
/// backticks is code and needs none of it.
pub(super) fn without_active_parts(words: &str) -> String {
    let verbatim = Verbatim::of(words);
    let mut shown = String::with_capacity(words.len());
    let (mut line, mut slashes) = (0, 0);
    let mut rest = words.char_indices().peekable();
    while let Some((at, it)) = rest.next() {
        let escaped = slashes % 2 == 1;
        slashes = if it == '\\' { slashes + 1 } else { 0 };
        let behind = &words[at + it.len_utf8()..];
        let is_behind_label = words[..at].ends_with(']');
        match it {
            '<' if is_html(behind) && !Verbatim::has(&verbatim.links, at) => {
                // At the beginning of a line it would end the paragraph, and the code in it.
                let is_first = words[line..at].trim_start_matches([' ', '\t', '>']).is_empty();
                if is_first || !verbatim.holds(at) && !escaped {
                    shown.push('\\');
                }
            }
            '!' if behind.starts_with('[') && !escaped && !verbatim.holds(at) => {
                // Behind another `!` it would be an image again.
                shown.push_str(if shown.ends_with('!') { " [image: " } else { "[image: " });
                rest.next();
                continue;
            }
            // `[x](…)` and `[x]: …`
            '(' | ':' if is_behind_label && !verbatim.holds(at) && is_refused(behind) => {
                shown.push('\\');
            }
            '\n' => line = at + 1,
            _ => {}
        }
        shown.push(it);
    }
    shown
}

/// Where code stands in a paragraph, and addresses in `<…>`.
struct Verbatim {
    code: Vec<Range<usize>>,
    /// If this is a table, a bar ends a cell and with it the code: what is code either way is code.
    cells: Option<Vec<Range<usize>>>,
    links: Vec<Range<usize>>,
}

impl Verbatim {
    fn of(words: &str) -> Verbatim {
        let (code, links) = find_verbatim(words, 0);
        let cells = words.contains('|').then(|| {
            let mut at = 0;
            let cells = words.split_inclusive(['|', '\n']).flat_map(|cell| {
                at += cell.len();
                find_verbatim(cell, at - cell.len()).0
            });
            cells.collect()
        });
        Verbatim { code, cells, links }
    }

    fn holds(&self, at: usize) -> bool {
        Verbatim::has(&self.code, at) && self.cells.as_ref().is_none_or(|it| Verbatim::has(it, at))
    }

    fn has(ranges: &[Range<usize>], at: usize) -> bool {
        let next = ranges.partition_point(|it| it.end <= at);
        ranges.get(next).is_some_and(|it| it.contains(&at))
    }
}

/// Where code stands in a paragraph, and where addresses in `<…>`.
fn find_verbatim(words: &str, offset: usize) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
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

/// How long `<https://…>` or `<somebody@…>` is, unless it is refused.
fn autolink(text: &str) -> Option<usize> {
    let end = 1 + text[1..].find(['>', '<', '\n', ' '])?;
    let address = &text[1..end];
    let word = address.bytes().take_while(|it| it.is_ascii_alphanumeric() || b"+.-".contains(it));
    let (word, behind) = address.split_at(word.count());
    let is_url = behind.starts_with(':')
        && (2..=32).contains(&word.len())
        && word.starts_with(|it: char| it.is_ascii_alphabetic());
    let is_domain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-');
    let is_mail =
        behind.strip_prefix('@').is_some_and(|it| !it.is_empty() && it.chars().all(is_domain));
    let is_plain = text[end..].starts_with('>');
    (is_plain && (is_mail || is_url && !is_refused(address))).then_some(end + 1)
}

/// Whether a `<` before this begins a tag or a comment, for any reader.
fn is_html(behind: &str) -> bool {
    behind.starts_with(|it: char| it.is_ascii_alphabetic() || matches!(it, '/' | '!' | '?'))
}

#[cfg(test)]
mod tests {
    use super::without_active_parts as inert;

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
            ("<svg/onload=x>", "\\<svg/onload=x>"),
            ("<img\nsrc=x onerror=y>", "\\<img\nsrc=x onerror=y>"),
            ("<a\thref=x>", "\\<a\thref=x>"),
            ("<?php x ?>", "\\<?php x ?>"),
            ("<![CDATA[x]]>", "\\<[image: CDATA[x]]>"),
            ("\\\\<b>", "\\\\\\<b>"),
        ];
        for (text, shown) in cases {
            assert_eq!(inert(text), shown);
            assert_eq!(inert(shown), shown);
        }
    }

    #[test]
    fn code_and_addresses_need_no_backslash() {
        for text in ["`<b>` ``a ` <i>``", "1 < 2 <3", "<https://a.b/c> <me@a.b>", "\\<b>"] {
            assert_eq!(inert(text), text);
        }
    }
}

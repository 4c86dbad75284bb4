//! The pieces of Markdown that a transcript is made of. Whatever is put into one stays in it.

/// The name of something, on one line.
const NAME_CHARS_MAX: usize = 200;
const LINE_CHARS_MAX: usize = 400;

/// Text of others with newlines for all ends of lines, without colors and control characters.
pub(super) fn plain(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    let plain = anstream::adapter::strip_str(&lines).to_string();
    plain.replace(|it: char| it.is_control() && it != '\n' && it != '\t', "\u{fffd}")
}

/// The same on one line that is not too long.
pub(super) fn one_line(text: &str) -> String {
    let plain = plain(text);
    let words: Vec<&str> = plain.split_whitespace().collect();
    cut(&words.join(" "), NAME_CHARS_MAX)
}

fn cut(line: &str, chars_max: usize) -> String {
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

/// Words in a line of ours: nothing in them is Markdown.
pub(super) fn words(text: &str) -> String {
    let line = one_line(text);
    let mut shown = String::with_capacity(line.len());
    let mut before = ' ';
    let mut rest = line.chars().peekable();
    while let Some(it) = rest.next() {
        let inside = |it: &char| it.is_alphanumeric();
        let special = match it {
            '\\' | '`' | '*' | '[' | ']' | '<' | '&' | '~' | '|' | '$' => true,
            '_' => !(inside(&before) && rest.peek().is_some_and(inside)),
            _ => false,
        };
        if special {
            shown.push('\\');
        }
        shown.push(it);
        before = it;
    }
    shown
}

/// A name or a command in a line of ours, as code. Some agents put backticks around it themselves.
pub(super) fn code(text: &str) -> String {
    let line = one_line(text);
    let inner = line.strip_prefix('`').and_then(|it| it.strip_suffix('`'));
    let line = inner.filter(|it| !it.is_empty() && !it.contains('`')).unwrap_or(&line);
    let ticks = "`".repeat(longest_run(line) + 1);
    let pad = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{line}{pad}{ticks}")
}

/// A block of code in a fence that is longer than any in it.
pub(super) fn fenced(info: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{info}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn longest_run(text: &str) -> usize {
    text.split(|it| it != '`').map(str::len).max().unwrap_or(0)
}

/// Each line with something before it.
pub(super) fn prefixed(prefix: &str, text: &str) -> String {
    let line = |it: &str| match it {
        "" => prefix.trim_end().to_owned(),
        _ => format!("{prefix}{it}"),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The first and the last lines of a text, none of them too long, and how many are not there.
pub(super) fn shortened(text: &str, first: usize, last: usize) -> String {
    let lines: Vec<&str> = text.trim_end_matches('\n').split('\n').collect();
    let line = |it: &&str| cut(it, LINE_CHARS_MAX);
    if lines.len() <= first + last + 1 {
        return lines.iter().map(line).collect::<Vec<_>>().join("\n");
    }
    let left_out = format!("… {} lines …", lines.len() - first - last);
    let (begin, end) = (&lines[..first], &lines[lines.len() - last..]);
    let shown = begin.iter().map(line).chain([left_out]).chain(end.iter().map(line));
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_in_it() {
        assert_eq!(fenced("", "a\n"), "```\na\n```");
        assert_eq!(fenced("diff", "+```\n+````x"), "`````diff\n+```\n+````x\n`````");
    }

    #[test]
    fn a_name_stays_in_its_line_and_in_its_code() {
        assert_eq!(code("`cargo\n test`"), "`cargo test`");
        assert_eq!(code("a `b` c"), "``a `b` c``");
        assert_eq!(code("`a` and `b`"), "`` `a` and `b` ``");
        assert_eq!(words("end_turn, _a_ <b> *c* \u{1b}[1md"), "end_turn, \\_a\\_ \\<b> \\*c\\* d");
    }

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end() {
        let text: Vec<String> = (1..=9).map(|it| it.to_string()).collect();
        assert_eq!(shortened(&text.join("\n"), 3, 2), "1\n2\n3\n… 4 lines …\n8\n9");
        assert_eq!(shortened("1\n2\n3\n", 1, 1), "1\n2\n3");
        assert_eq!(shortened(&"x".repeat(500), 1, 1).chars().count(), LINE_CHARS_MAX + 1);
    }

    #[test]
    fn every_end_of_a_line_is_one() {
        assert_eq!(plain("a\r\nb\rc\u{1b}[31md\u{85}"), "a\nb\ncd\u{fffd}");
    }
}

//! Markdown elements of a transcript. Foreign text cannot break out of its element.

/// The length of a name or a command in a line.
const NAME_CHARS_MAX: usize = 200;
const LINE_CHARS_MAX: usize = 400;

/// Normalizes foreign text: newlines at all line ends, no colors, no control characters.
pub(super) fn plain_text(text: &str) -> String {
    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
    let plain = anstream::adapter::strip_str(&lines).to_string();
    plain.replace(|it: char| it.is_control() && it != '\n' && it != '\t', "\u{fffd}")
}

/// The same, joined and truncated to one line.
pub(super) fn single_line(text: &str) -> String {
    let plain = plain_text(text);
    let parts: Vec<&str> = plain.split_whitespace().collect();
    truncate_line(&parts.join(" "), NAME_CHARS_MAX)
}

fn truncate_line(line: &str, chars_max: usize) -> String {
    match line.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

/// Escapes foreign text for a line of the transcript, so that none of it is Markdown.
pub(super) fn escape_line(text: &str) -> String {
    let line = single_line(text);
    let mut escaped = String::with_capacity(line.len());
    let mut previous = ' ';
    let mut rest = line.chars().peekable();
    while let Some(it) = rest.next() {
        let is_word = |it: &char| it.is_alphanumeric();
        let special = match it {
            '\\' | '`' | '*' | '[' | ']' | '<' | '&' | '~' | '|' | '$' => true,
            '_' => !(is_word(&previous) && rest.peek().is_some_and(is_word)),
            _ => false,
        };
        if special {
            escaped.push('\\');
        }
        escaped.push(it);
        previous = it;
    }
    escaped
}

/// A name or a command as inline code. Some agents add backticks themselves.
pub(super) fn inline_code(text: &str) -> String {
    let line = single_line(text);
    let inner = line.strip_prefix('`').and_then(|it| it.strip_suffix('`'));
    let line = inner.filter(|it| !it.is_empty() && !it.contains('`')).unwrap_or(&line);
    let ticks = "`".repeat(longest_run(line) + 1);
    let pad = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{line}{pad}{ticks}")
}

/// A code block whose fence is longer than any fence in it.
pub(super) fn fence_block(info: &str, text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}{info}\n{}\n{fence}", text.trim_end_matches('\n'))
}

fn longest_run(text: &str) -> usize {
    text.split(|it| it != '`').map(str::len).max().unwrap_or(0)
}

/// Adds a prefix to each line.
pub(super) fn prefix_lines(prefix: &str, text: &str) -> String {
    let line = |it: &str| match it {
        "" => prefix.trim_end().to_owned(),
        _ => format!("{prefix}{it}"),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// The first and last lines of a text, each truncated, and the number of lines left out.
pub(super) fn shorten_lines(text: &str, first: usize, last: usize) -> String {
    let lines: Vec<&str> = text.trim_end_matches('\n').split('\n').collect();
    let line = |it: &&str| truncate_line(it, LINE_CHARS_MAX);
    if lines.len() <= first + last + 1 {
        return lines.iter().map(line).collect::<Vec<_>>().join("\n");
    }
    let left_out = format!("… {} lines …", lines.len() - first - last);
    let (begin, end) = (&lines[..first], &lines[lines.len() - last..]);
    let kept = begin.iter().map(line).chain([left_out]).chain(end.iter().map(line));
    kept.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fence_is_longer_than_any_fence_in_its_text() {
        assert_eq!(fence_block("", "a\n"), "```\na\n```");
        assert_eq!(fence_block("diff", "+```\n+````x"), "`````diff\n+```\n+````x\n`````");
    }

    #[test]
    fn name_stays_on_one_line_and_inside_its_code() {
        assert_eq!(inline_code("`cargo\n test`"), "`cargo test`");
        assert_eq!(inline_code("a `b` c"), "``a `b` c``");
        assert_eq!(inline_code("`a` and `b`"), "`` `a` and `b` ``");
        assert_eq!(
            escape_line("end_turn, _a_ <b> *c* \u{1b}[1md"),
            "end_turn, \\_a\\_ \\<b> \\*c\\* d"
        );
    }

    #[test]
    fn long_text_keeps_its_first_and_last_lines() {
        let text: Vec<String> = (1..=9).map(|it| it.to_string()).collect();
        assert_eq!(shorten_lines(&text.join("\n"), 3, 2), "1\n2\n3\n… 4 lines …\n8\n9");
        assert_eq!(shorten_lines("1\n2\n3\n", 1, 1), "1\n2\n3");
        assert_eq!(shorten_lines(&"x".repeat(500), 1, 1).chars().count(), LINE_CHARS_MAX + 1);
    }

    #[test]
    fn every_line_end_becomes_a_newline() {
        assert_eq!(plain_text("a\r\nb\rc\u{1b}[31md\u{85}"), "a\nb\ncd\u{fffd}");
    }
}

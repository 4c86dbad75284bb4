//! Sanitizes foreign Markdown for a transcript. An open fence would swallow everything after it, so it is
//! closed. HTML is displayed as text: a comment would hide the rest of the page, and the `<String>` of a
//! `Vec` would be invisible. No image is loaded and no link runs a script. Code stays unchanged.
//!
//! Lines are parsed as `CommonMark` defines, as far as that decides what is code.

use super::html::escape_active_parts;

/// Sanitizes a text that is placed between blank lines. The result starts at the margin, so that it does
/// not continue a list before it.
pub(super) fn sanitize_markdown(text: &str) -> String {
    let mut blocks = BlockParser::default();
    let (mut sanitized, mut paragraph) = (String::with_capacity(text.len()), String::new());
    for line in text.trim().lines() {
        let expanded = expand_tabs(line);
        let part = blocks.parse_line(&expanded);
        if part != LinePart::ParagraphContinuation {
            sanitized.push_str(&escape_active_parts(&paragraph));
            paragraph.clear();
        }
        let is_code = matches!(part, LinePart::Code | LinePart::Fenced);
        let target = if is_code { &mut sanitized } else { &mut paragraph };
        // After a prefix of the transcript a tab is narrower; in a top-level fence it is part of the
        // code.
        let keeps_tabs = part == LinePart::Fenced && blocks.containers.is_empty();
        target.push_str(if keeps_tabs { line } else { &expanded });
        target.push('\n');
    }
    sanitized.push_str(&escape_active_parts(&paragraph));
    sanitized.truncate(sanitized.trim_end().len());
    if let Some(end) = blocks.closing_fence() {
        sanitized.push('\n');
        sanitized.push_str(&end);
    }
    sanitized
}

/// Whether no fence is open at the end.
#[cfg(test)]
pub(super) fn is_closed(text: &str) -> bool {
    let mut blocks = BlockParser::default();
    for line in text.lines() {
        blocks.parse_line(&expand_tabs(line));
    }
    blocks.closing_fence().is_none()
}

/// What a line is part of.
#[derive(Clone, Copy, PartialEq)]
enum LinePart {
    /// The inside or the end of a fence.
    Fenced,
    /// Other code, or the start of a fence.
    Code,
    /// The first line of a paragraph, or any other text.
    ParagraphStart,
    ParagraphContinuation,
}

/// Parses lines and tracks the open blocks.
#[derive(Default)]
struct BlockParser {
    containers: Vec<BlockContainer>,
    leaf: LeafBlock,
}

enum BlockContainer {
    Quote,
    /// A list item: lines with at least this indent belong to it.
    Item {
        width: usize,
    },
}

impl BlockContainer {
    fn contains_indent_of(&self, line: &str) -> bool {
        matches!(self, BlockContainer::Item { width } if *width <= indent(line))
    }
}

#[derive(Default, Clone, Copy, PartialEq)]
enum LeafBlock {
    /// A block that ends with its line.
    #[default]
    None,
    /// A list item without text so far.
    EmptyItem,
    Paragraph,
    IndentedCode,
    Fence {
        mark: char,
        length: usize,
    },
}

/// What the previous line was part of.
#[derive(Clone, Copy, PartialEq)]
enum PreviousLine {
    Paragraph,
    /// A paragraph in a quote or an item that this line does not continue. The paragraph may continue.
    NestedParagraph,
    Other,
}

impl BlockParser {
    /// The end of an open fence. A fence in a quote or an item ends with its container.
    fn closing_fence(&self) -> Option<String> {
        match self.leaf {
            LeafBlock::Fence { mark, length } if self.containers.is_empty() => {
                Some(mark.to_string().repeat(length))
            }
            _ => None,
        }
    }

    fn parse_line(&mut self, line: &str) -> LinePart {
        let (open, mut rest) = self.continued_containers(line);
        let is_all_open = open == self.containers.len();
        if let (true, LeafBlock::Fence { mark, length }) = (is_all_open, self.leaf) {
            if ends_fence(rest, mark, length) {
                self.leaf = LeafBlock::None;
            }
            return LinePart::Fenced;
        }
        if rest.trim().is_empty() {
            self.containers.truncate(open);
            if self.leaf == LeafBlock::EmptyItem && is_all_open {
                // The item continues only if this blank line is indented like its text would be.
                self.containers.pop_if(|it| !it.contains_indent_of(rest));
            }
            self.leaf = LeafBlock::None;
            return LinePart::ParagraphStart;
        }
        let mut previous = match self.leaf {
            LeafBlock::Paragraph if is_all_open => PreviousLine::Paragraph,
            LeafBlock::Paragraph => PreviousLine::NestedParagraph,
            _ => PreviousLine::Other,
        };
        let mut opened = Vec::new();
        while let Some((container, inner)) = open_container(rest, previous) {
            opened.push(container);
            rest = inner;
            previous = PreviousLine::Other;
        }
        self.leaf = parse_leaf(rest, previous);
        if self.leaf == LeafBlock::Paragraph && previous != PreviousLine::Other {
            return LinePart::ParagraphContinuation;
        }
        if rest.trim().is_empty() && matches!(opened.last(), Some(BlockContainer::Item { .. })) {
            self.leaf = LeafBlock::EmptyItem;
        }
        self.containers.truncate(open);
        self.containers.extend(opened);
        match self.leaf {
            LeafBlock::Fence { .. } | LeafBlock::IndentedCode => LinePart::Code,
            _ => LinePart::ParagraphStart,
        }
    }

    /// The number of containers that this line continues, and the rest of the line.
    fn continued_containers<'a>(&self, line: &'a str) -> (usize, &'a str) {
        let mut rest = line;
        for (index, container) in self.containers.iter().enumerate() {
            let inner = match container {
                BlockContainer::Quote => strip_quote(rest),
                BlockContainer::Item { .. } if rest.trim().is_empty() => Some(rest),
                BlockContainer::Item { width } => {
                    container.contains_indent_of(rest).then(|| &rest[*width..])
                }
            };
            match inner {
                Some(inner) => rest = inner,
                None => return (index, rest),
            }
        }
        (self.containers.len(), rest)
    }
}

/// A quote or an item that starts here, and the text in it.
fn open_container(line: &str, previous: PreviousLine) -> Option<(BlockContainer, &str)> {
    if let Some(inner) = strip_quote(line) {
        return Some((BlockContainer::Quote, inner));
    }
    let (left, trimmed) = (indent(line), line.trim_start());
    if 3 < left || is_rule(trimmed) {
        return None;
    }
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let mark = match trimmed.as_bytes().get(digits)? {
        b'-' | b'+' | b'*' if digits == 0 => 1,
        b'.' | b')' if (1..=9).contains(&digits) => digits + 1,
        _ => return None,
    };
    let inner = &trimmed[mark..];
    let is_empty = inner.trim().is_empty();
    let is_not_first = 0 < digits && trimmed[..digits].parse() != Ok(1);
    let interrupts = previous == PreviousLine::Paragraph;
    if !(is_empty || inner.starts_with(' ')) || interrupts && (is_empty || is_not_first) {
        return None;
    }
    let spaces = indent(inner);
    let spaces = if is_empty || 4 < spaces { 1 } else { spaces };
    let inner = if is_empty { "" } else { &inner[spaces..] };
    Some((BlockContainer::Item { width: left + mark + spaces }, inner))
}

/// The text after the mark of a quote.
fn strip_quote(line: &str) -> Option<&str> {
    let inner = line.trim_start().strip_prefix('>').filter(|_| indent(line) < 4)?;
    Some(inner.strip_prefix(' ').unwrap_or(inner))
}

/// The block that a line starts, without the marks of its containers.
fn parse_leaf(line: &str, previous: PreviousLine) -> LeafBlock {
    let trimmed = line.trim();
    if trimmed.is_empty() {
        return LeafBlock::None;
    }
    if 3 < indent(line) {
        return if previous == PreviousLine::Other {
            LeafBlock::IndentedCode
        } else {
            LeafBlock::Paragraph
        };
    }
    if let Some(fence) = parse_fence(trimmed) {
        return fence;
    }
    let is_underline = |mark: char| trimmed.chars().all(|it| it == mark);
    let is_heading_underline =
        previous == PreviousLine::Paragraph && (is_underline('=') || is_underline('-'));
    if is_heading_underline || is_rule(trimmed) || is_heading(trimmed) {
        LeafBlock::None
    } else {
        LeafBlock::Paragraph
    }
}

fn parse_fence(trimmed: &str) -> Option<LeafBlock> {
    let mark = trimmed.chars().next().filter(|it| matches!(it, '`' | '~'))?;
    let length = trimmed.chars().take_while(|it| *it == mark).count();
    let is_inline = mark == '`' && trimmed[length..].contains('`');
    (2 < length && !is_inline).then_some(LeafBlock::Fence { mark, length })
}

fn ends_fence(line: &str, mark: char, length: usize) -> bool {
    let trimmed = line.trim();
    indent(line) < 4 && length <= trimmed.len() && trimmed.chars().all(|it| it == mark)
}

fn is_rule(trimmed: &str) -> bool {
    let marks: Vec<char> = trimmed.chars().filter(|it| *it != ' ').collect();
    3 <= marks.len()
        && matches!(marks[0], '-' | '_' | '*')
        && marks.iter().all(|it| *it == marks[0])
}

fn is_heading(trimmed: &str) -> bool {
    let level = trimmed.chars().take_while(|it| *it == '#').count();
    (1..=6).contains(&level) && trimmed[level..].chars().next().is_none_or(|it| it == ' ')
}

fn indent(line: &str) -> usize {
    line.bytes().take_while(|it| *it == b' ').count()
}

/// Replaces tabs by spaces up to the next multiple of four columns.
fn expand_tabs(line: &str) -> String {
    let mut expanded = String::with_capacity(line.len());
    let mut column = 0;
    for it in line.chars() {
        let width = if it == '\t' { 4 - column % 4 } else { 1 };
        column += width;
        match it {
            '\t' => expanded.extend(std::iter::repeat_n(' ', width)),
            _ => expanded.push(it),
        }
    }
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_blocks_and_code_stay_unchanged() {
        let texts = [
            "",
            "plain",
            "a\n\n```rust\nlet x: Vec<u8>;\n```\n\nb",
            "- a\n  ```\n  <b>\n  ```\n- b",
            "- a\n  ```\n  left open in an item\n\nb",
            "> ~~~\n> left open in a quote",
            "1. a\n   > ```\n   > b",
            "`Vec<T>` and ``a ` <b>``, 1 < 2, <https://a.b/c>, <me@a.b>",
            "| `Vec<T>` | `b` |\n|---|---|\n| 1 | 2 |",
            "a\n\n    <indented>\n\nb",
            "\\<b>",
            "```not a fence```",
        ];
        for text in texts {
            assert_eq!(sanitize_markdown(text), text);
        }
    }

    #[test]
    fn open_fence_is_closed() {
        let cases = [
            ("```\na", "```\na\n```"),
            ("~~~~ x\n~~~\n```", "~~~~ x\n~~~\n```\n~~~~"),
            ("````\n```\na\n```", "````\n```\na\n```\n````"),
            // The item ends with its indent, so the second fence is a new one.
            ("- a\n  ```\n  b\n```", "- a\n  ```\n  b\n```\n```"),
            ("```\n    ```\na", "```\n    ```\na\n```"),
        ];
        for (text, expected) in cases {
            assert_eq!(sanitize_markdown(text), expected);
            assert_eq!(sanitize_markdown(expected), expected);
        }
    }

    #[test]
    fn text_starts_at_the_margin() {
        assert_eq!(sanitize_markdown("\n\n   ```\n   a\n   ```\n"), "```\n   a\n   ```");
    }
}

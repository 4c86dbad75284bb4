//! Markdown that others wrote, put between ours. What it leaves open would swallow all that follows,
//! so a fence without an end gets one. What looks like HTML is shown, not obeyed: a comment would hide
//! the rest of the page, and the `<String>` of a `Vec` would not be seen. No image is loaded, and no
//! link runs a script. Code stays as it is.
//!
//! Lines are read as `CommonMark` reads them, as far as it decides what is code and what is not.

use super::html::without_active_parts;

/// The text as it may stand between blank lines. It begins at the margin, so that it belongs to no
/// list before it.
pub(super) fn contained(text: &str) -> String {
    let mut blocks = Blocks::default();
    let (mut contained, mut inline) = (String::with_capacity(text.len()), String::new());
    for line in text.trim().lines() {
        let wide = expanded(line);
        let part = blocks.line(&wide);
        if part != Part::Continues {
            contained.push_str(&without_active_parts(&inline));
            inline.clear();
        }
        let is_code = matches!(part, Part::Code | Part::Fenced);
        let to = if is_code { &mut contained } else { &mut inline };
        // Behind a mark of ours a tab is less wide; in a fence of its own it is part of the code.
        let as_it_is = part == Part::Fenced && blocks.containers.is_empty();
        to.push_str(if as_it_is { line } else { &wide });
        to.push('\n');
    }
    contained.push_str(&without_active_parts(&inline));
    contained.truncate(contained.trim_end().len());
    if let Some(end) = blocks.end() {
        contained.push('\n');
        contained.push_str(&end);
    }
    contained
}

/// Whether nothing is open at the end.
#[cfg(test)]
pub(super) fn is_whole(text: &str) -> bool {
    let mut blocks = Blocks::default();
    for line in text.lines() {
        blocks.line(&expanded(line));
    }
    blocks.end().is_none()
}

/// What a line is part of.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    /// Inside a fence, or its end.
    Fenced,
    /// Other code, or the beginning of a fence.
    Code,
    /// Words, the first of their paragraph.
    Begins,
    Continues,
}

/// What is open after a line.
#[derive(Default)]
struct Blocks {
    containers: Vec<Container>,
    leaf: Leaf,
}

enum Container {
    Quote,
    /// What is indented by so much belongs to it.
    Item {
        width: usize,
    },
}

impl Container {
    fn takes(&self, line: &str) -> bool {
        matches!(self, Container::Item { width } if *width <= indent(line))
    }
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Leaf {
    /// Anything that ends with its line.
    #[default]
    None,
    /// An item without a word so far.
    EmptyItem,
    Paragraph,
    IndentedCode,
    Fence {
        mark: char,
        length: usize,
    },
}

/// What the line before was part of.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    Paragraph,
    /// In a quote or an item that this line does not go on with; its paragraph may.
    ParagraphInside,
    Other,
}

impl Blocks {
    /// What ends a fence that is open; one in a quote or an item ends with that.
    fn end(&self) -> Option<String> {
        match self.leaf {
            Leaf::Fence { mark, length } if self.containers.is_empty() => {
                Some(mark.to_string().repeat(length))
            }
            _ => None,
        }
    }

    fn line(&mut self, line: &str) -> Part {
        let (open, mut rest) = self.still_open(line);
        let all = open == self.containers.len();
        if let (true, Leaf::Fence { mark, length }) = (all, self.leaf) {
            if ends_fence(rest, mark, length) {
                self.leaf = Leaf::None;
            }
            return Part::Fenced;
        }
        if rest.trim().is_empty() {
            self.containers.truncate(open);
            if self.leaf == Leaf::EmptyItem && all {
                // It goes on if even this line is indented as its words would be.
                self.containers.pop_if(|it| !it.takes(rest));
            }
            self.leaf = Leaf::None;
            return Part::Begins;
        }
        let mut before = match self.leaf {
            Leaf::Paragraph if all => Before::Paragraph,
            Leaf::Paragraph => Before::ParagraphInside,
            _ => Before::Other,
        };
        let mut fresh = Vec::new();
        while let Some((container, behind)) = container(rest, before) {
            fresh.push(container);
            rest = behind;
            before = Before::Other;
        }
        self.leaf = leaf(rest, before);
        if self.leaf == Leaf::Paragraph && before != Before::Other {
            return Part::Continues;
        }
        if rest.trim().is_empty() && matches!(fresh.last(), Some(Container::Item { .. })) {
            self.leaf = Leaf::EmptyItem;
        }
        self.containers.truncate(open);
        self.containers.extend(fresh);
        match self.leaf {
            Leaf::Fence { .. } | Leaf::IndentedCode => Part::Code,
            _ => Part::Begins,
        }
    }

    /// How many of the containers go on with this line, and what they leave of it.
    fn still_open<'a>(&self, line: &'a str) -> (usize, &'a str) {
        let mut rest = line;
        for (index, container) in self.containers.iter().enumerate() {
            let behind = match container {
                Container::Quote => quote(rest),
                Container::Item { .. } if rest.trim().is_empty() => Some(rest),
                Container::Item { width } => container.takes(rest).then(|| &rest[*width..]),
            };
            match behind {
                Some(behind) => rest = behind,
                None => return (index, rest),
            }
        }
        (self.containers.len(), rest)
    }
}

/// A quote or an item that begins here, and what stands in it.
fn container(line: &str, before: Before) -> Option<(Container, &str)> {
    if let Some(behind) = quote(line) {
        return Some((Container::Quote, behind));
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
    let behind = &trimmed[mark..];
    let empty = behind.trim().is_empty();
    let not_first = 0 < digits && trimmed[..digits].parse() != Ok(1);
    let interrupts = before == Before::Paragraph;
    if !(empty || behind.starts_with(' ')) || interrupts && (empty || not_first) {
        return None;
    }
    let spaces = indent(behind);
    let spaces = if empty || 4 < spaces { 1 } else { spaces };
    let behind = if empty { "" } else { &behind[spaces..] };
    Some((Container::Item { width: left + mark + spaces }, behind))
}

/// What stands behind the mark of a quote.
fn quote(line: &str) -> Option<&str> {
    let behind = line.trim_start().strip_prefix('>').filter(|_| indent(line) < 4)?;
    Some(behind.strip_prefix(' ').unwrap_or(behind))
}

/// What a line begins, without the marks of its containers.
fn leaf(line: &str, before: Before) -> Leaf {
    let trimmed = line.trim();
    if trimmed.is_empty() {
        return Leaf::None;
    }
    if 3 < indent(line) {
        return if before == Before::Other { Leaf::IndentedCode } else { Leaf::Paragraph };
    }
    if let Some(fence) = fence(trimmed) {
        return fence;
    }
    let is_underline = |mark: char| trimmed.chars().all(|it| it == mark);
    let underline = before == Before::Paragraph && (is_underline('=') || is_underline('-'));
    if underline || is_rule(trimmed) || is_heading(trimmed) { Leaf::None } else { Leaf::Paragraph }
}

fn fence(trimmed: &str) -> Option<Leaf> {
    let mark = trimmed.chars().next().filter(|it| matches!(it, '`' | '~'))?;
    let length = trimmed.chars().take_while(|it| *it == mark).count();
    let inline = mark == '`' && trimmed[length..].contains('`');
    (2 < length && !inline).then_some(Leaf::Fence { mark, length })
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

/// With spaces for tabs, up to columns that are a multiple of four.
fn expanded(line: &str) -> String {
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
    fn what_is_whole_stays_as_it_is() {
        let wholes = [
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
        for text in wholes {
            assert_eq!(contained(text), text);
        }
    }

    #[test]
    fn a_fence_without_an_end_gets_one() {
        let cases = [
            ("```\na", "```\na\n```"),
            ("~~~~ x\n~~~\n```", "~~~~ x\n~~~\n```\n~~~~"),
            ("````\n```\na\n```", "````\n```\na\n```\n````"),
            // The item ends with its indent, and the second fence is another.
            ("- a\n  ```\n  b\n```", "- a\n  ```\n  b\n```\n```"),
            ("```\n    ```\na", "```\n    ```\na\n```"),
        ];
        for (text, whole) in cases {
            assert_eq!(contained(text), whole);
            assert_eq!(contained(whole), whole);
        }
    }

    #[test]
    fn it_begins_at_the_margin() {
        assert_eq!(contained("\n\n   ```\n   a\n   ```\n"), "```\n   a\n   ```");
    }
}

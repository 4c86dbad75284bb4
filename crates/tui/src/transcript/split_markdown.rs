//! Divides long Markdown into blocks that are rendered one by one, so that a chunk of a growing message costs the same
//! for a short and a long message.

use std::ops::Range;

/// A block is at least this long, unless the text ends. In bytes.
const BLOCK_BYTES_MIN: usize = 1000;
/// Code is divided at this length, even if the rest of the fence follows.
const CODE_BYTES_MAX: usize = 6000;
/// A line of text is divided at this length, between words.
const LINE_BYTES_MAX: usize = 4000;

/// A part of a Markdown text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct MarkdownBlock {
    pub(crate) range: Range<usize>,
    /// The opening line of the code block in which this part begins; empty outside of code.
    pub(crate) open_fence: String,
    /// It continues the line in which the part before ends.
    pub(crate) is_continued_line: bool,
    /// The code block in which it ends is not closed in this part.
    pub(crate) ends_in_code: bool,
}

/// Divides a text between blocks, at blank lines outside of code, from where `first` begins. When a text grows, only the
/// last block changes.
pub(crate) fn split_markdown(text: &str, first: MarkdownBlock) -> Vec<MarkdownBlock> {
    let mut blocks = Vec::new();
    let mut block = first;
    let mut fence = block.open_fence.clone();
    let mut position = block.range.start;
    while position < text.len() {
        let end = text[position..].find('\n').map_or(text.len(), |it| position + it + 1);
        let line = &text[position..end];
        let was_code = !fence.is_empty();
        update_fence(&mut fence, line);
        while fence.is_empty()
            && !was_code
            && let Some(cut) = find_cut(text, block.range.start, position..end)
        {
            block.range.end = cut;
            blocks.push(std::mem::take(&mut block));
            block.range = cut..cut;
            block.is_continued_line = true;
            position = cut;
        }
        let length = end - block.range.start;
        let is_blank = line.trim().is_empty();
        let is_end = if fence.is_empty() {
            let is_break = was_code || (is_blank && !continues_block(&text[end..]));
            length >= BLOCK_BYTES_MIN && is_break
        } else {
            length >= CODE_BYTES_MAX
        };
        // The last line may not be complete yet.
        if is_end && end < text.len() {
            block.range.end = end;
            block.ends_in_code = !fence.is_empty();
            blocks.push(std::mem::take(&mut block));
            block.range = end..end;
            block.open_fence.clone_from(&fence);
        }
        position = end;
    }
    block.range.end = text.len();
    block.ends_in_code = !fence.is_empty();
    blocks.push(block);
    blocks
}

/// Where a line that is too long for its block is divided: before a word, so that the rest is text, too.
fn find_cut(text: &str, block_start: usize, line: Range<usize>) -> Option<usize> {
    let from = text.floor_char_boundary((block_start + LINE_BYTES_MAX).max(line.start));
    // Tables and quotes would end there.
    if line.end <= from || text[line.clone()].starts_with(['|', '>']) {
        return None;
    }
    let is_word = |it: &usize| text[*it..line.end].starts_with(char::is_alphabetic);
    text[from..line.end].match_indices(' ').map(|(index, _)| from + index + 1).find(is_word)
}

/// The text of a block as Markdown of its own: code that was divided is opened and closed. Code that is not
/// highlighted loses its language.
pub(crate) fn block_text(text: &str, block: &MarkdownBlock, is_highlighted: bool) -> String {
    let part = &text[block.range.clone()];
    let mark = fence_mark(&block.open_fence);
    if mark.is_empty() {
        let is_plain = block.ends_in_code && !is_highlighted;
        return if is_plain { without_last_language(part) } else { part.to_owned() };
    }
    let open = if is_highlighted { &*block.open_fence } else { mark };
    let newline = if part.ends_with('\n') { "" } else { "\n" };
    let close = if block.ends_in_code { mark } else { "" };
    format!("{open}\n{part}{newline}{close}")
}

/// Removes the language of the last fence: code that still grows is not highlighted with each chunk.
fn without_last_language(text: &str) -> String {
    let mut fence = String::new();
    let mut last = 0..0;
    let mut position = 0;
    for line in text.split_inclusive('\n') {
        let was_open = !fence.is_empty();
        update_fence(&mut fence, line);
        if !was_open && !fence.is_empty() {
            let mark = position + line.find(['`', '~']).unwrap_or(0) + fence_mark(&fence).len();
            last = mark..position + line.trim_end().len();
        }
        position += line.len();
    }
    let mut text = text.to_owned();
    text.replace_range(last.start..last.end.max(last.start), "");
    text
}

/// Opens or closes a code block.
fn update_fence(fence: &mut String, line: &str) {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let content = line.trim();
    let mark = fence_mark(content);
    if indent > 3 || mark.len() < 3 {
        return;
    }
    if fence.is_empty() {
        // Backticks in the same line are inline code.
        if mark.starts_with('~') || !content[mark.len()..].contains('`') {
            content.clone_into(fence);
        }
    } else if content == mark && mark.starts_with(fence_mark(fence)) {
        fence.clear();
    }
}

/// The backticks or tildes at the beginning of a line.
fn fence_mark(line: &str) -> &str {
    let Some(mark) = line.chars().next().filter(|it| ['`', '~'].contains(it)) else { return "" };
    &line[..line.len() - line.trim_start_matches(mark).len()]
}

/// Whether the next line may belong to the block before the blank line: it is indented, or an item of a list.
fn continues_block(rest: &str) -> bool {
    let is_item = |it: &str| {
        let digits = it.len() - it.trim_start_matches(|it: char| it.is_ascii_digit()).len();
        let mark = &it[digits..];
        let mark = mark.starts_with(['-', '*', '+']) && digits == 0
            || mark.starts_with(['.', ')']) && digits > 0;
        mark && it[digits + 1..].starts_with([' ', '\t', '\n'])
    };
    rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r']) || is_item(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<MarkdownBlock> {
        split_markdown(text, MarkdownBlock::default())
    }

    fn texts(text: &str) -> Vec<String> {
        split(text).iter().map(|it| block_text(text, it, true)).collect()
    }

    #[test]
    fn long_text_is_divided_between_paragraphs_and_the_blocks_stay_when_it_grows() {
        let text = format!("{}\n\n", "word ".repeat(400)).repeat(20);
        let blocks = split(&text);
        assert_eq!(blocks.len(), 20);
        assert_eq!(texts(&text).concat(), text);
        let longer = format!("{text}more");
        let last = blocks.len() - 1;
        assert_eq!(split(&longer)[..last], blocks[..last]);
        let from_last = split_markdown(&longer, blocks[last].clone());
        assert_eq!([&blocks[..last], &from_last].concat(), split(&longer));
    }

    #[test]
    fn long_line_is_divided_between_words_and_the_blocks_stay_when_it_grows() {
        let text = "word 12 ".repeat(4000);
        let blocks = split(&text);
        assert_eq!(texts(&text).concat(), text);
        assert!(blocks.iter().all(|it| it.range.len() < LINE_BYTES_MAX + 10), "{blocks:?}");
        assert!(blocks[1..].iter().all(|it| it.is_continued_line));
        for length in (0..text.len()).step_by(777) {
            let known = split(&text[..length]);
            let last = known.len() - 1;
            assert_eq!(blocks[..last], known[..last]);
            let grown = split_markdown(&text, known[last].clone());
            assert_eq!([&known[..last], &grown].concat(), blocks);
        }
        let table = format!("|{}|\n", "cell ".repeat(4000));
        assert_eq!(split(&table).len(), 1);
    }

    #[test]
    fn lists_and_short_code_stay_whole() {
        let list = "1. item\n\n   more\n\n".repeat(200);
        assert_eq!(split(&list).len(), 1);
        let code = format!("```rust\n{}```\n\n", "line\n\n".repeat(400));
        let text = format!("{code}after\n");
        assert_eq!(
            texts(&text),
            [code.trim_end_matches('\n').to_owned() + "\n", "\nafter\n".to_owned()]
        );
    }

    #[test]
    fn long_code_is_divided_and_each_part_is_code() {
        let code = format!("```rust\n{}```\n", "let a = 1;\n".repeat(2000));
        let texts = texts(&code);
        assert!(texts.len() > 3);
        assert!(texts.iter().all(|it| it.starts_with("```rust\n")));
        let lines = texts.iter().flat_map(|it| it.lines()).filter(|it| !it.starts_with('`'));
        assert_eq!(lines.count(), 2000);
    }

    #[test]
    fn code_that_grows_has_no_language() {
        let text = "Look:\n```rust\nlet a";
        let block = &split(text)[0];
        assert_eq!(block_text(text, block, false), "Look:\n```\nlet a");
        assert_eq!(block_text(text, block, true), text);
        let closed = "~~~ py\na\n~~~\n`x` ```y```\n";
        assert!(!split(closed)[0].ends_in_code);
    }
}

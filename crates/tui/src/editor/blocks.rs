//! Long pasted texts, each shown as one character such as `[pasted 120 lines]`.

use crate::text::{cell_width, sanitize_line, truncate_cells};
use std::borrow::Cow;

/// The long pasted texts of an input field. In its text, a character of a private Unicode plane stands for each.
#[derive(Debug, Default)]
pub(crate) struct PastedBlocks(Vec<String>);

const FIRST_CHAR: u32 = 0xF_0000;
const BLOCKS_MAX: u32 = 0xFFFD;
/// A text with more lines or bytes is shown as a block: it would fill the field.
const SHOWN_LINES_MAX: usize = 8;
const SHOWN_BYTES_MAX: usize = 2_000;
/// Tabs are kept in the text, and drawn as spaces.
const TAB: &str = "    ";

impl PastedBlocks {
    /// The text to insert for a pasted text: itself, or the character of a new block.
    pub(crate) fn insert(&mut self, pasted: &str) -> String {
        let is_long = pasted.len() > SHOWN_BYTES_MAX || pasted.lines().count() > SHOWN_LINES_MAX;
        let next = u32::try_from(self.0.len()).ok().filter(|it| is_long && *it < BLOCKS_MAX);
        match next.and_then(|it| char::from_u32(FIRST_CHAR + it)) {
            Some(char) => {
                self.0.push(pasted.to_owned());
                char.to_string()
            }
            None => pasted.to_owned(),
        }
    }

    /// The text with all blocks in full.
    pub(crate) fn expand(&self, text: &str) -> String {
        let mut expanded = String::with_capacity(text.len());
        for char in text.chars() {
            match self.find(char) {
                Some(block) => expanded.push_str(block),
                None => expanded.push(char),
            }
        }
        expanded
    }

    /// What is drawn for a cluster, in at most `width` cells.
    pub(crate) fn display<'a>(&self, cluster: &'a str, width: usize) -> Cow<'a, str> {
        if cluster == "\t" {
            return Cow::Borrowed(&TAB[..width.min(TAB.len())]);
        }
        let shown = match cluster.chars().next().and_then(|it| self.find(it)) {
            Some(block) => Cow::Owned(describe_block(block)),
            None => sanitize_line(cluster),
        };
        if cell_width(&shown) <= width { shown } else { truncate_cells(&shown, width).into() }
    }

    fn find(&self, char: char) -> Option<&str> {
        let index = u32::from(char).checked_sub(FIRST_CHAR)?;
        self.0.get(usize::try_from(index).ok()?).map(String::as_str)
    }
}

/// Text without control characters, and without characters that stand for blocks. Line breaks and tabs are kept.
pub(crate) fn clean_input(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    text.chars().filter(|it| !is_refused(*it)).collect()
}

fn is_refused(char: char) -> bool {
    let is_private = (FIRST_CHAR..=FIRST_CHAR + BLOCKS_MAX).contains(&u32::from(char));
    is_private || (char.is_control() && !matches!(char, '\n' | '\t'))
}

fn describe_block(block: &str) -> String {
    match block.lines().count() {
        0 | 1 => format!("[pasted {} characters]", block.chars().count()),
        lines => format!("[pasted {lines} lines]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_shown_as_a_block_and_expanded() {
        let mut blocks = PastedBlocks::default();
        assert_eq!(blocks.insert("short\ntext"), "short\ntext");
        let long = "line\n".repeat(120);
        let inserted = blocks.insert(&long);
        assert_eq!(inserted.chars().count(), 1);
        assert_eq!(blocks.display(&inserted, 80), "[pasted 120 lines]");
        assert_eq!(blocks.display(&inserted, 8), "[pasted…");
        assert_eq!(blocks.expand(&format!("a{inserted}b")), format!("a{long}b"));
        let wide = blocks.insert(&"x".repeat(5_000));
        assert_eq!(blocks.display(&wide, 80), "[pasted 5000 characters]");
    }

    #[test]
    fn input_has_no_control_characters_and_no_forged_blocks() {
        assert_eq!(clean_input("a\r\nb\rc\u{1b}[2J\u{F0000}\td"), "a\nb\nc[2J\td");
    }
}

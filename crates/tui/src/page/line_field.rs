//! A field for one line of text: a filter, a name, a directory, a value of a form.

use crate::text::{cell_width, sanitize_line};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation as _;

/// Longer text is not accepted.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// The text and the cursor. Keys are those of a shell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LineField {
    text: String,
    /// A byte position between two clusters.
    cursor: usize,
}

impl LineField {
    /// The cursor is after the text.
    pub(crate) fn new(text: &str) -> LineField {
        let mut field = LineField::default();
        field.insert(text);
        field
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Inserts typed or pasted text at the cursor; line breaks become spaces.
    pub(crate) fn insert(&mut self, text: &str) {
        let text = sanitize_line(text);
        if self.text.len() + text.len() <= TEXT_BYTES_MAX {
            self.text.insert_str(self.cursor, &text);
            self.cursor += text.len();
        }
    }

    /// Changes the text or moves the cursor. Returns whether the key has a meaning here.
    pub(crate) fn on_key(&mut self, key: &KeyEvent) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('a') if is_control => self.cursor = 0,
            KeyCode::Char('e') if is_control => self.cursor = self.text.len(),
            KeyCode::Char('u') if is_control => self.remove(0, self.cursor),
            KeyCode::Char('k') if is_control => self.remove(self.cursor, self.text.len()),
            KeyCode::Char('w') if is_control => self.remove(self.word_start(), self.cursor),
            KeyCode::Char(it) if !is_control && !is_alt => {
                self.insert(it.encode_utf8(&mut [0; 4]));
            }
            KeyCode::Backspace if is_alt || is_control => {
                self.remove(self.word_start(), self.cursor);
            }
            KeyCode::Backspace => self.remove(self.previous_cluster(), self.cursor),
            KeyCode::Delete => self.remove(self.cursor, self.next_cluster()),
            KeyCode::Left => self.cursor = self.previous_cluster(),
            KeyCode::Right => self.cursor = self.next_cluster(),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => return false,
        }
        true
    }

    /// The part of the text that is shown in `width` cells, and the cell of the cursor in it.
    pub(crate) fn visible_part(&self, width: usize) -> (String, usize) {
        // The cursor needs a cell after the text.
        let room = width.saturating_sub(1);
        let mut start = self.cursor;
        let mut cells = 0;
        for (index, cluster) in self.text[..self.cursor].grapheme_indices(true).rev() {
            cells += cell_width(cluster);
            if room < cells {
                break;
            }
            start = index;
        }
        let column = cell_width(&self.text[start..self.cursor]);
        let mut shown = String::new();
        let mut cells = 0;
        for cluster in self.text[start..].graphemes(true) {
            cells += cell_width(cluster);
            if width < cells {
                break;
            }
            shown.push_str(cluster);
        }
        (shown, column)
    }

    fn remove(&mut self, start: usize, end: usize) {
        self.text.replace_range(start..end, "");
        self.cursor = start;
    }

    fn previous_cluster(&self) -> usize {
        self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |it| it.0)
    }

    fn next_cluster(&self) -> usize {
        let next = self.text[self.cursor..].graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end_matches([' ', '/']);
        before.rfind([' ', '/']).map_or(0, |it| it + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(field: &mut LineField, code: KeyCode, modifiers: KeyModifiers) {
        assert!(field.on_key(&KeyEvent::new(code, modifiers)));
    }

    #[test]
    fn text_is_edited_by_clusters() {
        let mut field = LineField::new("ae\u{301}漢");
        press(&mut field, KeyCode::Backspace, KeyModifiers::NONE);
        press(&mut field, KeyCode::Backspace, KeyModifiers::NONE);
        assert_eq!(field.text(), "a");
        press(&mut field, KeyCode::Left, KeyModifiers::NONE);
        press(&mut field, KeyCode::Char('c'), KeyModifiers::SHIFT);
        assert_eq!(field.text(), "ca");
        press(&mut field, KeyCode::Delete, KeyModifiers::NONE);
        press(&mut field, KeyCode::Delete, KeyModifiers::NONE);
        assert_eq!(field.text(), "c");
    }

    #[test]
    fn keys_of_a_shell_remove_words_and_ends() {
        let mut field = LineField::new("~/src/parser/");
        press(&mut field, KeyCode::Char('w'), KeyModifiers::CONTROL);
        assert_eq!(field.text(), "~/src/");
        press(&mut field, KeyCode::Home, KeyModifiers::NONE);
        press(&mut field, KeyCode::Char('k'), KeyModifiers::CONTROL);
        assert_eq!(field.text(), "");
    }

    #[test]
    fn paste_is_one_line_without_controls() {
        assert_eq!(LineField::new("one\ntwo\u{1b}[2J").text(), "one two");
    }

    #[test]
    fn cursor_is_always_visible() {
        let mut field = LineField::new("0123456789");
        assert_eq!(field.visible_part(5), ("6789".into(), 4));
        press(&mut field, KeyCode::Home, KeyModifiers::NONE);
        assert_eq!(field.visible_part(5), ("01234".into(), 0));
        let wide = LineField::new("漢字漢字");
        assert_eq!(wide.visible_part(4), ("字".into(), 2));
        assert_eq!(wide.visible_part(0), (String::new(), 0));
    }
}

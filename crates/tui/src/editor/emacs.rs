//! Editing with the keys of emacs and of shells. They also apply while vi inserts.

use super::{EditorReply, TextEditor, text_editor::LastCommand};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::ops::Range;

impl TextEditor {
    pub(super) fn on_emacs_key(&mut self, key: &KeyEvent) -> EditorReply {
        if std::mem::take(&mut self.has_prefix) {
            return self.on_prefixed_key(key);
        }
        let goal = self.goal_column();
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let is_alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char(char) if !is_control && !is_alt => return self.type_char(char),
            KeyCode::Esc if self.vi.is_some() => {
                self.start_command();
                return self.end_insertion();
            }
            _ => {}
        }
        let last = self.start_command();
        match key.code {
            KeyCode::Char(char) if is_control && !is_alt => self.on_control_key(char, &last, goal),
            KeyCode::Char(char) if is_alt => self.on_alt_key(char, last),
            KeyCode::Backspace if is_alt || is_control => {
                let at = self.buffer.cursor();
                self.kill(self.buffer.emacs_word_start(at)..at, &last)
            }
            KeyCode::Delete if is_alt || is_control => self.kill_word(&last),
            KeyCode::Backspace => self.delete_backward(),
            KeyCode::Delete => self.delete_forward(),
            KeyCode::Left if is_control || is_alt => {
                self.move_to(self.buffer.emacs_word_start(self.buffer.cursor()))
            }
            KeyCode::Right if is_control || is_alt => {
                self.move_to(self.buffer.emacs_word_end(self.buffer.cursor()))
            }
            KeyCode::Left => self.move_to(self.buffer.previous_boundary(self.buffer.cursor())),
            KeyCode::Right => self.move_to(self.buffer.next_boundary(self.buffer.cursor())),
            KeyCode::Up => self.move_row(false, goal),
            KeyCode::Down => self.move_row(true, goal),
            KeyCode::Home => self.move_to(self.line().start),
            KeyCode::End => self.move_to(self.line().end),
            _ => EditorReply::Ignored,
        }
    }

    /// Terminals report Ctrl-_ and Ctrl-/ as Ctrl-7.
    fn on_control_key(
        &mut self,
        char: char,
        last: &LastCommand,
        goal: Option<usize>,
    ) -> EditorReply {
        let at = self.buffer.cursor();
        match char.to_ascii_lowercase() {
            'a' => self.move_to(self.line().start),
            'e' => self.move_to(self.line().end),
            'b' => self.move_to(self.buffer.previous_boundary(at)),
            'f' => self.move_to(self.buffer.next_boundary(at)),
            'p' => self.move_row(false, goal),
            'n' => self.move_row(true, goal),
            'd' => self.delete_forward(),
            'h' => self.delete_backward(),
            'w' => self.kill(self.buffer.spaced_word_start(at)..at, last),
            'u' => {
                let start = self.line().start;
                self.kill(start..at, last)
            }
            'k' => self.kill_line_end(last),
            'y' => self.yank(),
            't' => self.transpose(),
            'x' => {
                self.has_prefix = true;
                EditorReply::Moved
            }
            '_' | '7' | '/' => self.undo(),
            _ => EditorReply::Ignored,
        }
    }

    fn on_alt_key(&mut self, char: char, last: LastCommand) -> EditorReply {
        let at = self.buffer.cursor();
        match char {
            'b' => self.move_to(self.buffer.emacs_word_start(at)),
            'f' => self.move_to(self.buffer.emacs_word_end(at)),
            'd' => self.kill_word(&last),
            'y' => match last {
                LastCommand::Yanked(range) => self.yank_earlier(range),
                _ => EditorReply::Ignored,
            },
            '<' => self.move_to(0),
            '>' => self.move_to(self.buffer.text().len()),
            '_' => self.redo(),
            _ => EditorReply::Ignored,
        }
    }

    /// The second key after Ctrl-X.
    fn on_prefixed_key(&mut self, key: &KeyEvent) -> EditorReply {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('e') if is_control => EditorReply::EditExternally,
            KeyCode::Char('u') => {
                self.start_command();
                self.undo()
            }
            KeyCode::Char('r') if is_control => {
                self.start_command();
                self.redo()
            }
            _ => EditorReply::Moved,
        }
    }

    /// Typed characters are undone by words.
    fn type_char(&mut self, char: char) -> EditorReply {
        let text = super::blocks::clean_input(char.encode_utf8(&mut [0; 4]));
        if text.is_empty() {
            return EditorReply::Ignored;
        }
        let at = self.buffer.cursor();
        let continues = self.last == LastCommand::Typed
            && self.log.last().is_some_and(|it| {
                let starts_word =
                    it.inserted.ends_with(char::is_whitespace) && !char.is_whitespace();
                it.cursor_after == at && !starts_word
            });
        if !continues {
            self.start_command();
        }
        self.insert(&text);
        self.last = LastCommand::Typed;
        EditorReply::Changed
    }

    fn delete_backward(&mut self) -> EditorReply {
        let at = self.buffer.cursor();
        self.edit(self.buffer.previous_boundary(at)..at, "");
        EditorReply::Changed
    }

    fn delete_forward(&mut self) -> EditorReply {
        let at = self.buffer.cursor();
        self.edit(at..self.buffer.next_boundary(at), "");
        EditorReply::Changed
    }

    fn kill_word(&mut self, last: &LastCommand) -> EditorReply {
        let at = self.buffer.cursor();
        self.kill(at..self.buffer.emacs_word_end(at), last)
    }

    /// Deletes to the end of the line, or the line break at the end.
    fn kill_line_end(&mut self, last: &LastCommand) -> EditorReply {
        let at = self.buffer.cursor();
        let end = self.line().end;
        let end = if end == at { self.buffer.next_boundary(at) } else { end };
        self.kill(at..end, last)
    }

    fn yank(&mut self) -> EditorReply {
        let Some(text) = self.kills.current().map(str::to_owned) else {
            return EditorReply::Moved;
        };
        let at = self.buffer.cursor();
        self.insert(&text);
        self.last = LastCommand::Yanked(at..at + text.len());
        EditorReply::Changed
    }

    fn yank_earlier(&mut self, range: Range<usize>) -> EditorReply {
        let Some(text) = self.kills.rotate().map(str::to_owned) else { return EditorReply::Moved };
        let start = range.start;
        self.edit(range, &text);
        self.last = LastCommand::Yanked(start..start + text.len());
        EditorReply::Changed
    }

    /// Exchanges the clusters around the cursor.
    fn transpose(&mut self) -> EditorReply {
        let line = self.line();
        let at = self.buffer.cursor();
        let at = if at == line.end { self.buffer.previous_boundary(at) } else { at };
        if at <= line.start || at >= line.end {
            return EditorReply::Moved;
        }
        let (start, end) = (self.buffer.previous_boundary(at), self.buffer.next_boundary(at));
        let text = self.buffer.text();
        let exchanged = format!("{}{}", &text[at..end], &text[start..at]);
        self.edit(start..end, &exchanged);
        EditorReply::Changed
    }

    pub(super) fn line(&self) -> Range<usize> {
        self.buffer.line_range(self.buffer.cursor())
    }
}

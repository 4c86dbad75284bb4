//! The input field itself: edits, motions, and which keys apply.

use super::{
    EditLog, EditorRow, EditorRows, KillRing, PastedBlocks, TextBuffer, blocks::clean_input,
    kill_ring::KillSide, vi::ViState,
};
use crate::keymap::EditingKeys;
use crossterm::event::KeyEvent;
use std::ops::Range;

/// An input field of one or several lines.
#[derive(Debug)]
pub(crate) struct TextEditor {
    pub(super) buffer: TextBuffer,
    pub(super) log: EditLog,
    pub(super) kills: KillRing,
    pub(super) last: LastCommand,
    /// A key that starts a sequence, such as Ctrl-X, was typed.
    pub(super) has_prefix: bool,
    pub(super) vi: Option<ViState>,
    blocks: PastedBlocks,
    rows: EditorRows,
    width: u16,
    /// The column that repeated motions up and down aim at.
    goal_column: Option<usize>,
    is_single_line: bool,
}

/// What a key did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EditorReply {
    Changed,
    Moved,
    /// The key has no meaning in the field.
    Ignored,
    /// A motion up from the first row.
    AtFirstRow,
    /// A motion down from the last row.
    AtLastRow,
    /// The text is to be edited in another program.
    EditExternally,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LastCommand {
    Typed,
    Killed,
    /// The range that was inserted from the kill ring.
    Yanked(Range<usize>),
    Other,
}

const DEFAULT_WIDTH: u16 = 80;

impl TextEditor {
    pub(crate) fn new(keys: EditingKeys) -> TextEditor {
        let blocks = PastedBlocks::default();
        TextEditor {
            buffer: TextBuffer::default(),
            log: EditLog::default(),
            kills: KillRing::default(),
            last: LastCommand::Other,
            has_prefix: false,
            vi: (keys == EditingKeys::Vi).then(ViState::default),
            rows: EditorRows::wrap("", &blocks, DEFAULT_WIDTH),
            blocks,
            width: DEFAULT_WIDTH,
            goal_column: None,
            is_single_line: false,
        }
    }

    /// A field of one line, such as a filter or a name, with emacs keys.
    pub(crate) fn single_line(text: &str) -> TextEditor {
        let mut editor = TextEditor::new(EditingKeys::Emacs);
        editor.is_single_line = true;
        editor.set_text(text);
        editor
    }

    /// The text with pasted blocks in full.
    pub(crate) fn text(&self) -> String {
        self.blocks.expand(self.buffer.text())
    }

    /// The text as it is edited: a character stands for each pasted block.
    pub(crate) fn edited_text(&self) -> &str {
        self.buffer.text()
    }

    /// The byte offset of the cursor in [`TextEditor::edited_text`].
    pub(crate) fn cursor(&self) -> usize {
        self.buffer.cursor()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Replaces the text as one edit.
    pub(crate) fn set_text(&mut self, text: &str) {
        self.start_command();
        let text = self.accepted(text);
        self.edit(0..self.buffer.text().len(), &text);
    }

    /// Empties the field and returns its text. The history of edits starts again.
    pub(crate) fn take_text(&mut self) -> String {
        let text = self.text();
        self.buffer = TextBuffer::default();
        self.log = EditLog::default();
        self.blocks = PastedBlocks::default();
        self.start_command();
        if let Some(vi) = &mut self.vi {
            *vi = ViState::default();
        }
        self.wrap_rows();
        text
    }

    /// Inserts a pasted text as one edit; a long one as a block.
    pub(crate) fn paste(&mut self, text: &str) {
        self.start_command();
        let text = self.accepted(text);
        let inserted = if self.is_single_line { text } else { self.blocks.insert(&text) };
        self.insert(&inserted);
    }

    pub(crate) fn insert_newline(&mut self) {
        self.start_command();
        self.insert("\n");
    }

    /// Replaces a range of [`TextEditor::edited_text`], such as a completed word.
    pub(crate) fn replace_range(&mut self, range: Range<usize>, text: &str) {
        self.start_command();
        let text = self.accepted(text);
        self.edit(range, &text);
    }

    pub(crate) fn on_key(&mut self, key: &KeyEvent) -> EditorReply {
        let is_normal = self.vi.as_ref().is_some_and(|it| !it.is_inserting);
        if is_normal { self.on_vi_key(key) } else { self.on_emacs_key(key) }
    }

    /// Whether Esc ends the insertion, or an unfinished command, of vi.
    pub(crate) fn uses_escape(&self) -> bool {
        self.has_prefix || self.vi.as_ref().is_some_and(|it| it.is_inserting || it.is_pending())
    }

    /// `NORMAL` or `INSERT` with vi keys.
    pub(crate) fn mode_label(&self) -> Option<&'static str> {
        self.vi.as_ref().map(|it| if it.is_inserting { "INSERT" } else { "NORMAL" })
    }

    pub(crate) fn set_width(&mut self, width: u16) {
        if self.width != width {
            self.width = width;
            self.wrap_rows();
        }
    }

    pub(crate) fn rows(&self) -> &[EditorRow] {
        self.rows.as_slice()
    }

    /// The row and column of the cursor, in cells.
    pub(crate) fn cursor_cell(&self) -> (usize, usize) {
        self.rows.cell_of(&self.buffer, &self.blocks, self.buffer.cursor())
    }

    /// Ends what the command before started, such as the column of vertical motions.
    pub(super) fn start_command(&mut self) -> LastCommand {
        self.goal_column = None;
        if self.vi.as_ref().is_none_or(|it| !it.is_inserting) {
            self.log.start_group();
        }
        std::mem::replace(&mut self.last, LastCommand::Other)
    }

    pub(super) fn edit(&mut self, range: Range<usize>, inserted: &str) {
        if range.is_empty() && inserted.is_empty() {
            return;
        }
        let edit = self.buffer.replace(range, inserted);
        self.log.push(edit);
        self.wrap_rows();
    }

    pub(super) fn insert(&mut self, text: &str) {
        let at = self.buffer.cursor();
        let text = if self.is_single_line { text.replace('\n', " ") } else { text.to_owned() };
        self.edit(at..at, &text);
    }

    /// Deletes a range and keeps its text in the kill ring.
    pub(super) fn kill(&mut self, range: Range<usize>, last: &LastCommand) -> EditorReply {
        let side =
            if range.start < self.buffer.cursor() { KillSide::Before } else { KillSide::After };
        let text = &self.buffer.text()[range.clone()];
        self.kills.push(text, side, *last == LastCommand::Killed);
        self.edit(range, "");
        self.last = LastCommand::Killed;
        EditorReply::Changed
    }

    pub(super) fn undo(&mut self) -> EditorReply {
        self.log.undo(&mut self.buffer);
        self.wrap_rows();
        EditorReply::Changed
    }

    pub(super) fn redo(&mut self) -> EditorReply {
        self.log.redo(&mut self.buffer);
        self.wrap_rows();
        EditorReply::Changed
    }

    pub(super) fn move_to(&mut self, offset: usize) -> EditorReply {
        self.buffer.move_to(offset);
        EditorReply::Moved
    }

    /// Moves by one row of the wrapped text.
    pub(super) fn move_row(&mut self, is_down: bool, goal: Option<usize>) -> EditorReply {
        let (row, column) = self.cursor_cell();
        let target = if is_down { Some(row + 1) } else { row.checked_sub(1) };
        let Some(target) = target else { return EditorReply::AtFirstRow };
        if target >= self.rows.as_slice().len() {
            return EditorReply::AtLastRow;
        }
        let goal = goal.unwrap_or(column);
        let offset = self.rows.offset_at(&self.buffer, &self.blocks, target, goal);
        self.buffer.move_to(offset);
        self.goal_column = Some(goal);
        EditorReply::Moved
    }

    pub(super) fn goal_column(&self) -> Option<usize> {
        self.goal_column
    }

    fn accepted(&self, text: &str) -> String {
        let text = clean_input(text);
        if self.is_single_line { text.replace('\n', " ") } else { text }
    }

    fn wrap_rows(&mut self) {
        self.rows = EditorRows::wrap(self.buffer.text(), &self.blocks, self.width);
    }
}

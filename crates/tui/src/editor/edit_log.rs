//! Undo and redo.

use super::buffer::{TextBuffer, TextEdit};

/// The edits of a text, in groups that are undone together.
#[derive(Debug, Default)]
pub(crate) struct EditLog {
    edits: Vec<(u64, TextEdit)>,
    /// The number of edits that are not undone.
    done: usize,
    group: u64,
}

/// The memory of old edits is bounded; a long prompt has a few thousand.
const EDITS_MAX: usize = 10_000;

impl EditLog {
    /// The next edit starts a group.
    pub(crate) fn start_group(&mut self) {
        self.group += 1;
    }

    pub(crate) fn push(&mut self, edit: TextEdit) {
        self.edits.truncate(self.done);
        if self.edits.len() >= EDITS_MAX {
            self.edits.drain(..EDITS_MAX / 2);
        }
        self.edits.push((self.group, edit));
        self.done = self.edits.len();
    }

    /// The last edit, if it was not undone.
    pub(crate) fn last(&self) -> Option<&TextEdit> {
        self.done.checked_sub(1).map(|it| &self.edits[it].1)
    }

    /// Reverts the last group. Returns whether there was one.
    pub(crate) fn undo(&mut self, buffer: &mut TextBuffer) -> bool {
        let Some(group) = self.done.checked_sub(1).map(|it| self.edits[it].0) else { return false };
        while self.done > 0 && self.edits[self.done - 1].0 == group {
            self.done -= 1;
            buffer.revert(&self.edits[self.done].1);
        }
        true
    }

    /// Applies the group that was undone last. Returns whether there was one.
    pub(crate) fn redo(&mut self, buffer: &mut TextBuffer) -> bool {
        let Some(group) = self.edits.get(self.done).map(|it| it.0) else { return false };
        while let Some((_, edit)) = self.edits.get(self.done).filter(|it| it.0 == group) {
            buffer.apply(edit);
            self.done += 1;
        }
        true
    }
}

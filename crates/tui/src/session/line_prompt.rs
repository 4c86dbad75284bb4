//! A line in which a text to find or a name is typed.

use crate::editor::TextEditor;

/// The line and what it is for.
#[derive(Debug)]
pub(crate) struct LinePrompt {
    pub(crate) purpose: LinePurpose,
    pub(crate) editor: TextEditor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinePurpose {
    Find,
    Rename,
}

impl LinePrompt {
    /// Lays the text out beside the label, with a cell for the cursor.
    pub(crate) fn set_width(&mut self, page_width: u16) {
        let label = u16::try_from(self.purpose.label().len()).unwrap_or(0);
        self.editor.set_width(page_width.saturating_sub(label + 1));
    }
}

impl LinePurpose {
    pub(crate) fn label(self) -> &'static str {
        match self {
            LinePurpose::Find => "Find: ",
            LinePurpose::Rename => "Name: ",
        }
    }
}

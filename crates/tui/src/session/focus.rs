//! What has the focus in a session.

use super::{SessionView, detail::DetailPage, line_prompt::LinePrompt, pickers::ChoicePicker};
use crate::keymap::KeyContext;

/// The part of the page that gets keys if nothing is open above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SessionFocus {
    #[default]
    Composer,
    Transcript,
    Queue,
}

/// What is open above the page. It gets all keys.
#[derive(Debug)]
pub(crate) enum SessionOverlay {
    Picker(ChoicePicker),
    Line(LinePrompt),
    Detail(DetailPage),
}

impl SessionView {
    /// What has the focus, for the keys and the footer.
    pub(crate) fn focus(&self) -> KeyContext {
        match (&self.overlay, self.focus) {
            (Some(SessionOverlay::Picker(_)), _) => KeyContext::Picker,
            (Some(SessionOverlay::Line(_)), _) => KeyContext::LineInput,
            (Some(SessionOverlay::Detail(_)), _) => KeyContext::Detail,
            (None, SessionFocus::Composer) => KeyContext::Composer,
            (None, SessionFocus::Transcript) => KeyContext::Session,
            (None, SessionFocus::Queue) => KeyContext::Queue,
        }
    }

    /// Whether the line for a text to find or a name is shown.
    pub(super) fn has_line_input(&self) -> bool {
        matches!(self.overlay, Some(SessionOverlay::Line(_))) || self.pane.find_status().is_some()
    }
}

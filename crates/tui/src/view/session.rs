//! Draws a session.

use crate::{session::SessionView, text::ViewTheme};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
};

/// Returns where the cursor is, if the input field has the focus.
pub(crate) fn draw_session(
    _session: &SessionView,
    _theme: &ViewTheme,
    _area: Rect,
    _buffer: &mut Buffer,
) -> Option<Position> {
    None
}

//! Draws the state into a frame: a header, the page, and the keys. A line in every page names an open request.

mod session;

use crate::{
    app::{AppState, frame_layout},
    page::ActivePage,
};
use ratatui::Frame;
use session::draw_session;

/// Draws the whole interface.
pub(crate) fn draw(state: &AppState, frame: &mut Frame<'_>) {
    let layout = frame_layout(state);
    let buffer = frame.buffer_mut();
    let cursor = match (state.page, &state.session) {
        (ActivePage::Session, Some(session)) => {
            draw_session(session, &state.theme, layout.page, buffer)
        }
        _ => None,
    };
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
}

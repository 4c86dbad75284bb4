//! Draws the state into a frame: a header, the page, and the keys. A line in every page names an open request.

mod board;
mod board_columns;
mod board_dialog;
mod board_empty;
#[cfg(test)]
mod board_frames;
mod composer;
mod footer;
mod header;
mod help;
mod inbox;
mod inbox_form;
#[cfg(test)]
mod inbox_frames;
mod picker;
mod popup;
mod selection;
mod session;
#[cfg(test)]
mod session_frames;
mod session_header;
mod transcript;

use crate::{
    app::{AppState, frame_layout},
    page::ActivePage,
};
use board::draw_board;
use footer::draw_footer;
use header::{draw_connection, draw_header, draw_request_line};
use help::draw_help;
use inbox::draw_inbox;
use ratatui::Frame;
use session::draw_session;

/// Draws the whole interface.
pub(crate) fn draw(state: &AppState, frame: &mut Frame<'_>) {
    let layout = frame_layout(state).move_to(frame.area().as_position());
    let buffer = frame.buffer_mut();
    draw_header(state, layout.header, buffer);
    draw_connection(state, layout.connection, buffer);
    draw_request_line(state, layout.request, buffer);
    let cursor = match (state.page, &state.session) {
        (ActivePage::Session, Some(session)) => {
            draw_session(session, &state.theme, layout.page, buffer)
        }
        (ActivePage::Board | ActivePage::Session, _) => draw_board(state, layout.page, buffer),
        (ActivePage::Inbox, _) => draw_inbox(state, layout.page, buffer),
        (ActivePage::Help, _) => {
            draw_help(&state.help, layout.page, buffer);
            None
        }
    };
    draw_footer(state, layout.footer, buffer);
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
}

//! Where the parts of the frame are.

use super::AppState;
use crate::{
    hub::ConnectionState,
    page::{ActivePage, split_rows},
};
use ratatui::layout::{Offset, Position, Rect};

/// The areas of the frame. An area without lines is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameLayout {
    pub(crate) header: Rect,
    /// Says that the connection is lost.
    pub(crate) connection: Rect,
    /// Names the first open request.
    pub(crate) request: Rect,
    pub(crate) page: Rect,
    pub(crate) footer: Rect,
}

/// Computes the areas for the size of the terminal.
pub(crate) fn frame_layout(state: &AppState) -> FrameLayout {
    let (width, height) = state.size;
    let is_lost = matches!(state.connection, ConnectionState::Lost(_));
    let has_request_line = state.inbox.has_requests() && state.page != ActivePage::Inbox;
    let lines = [1, u16::from(is_lost), u16::from(has_request_line)];
    let page_height = height.saturating_sub(lines.iter().sum::<u16>() + 1);
    let [header, connection, request] = lines;
    let heights = [header, connection, request, page_height, 1];
    let [header, connection, request, page, footer] =
        split_rows(Rect::new(0, 0, width, height), heights);
    FrameLayout { header, connection, request, page, footer }
}

impl FrameLayout {
    /// The areas in a frame that starts here: an inline frame does not start at the top of the terminal.
    #[must_use]
    pub(crate) fn move_to(self, origin: Position) -> FrameLayout {
        let offset = Offset::new(i32::from(origin.x), i32::from(origin.y));
        FrameLayout {
            header: self.header.offset(offset),
            connection: self.connection.offset(offset),
            request: self.request.offset(offset),
            page: self.page.offset(offset),
            footer: self.footer.offset(offset),
        }
    }
}

//! Where the parts of a session are on the page.

use super::{SessionView, focus::SessionFocus};
use crate::page::split_rows;
use ratatui::layout::Rect;

/// The areas of a session. An area without lines is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SessionAreas {
    pub(crate) header: Rect,
    pub(crate) transcript: Rect,
    /// The line for a text to find or a name.
    pub(crate) line_input: Rect,
    pub(crate) queue: Rect,
    /// The line above the input field.
    pub(crate) rule: Rect,
    pub(crate) composer: Rect,
}

/// The mark before the input field, with a space.
pub(crate) const MARK_WIDTH: u16 = 2;
/// On a lower page, the queue is one line until it has the focus.
const QUEUE_PAGE_HEIGHT: u16 = 18;

impl SessionView {
    pub(crate) fn areas(&self, area: Rect) -> SessionAreas {
        let composer_max = (area.height / 3).clamp(1, 12);
        let rows = u16::try_from(self.composer.editor().rows().len()).unwrap_or(u16::MAX);
        let mut left = area.height;
        let mut take_rows = |wanted: u16| {
            let height = wanted.min(left);
            left -= height;
            height
        };
        let composer = take_rows(rows.clamp(1, composer_max));
        let [header, rule] = [1, 1].map(&mut take_rows);
        let line_input = take_rows(u16::from(self.has_line_input()));
        let queue = take_rows(self.queue_height(area.height));
        let heights = [header, left, line_input, queue, rule, composer];
        let [header, transcript, line_input, queue, rule, composer] = split_rows(area, heights);
        SessionAreas { header, transcript, line_input, queue, rule, composer }
    }

    /// A title, and as many prompts as fit.
    fn queue_height(&self, page_height: u16) -> u16 {
        let count = u16::try_from(self.queue.prompts().len()).unwrap_or(u16::MAX);
        let has_focus = self.focus == SessionFocus::Queue;
        match count {
            0 => 0,
            _ if !has_focus && page_height < QUEUE_PAGE_HEIGHT => 1,
            _ => 1 + count.min(page_height / if has_focus { 3 } else { 6 }).max(1),
        }
    }
}

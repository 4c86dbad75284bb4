//! Divides an area into rows.

use ratatui::layout::Rect;

/// Areas of these heights from top to bottom, cut where the area ends. The solver of `ratatui` is far slower, and the
/// areas are computed for every input.
pub(crate) fn split_rows<const N: usize>(area: Rect, heights: [u16; N]) -> [Rect; N] {
    let mut y = area.y;
    heights.map(|height| {
        let height = height.min(area.bottom() - y);
        let row = Rect { y, height, ..area };
        y += height;
        row
    })
}

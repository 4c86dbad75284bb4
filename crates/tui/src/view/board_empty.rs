//! Draws a board without lines: why there is nothing, and what to do next.

use crate::{
    app::AppState,
    hub::OverviewLine,
    keymap::{KeyAction, KeyContext},
    text::{sanitize_line, shorten_path, truncate_cells},
};
use ratatui::{buffer::Buffer, layout::Rect, style::Style, text::Line, widgets::Widget as _};

const PATH_CELLS: usize = 40;

pub(super) fn draw_empty(state: &AppState, rows: impl Iterator<Item = Rect>, buffer: &mut Buffer) {
    let (why, next) = describe_empty(state);
    let mut lines: Vec<(String, Style)> = vec![(why, state.theme.strong)];
    lines.extend(next.into_iter().map(|it| (it, state.theme.dim)));
    lines.extend(overview_lines(state));
    for ((text, style), row) in lines.into_iter().zip(rows.skip(1)) {
        let text = truncate_cells(&format!("  {text}"), usize::from(row.width));
        Line::styled(text, style).render(row, buffer);
    }
}

/// Why there is nothing, and the keys that help.
fn describe_empty(state: &AppState) -> (String, Vec<String>) {
    let key = |action| state.keymap.key_label(KeyContext::Board, action).unwrap_or_default();
    let board = &state.board;
    let closed = board.list().hidden_closed;
    let home = state.options.home.as_deref().unwrap_or_default();
    let cwd = shorten_path(&state.options.cwd, home, PATH_CELLS);
    let filter = board.filter().map(|it| it.text().trim().to_owned()).filter(|it| !it.is_empty());
    let mut next = Vec::new();
    let why = if let Some(filter) = filter {
        let clear = key(KeyAction::GoBack);
        next.push(format!("{clear} clears the filter"));
        format!("No session matches “{filter}”")
    } else if !board.has_lists() {
        "Waiting for the list of sessions…".to_owned()
    } else {
        next.push(format!("{} starts one in {cwd}", key(KeyAction::NewSession)));
        next.push(format!("{} asks for agent and directory", key(KeyAction::NewSessionWithAgent)));
        if closed == 0 { "No sessions yet" } else { "No open sessions" }.to_owned()
    };
    if closed > 0 {
        let them = if closed == 1 {
            "1 closed session".into()
        } else {
            format!("{closed} closed sessions")
        };
        next.push(format!("{} shows {them}", key(KeyAction::ToggleClosed)));
    }
    (why, next)
}

/// The agents and the commands for a user without sessions.
fn overview_lines(state: &AppState) -> Vec<(String, Style)> {
    let theme = &state.theme;
    let Some(overview) = state.board.overview() else { return Vec::new() };
    let styled = |it| match it {
        OverviewLine::Heading(text) => (text.to_owned(), theme.strong),
        // A program may print anything as its version.
        OverviewLine::Entry(text) => (format!("  {}", sanitize_line(&text)), theme.text),
        OverviewLine::Blank => (String::new(), theme.text),
    };
    let blank = (String::new(), theme.text);
    std::iter::once(blank).chain(overview.lines().into_iter().map(styled)).collect()
}

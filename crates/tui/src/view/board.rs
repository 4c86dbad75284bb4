//! Draws the board. Only the lines that are visible are laid out.

use super::{
    board_columns::{BoardColumns, MARK_CELLS},
    board_dialog::draw_dialog,
    board_empty::draw_empty,
    header::state_style,
    selection::draw_selection,
};
use crate::{
    app::AppState,
    board::{BoardLine, BoardRow, BoardState, ProjectGroup, SessionFilter, StateGroup},
    text::{
        ViewTheme, cell_width, format_age, format_cost, sanitize_line, shorten_path, truncate_cells,
    },
};
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    style::{Modifier, Style},
    text::{Line, Span},
    widgets::Widget as _,
};
use unicode_segmentation::UnicodeSegmentation as _;

/// Returns the position of the cursor if a field has the focus.
pub(super) fn draw_board(state: &AppState, page: Rect, buffer: &mut Buffer) -> Option<Position> {
    let board = &state.board;
    let mut rows = page.rows();
    let mut cursor = None;
    if let Some(row) = board.filter().and_then(|_| rows.next()) {
        cursor = draw_filter(board, &state.theme, row, buffer);
    }
    if board.has_headings()
        && let Some(row) = rows.next()
    {
        let columns = BoardColumns::new(page.width, board.is_fleet());
        headings(columns, &state.theme).render(row, buffer);
    }
    if board.list().lines.is_empty() {
        draw_empty(state, rows, buffer);
    } else {
        draw_lines(state, rows, page.width, buffer);
    }
    match board.dialog() {
        Some(dialog) => draw_dialog(state, dialog, page, buffer),
        None => cursor,
    }
}

fn draw_filter(
    board: &BoardState,
    theme: &ViewTheme,
    row: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    let field = board.filter()?;
    let label = " Filter: ";
    let room = usize::from(row.width).saturating_sub(label.len() + 1);
    let (text, column) = field.visible_part(room);
    let line =
        Line::from(vec![Span::styled(label, theme.accent), Span::styled(text, theme.strong)]);
    line.render(row, buffer);
    let column = u16::try_from(label.len() + column).unwrap_or(u16::MAX);
    board.is_filtering().then(|| Position::new(row.x + column.min(row.width), row.y))
}

fn headings(columns: BoardColumns, theme: &ViewTheme) -> Line<'static> {
    let mut text = " ".repeat(MARK_CELLS);
    for (name, width) in [
        ("STATE", columns.state),
        ("TITLE", columns.title),
        ("LAST", columns.activity),
        ("AGENT", columns.agent),
        ("HOST", columns.host),
    ] {
        push_cell(&mut text, name, width);
    }
    for (name, width) in [("COST", columns.cost), ("AGE", columns.age)] {
        push_right_cell(&mut text, name, width);
    }
    Line::styled(text, theme.dim)
}

fn draw_lines(
    state: &AppState,
    mut rows: impl Iterator<Item = Rect>,
    width: u16,
    buffer: &mut Buffer,
) {
    let board = &state.board;
    let columns = BoardColumns::new(width, board.is_fleet());
    let mut filter = board.filter().and_then(|it| SessionFilter::parse(it.text()));
    for line in board.visible_lines() {
        let Some(area) = rows.next() else { return };
        let drawn = match board.list().lines[line] {
            BoardLine::Project(project) => {
                project_line(state, &board.list().projects[project], width)
            }
            BoardLine::Session { row, starts_group } => {
                let row = &board.rows()[row];
                session_line(state, row, columns, starts_group, filter.as_mut())
            }
        };
        drawn.render(area, buffer);
        if line == board.selected_line() {
            // The mark is for terminals without colors.
            buffer.set_string(area.x, area.y, "›", state.theme.accent);
            draw_selection(area, buffer, &state.theme);
        }
    }
}

fn project_line(state: &AppState, project: &ProjectGroup, width: u16) -> Line<'static> {
    let theme = &state.theme;
    let mut counts: Vec<Span<'static>> = Vec::new();
    for (group, count) in StateGroup::ALL.into_iter().zip(project.counts) {
        if count > 0 {
            let text = format!(" {}{count}", group.mark());
            counts.push(Span::styled(text, state_style(group, theme)));
        }
    }
    // The counts say what a project hides; the rows below an open one say it themselves.
    if !project.is_collapsed {
        counts.clear();
    }
    let counts_width: usize = counts.iter().map(Span::width).sum();
    let room = usize::from(width).saturating_sub(counts_width + 3);
    let home = state.options.home.as_deref().unwrap_or_default();
    let arrow = if project.is_collapsed { "▸" } else { "▾" };
    let mut spans = vec![
        Span::styled(format!(" {arrow} "), theme.dim),
        Span::styled(shorten_path(&project.cwd, home, room.max(1)), theme.strong),
    ];
    spans.extend(counts);
    Line::from(spans)
}

fn session_line(
    state: &AppState,
    it: &BoardRow,
    columns: BoardColumns,
    starts_group: bool,
    filter: Option<&mut SessionFilter>,
) -> Line<'static> {
    let theme = &state.theme;
    let style = state_style(it.group, theme);
    let base = if it.group < StateGroup::Asleep { theme.text } else { theme.dim };
    let mut spans = vec![Span::styled(format!("  {} ", it.group.mark()), style)];
    let mut group = String::new();
    push_cell(&mut group, if starts_group { it.group.label() } else { "" }, columns.state);
    spans.push(Span::styled(group, style));
    let title = sanitize_line(it.row.display_title());
    let activity = last_activity(it);
    if activity.is_empty() && columns.activity > 0 {
        // The title may take the place of both.
        spans.extend(marked_title(&title, columns.title + 1 + columns.activity, base, filter));
    } else {
        spans.extend(marked_title(&title, columns.title, base, filter));
        let mut cell = String::new();
        push_cell(&mut cell, &activity, columns.activity);
        spans.push(Span::styled(cell, theme.dim));
    }
    let mut rest = String::new();
    push_cell(&mut rest, &sanitize_line(&it.row.agent), columns.agent);
    push_cell(&mut rest, &sanitize_line(it.row.host.as_deref().unwrap_or("")), columns.host);
    let cost = it.row.cost.as_ref().map(format_cost).unwrap_or_default();
    push_right_cell(&mut rest, &cost, columns.cost);
    push_right_cell(&mut rest, &format_age(state.now.0.saturating_sub(it.updated_ms)), columns.age);
    spans.push(Span::styled(rest, base));
    Line::from(spans)
}

/// What the session does or waits for; the title of the agent if the user gave the session another name.
fn last_activity(it: &BoardRow) -> String {
    let doing = it.row.doing.as_deref().filter(|it| !it.trim().is_empty());
    let title = || it.row.title.as_deref().filter(|title| *title != it.row.display_title());
    let text = doing.or_else(title).unwrap_or_default();
    sanitize_line(text).into_owned()
}

/// The title in its column, with the characters that the filter matched.
fn marked_title(
    title: &str,
    width: usize,
    style: Style,
    filter: Option<&mut SessionFilter>,
) -> Vec<Span<'static>> {
    let mut text = String::new();
    push_cell(&mut text, title, width);
    let matched = filter.map(|it| it.matched_clusters(title)).unwrap_or_default();
    if matched.is_empty() {
        return vec![Span::styled(text, style)];
    }
    let marked = style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (index, cluster) in text.graphemes(true).enumerate() {
        let is_marked = u32::try_from(index).is_ok_and(|it| matched.binary_search(&it).is_ok());
        let style = if is_marked && cluster != "…" { marked } else { style };
        match spans.last_mut().filter(|it| it.style == style) {
            Some(span) => span.content.to_mut().push_str(cluster),
            None => spans.push(Span::styled(cluster.to_owned(), style)),
        }
    }
    spans
}

/// Appends a text that takes `width` cells, and a space. A column without a width is left out.
fn push_cell(line: &mut String, text: &str, width: usize) {
    if width == 0 {
        return;
    }
    let text = truncate_cells(text, width);
    line.push_str(&text);
    line.extend(std::iter::repeat_n(' ', width - cell_width(&text) + 1));
}

fn push_right_cell(line: &mut String, text: &str, width: usize) {
    if width == 0 {
        return;
    }
    let text = truncate_cells(text, width);
    line.extend(std::iter::repeat_n(' ', width - cell_width(&text)));
    line.push_str(&text);
    line.push(' ');
}

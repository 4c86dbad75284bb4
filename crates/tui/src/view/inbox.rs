//! Draws the inbox: one request in full, and below it every answer with its key.

use super::inbox_form::draw_form;
use crate::{
    app::AppState,
    hub::OpenRequest,
    inbox::{AnswerChoice, describe_kind},
    keymap::{KeyAction, KeyContext},
    page::split_rows,
    text::{ViewTheme, cell_width, format_age, sanitize_line, truncate_cells},
};
use jackfield_protocol::parse_rfc3339;
use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    text::{Line, Span},
    widgets::Widget as _,
};

/// Returns the position of the cursor if a field has the focus.
pub(super) fn draw_inbox(state: &AppState, page: Rect, buffer: &mut Buffer) -> Option<Position> {
    let inbox = &state.inbox;
    let page = Rect { x: page.x + 1, width: page.width.saturating_sub(2), ..page };
    let rows = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    let heights = [
        rows(usize::from(inbox.closed().is_some())),
        1,
        rows(inbox.content_height()),
        1,
        rows(inbox.answer_height()),
    ];
    let [closed, heading, content, status, answers] = split_rows(page, heights);
    if let Some(text) = inbox.closed() {
        let text = truncate_cells(&sanitize_line(text), usize::from(closed.width));
        Line::styled(text, state.theme.warning).render(closed, buffer);
    }
    let Some(request) = inbox.shown_request() else {
        let below = Rect { y: heading.y, height: page.bottom() - heading.y, ..page };
        draw_empty(state, below, buffer);
        return None;
    };
    if !inbox.is_readable() {
        let text = truncate_cells("Enlarge the window to answer", usize::from(page.width));
        Line::styled(text, state.theme.warning).render(heading, buffer);
        return None;
    }
    heading_line(state, request, usize::from(heading.width)).render(heading, buffer);
    let (lines, top) = inbox.lines();
    for (line, row) in lines[top.min(lines.len())..].iter().zip(content.rows()) {
        line.render(row, buffer);
    }
    status_line(state, lines.len(), usize::from(status.width)).render(status, buffer);
    if let Some(form) = inbox.form() {
        return draw_form(state, form, answers, buffer);
    }
    draw_choices(state, inbox.choices(), answers, buffer);
    None
}

fn draw_empty(state: &AppState, area: Rect, buffer: &mut Buffer) {
    let back = state.keymap.key_label(KeyContext::Inbox, KeyAction::GoBack).unwrap_or_default();
    let lines = [
        ("No agent waits for an answer".to_owned(), state.theme.strong),
        (format!("{back} returns"), state.theme.dim),
    ];
    for ((text, style), row) in lines.into_iter().zip(area.rows().skip(1)) {
        let text = truncate_cells(&format!(" {text}"), usize::from(row.width));
        Line::styled(text, style).render(row, buffer);
    }
}

/// What is wanted, by which agent, in which session, and since when.
fn heading_line(state: &AppState, request: &OpenRequest, width: usize) -> Line<'static> {
    let theme = &state.theme;
    let inbox = &state.inbox;
    let mut text = String::new();
    if let (Some(index), 2..) = (inbox.shown_index(), inbox.requests().len()) {
        text.push_str(&format_position(index + 1, inbox.requests().len()));
    }
    text.push_str(describe_kind(request));
    let since = parse_rfc3339(&request.since).map(|it| state.now.0.saturating_sub(it));
    let age = since.map(format_age).unwrap_or_default();
    let session = state.board.find_row(&request.session_id);
    let title = session.map_or(&*request.session_id, |it| it.display_title());
    let place = format!("{} · {}", sanitize_line(&request.agent), sanitize_line(title));
    let left = truncate_cells(&text, width);
    let room = width.saturating_sub(cell_width(&left) + cell_width(&age) + 4);
    let place = truncate_cells(&place, room);
    let gap = width.saturating_sub(cell_width(&left) + 2 + cell_width(&place) + cell_width(&age));
    Line::from(vec![
        Span::styled(left, theme.needs_user),
        Span::styled(format!("  {place}"), theme.dim),
        Span::raw(" ".repeat(gap)),
        Span::styled(age, theme.dim),
    ])
}

fn format_position(number: usize, count: usize) -> String {
    format!("{number} of {count}  ")
}

/// Whether keys answer, and how much of the text is not visible.
fn status_line(state: &AppState, count: usize, width: usize) -> Line<'static> {
    let inbox = &state.inbox;
    let theme = &state.theme;
    let (_, top) = inbox.lines();
    let below = count.saturating_sub(top + inbox.content_height());
    let key = |action| state.keymap.key_label(KeyContext::Inbox, action).unwrap_or_default();
    let more = match (below, top) {
        (0, 0) if inbox.is_loading_details() => "reading the tool call…".to_owned(),
        (0, 0) => String::new(),
        (0, _) => format!("↑ {top} lines above: {}", key(KeyAction::MovePageUp)),
        (1, _) => format!("↓ 1 more line: {}", key(KeyAction::MovePageDown)),
        _ => format!("↓ {below} more lines: {}", key(KeyAction::MovePageDown)),
    };
    let (text, style) = if let Some(sent) = inbox.sent_answer() {
        (format!("Sending “{}”…", sanitize_line(&sent.label)), theme.accent)
    } else if inbox.is_answerable(state.now) {
        ("Answer:".to_owned(), theme.strong)
    } else {
        ("Answer in a moment…".to_owned(), theme.dim)
    };
    let text = truncate_cells(&text, width);
    let room = width.saturating_sub(cell_width(&text) + 2);
    let more = truncate_cells(&more, room);
    let gap = width.saturating_sub(cell_width(&text) + cell_width(&more));
    Line::from(vec![
        Span::styled(text, style),
        Span::raw(" ".repeat(gap)),
        Span::styled(more, theme.accent),
    ])
}

/// One option on each line; side by side if there are too many.
fn draw_choices(state: &AppState, choices: &[AnswerChoice], area: Rect, buffer: &mut Buffer) {
    let theme = &state.theme;
    let is_open = state.inbox.is_answerable(state.now);
    let lines: Vec<_> = if state.inbox.has_option_lines() {
        choices.iter().map(|it| choice_line(theme, it, is_open, area.width)).collect()
    } else {
        let rows = state.inbox.option_rows().into_iter();
        rows.map(|row| choices[row].iter().flat_map(|it| choice_name(theme, it, is_open)).collect())
            .collect()
    };
    for (line, row) in lines.into_iter().zip(area.rows()) {
        line.render(row, buffer);
    }
}

fn choice_name(theme: &ViewTheme, choice: &AnswerChoice, is_open: bool) -> [Span<'static>; 2] {
    let style = if is_open { theme.accent } else { theme.dim };
    let keys = choice.keys.join(" ");
    let name = sanitize_line(&choice.name).into_owned();
    let name_style = match () {
        () if !is_open => theme.dim,
        () if choice.is_permanent() => theme.warning,
        () => theme.text,
    };
    [Span::styled(format!("{keys} "), style), Span::styled(format!("{name}   "), name_style)]
}

fn choice_line(
    theme: &ViewTheme,
    choice: &AnswerChoice,
    is_open: bool,
    width: u16,
) -> Line<'static> {
    let [mut keys, mut name] = choice_name(theme, choice, is_open);
    let width = usize::from(width);
    keys.content = format!("{:5}", keys.content).into();
    name.content = truncate_cells(name.content.trim_end(), width.saturating_sub(6)).into();
    let rest = width.saturating_sub(keys.width() + name.width() + 2);
    // The agent chooses the name; the kind is what the answer means.
    let meaning = sanitize_line(&choice.meaning).into_owned();
    let is_known = choice.name.eq_ignore_ascii_case(&meaning) || meaning.is_empty();
    let meaning = if is_known { String::new() } else { truncate_cells(&meaning, rest) };
    Line::from(vec![keys, name, Span::styled(format!("  {meaning}"), theme.dim)])
}

//! The lines above the page: where the user is, a lost connection, and an open request.

use crate::{
    app::AppState,
    board::StateGroup,
    hub::ConnectionState,
    keymap::KeyAction,
    page::ActivePage,
    text::{ViewTheme, cell_width, sanitize_line, truncate_cells},
};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::Widget as _,
};

/// The name of the page on the left, the number of sessions in each state on the right.
pub(super) fn draw_header(state: &AppState, area: Rect, buffer: &mut Buffer) {
    let theme = &state.theme;
    let width = usize::from(area.width);
    let name = page_name(state);
    let room = width.saturating_sub(1);
    // The name of the page matters more than the counts.
    let fits = |counts: &Line<'_>| cell_width(&name) + 3 + counts.width() <= room;
    let counts = Some(state_counts(state, theme, false)).filter(fits);
    let counts = counts.unwrap_or_else(|| state_counts(state, theme, true));
    let counts_width = counts.width();
    let shows_counts = fits(&counts);
    let name_room = if shows_counts { room - counts_width - 2 } else { room };
    let name = Line::from(vec![
        Span::raw(" "),
        Span::styled(truncate_cells(&name, name_room), theme.strong),
    ]);
    name.render(area, buffer);
    if shows_counts {
        let start = u16::try_from(width - counts_width - 1).unwrap_or(u16::MAX);
        let right = Rect { x: area.x + start, width: area.width - start, ..area };
        counts.render(right, buffer);
    }
}

fn page_name(state: &AppState) -> String {
    let session = || {
        let id = state.session.as_ref()?.session_id();
        let title = state.board.find_row(id).map_or(id, |it| it.display_title());
        Some(sanitize_line(title).into_owned())
    };
    match state.page {
        ActivePage::Board => "Sessions".to_owned(),
        ActivePage::Session => session().unwrap_or_else(|| "Sessions".to_owned()),
        ActivePage::Inbox => "Requests".to_owned(),
        ActivePage::Help => "Keys".to_owned(),
    }
}

/// `is_short` has marks instead of names.
fn state_counts(state: &AppState, theme: &ViewTheme, is_short: bool) -> Line<'static> {
    if !state.board.has_lists() {
        return Line::styled("connecting…", theme.dim);
    }
    let counts = state.board.state_counts();
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (group, count) in StateGroup::ALL.into_iter().zip(counts) {
        if count == 0 || group == StateGroup::Closed {
            continue;
        }
        if !spans.is_empty() {
            spans.push(Span::styled(if is_short { " " } else { " · " }, theme.dim));
        }
        let text = match (group, count) {
            _ if is_short => format!("{}{count}", group.mark()),
            (StateGroup::NeedsUser, 2..) => format!("{count} need you"),
            _ => format!("{count} {}", group.label()),
        };
        spans.push(Span::styled(text, state_style(group, theme)));
    }
    Line::from(spans)
}

/// The style of the mark and the name of a state.
pub(super) fn state_style(group: StateGroup, theme: &ViewTheme) -> Style {
    match group {
        StateGroup::NeedsUser => theme.needs_user,
        StateGroup::Working => theme.working,
        StateGroup::Idle => theme.text,
        StateGroup::Asleep | StateGroup::Closed => theme.dim,
    }
}

pub(super) fn draw_connection(state: &AppState, area: Rect, buffer: &mut Buffer) {
    let ConnectionState::Lost(why) = &state.connection else { return };
    let why = sanitize_line(why);
    let text = format!(" Connection lost: {}; trying again", why.trim_end_matches('.'));
    let text = if cell_width(&text) <= usize::from(area.width) {
        text
    } else {
        // The reason is the part that can be cut.
        let room = usize::from(area.width).saturating_sub(" Connection lost: ; trying again".len());
        match room {
            0..4 => " Connection lost; trying again".to_owned(),
            _ => format!(" Connection lost: {}; trying again", truncate_cells(&why, room)),
        }
    };
    Line::styled(text, state.theme.error).render(area, buffer);
}

/// Names the first open request, and the key that shows it.
pub(super) fn draw_request_line(state: &AppState, area: Rect, buffer: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    let Some((text, count)) = state.inbox.first_request() else { return };
    let key = state.keymap.key_label(state.key_context(), KeyAction::ShowInbox);
    let hint = match (key, count) {
        (Some(key), 1) => format!(" {key}: answer "),
        (Some(key), _) => format!(" {key}: answer {count} "),
        (None, _) => String::new(),
    };
    let room = usize::from(area.width).saturating_sub(cell_width(&hint) + 1);
    let text = truncate_cells(&format!(" ! {text}"), room);
    let style = state.theme.needs_user.patch(state.theme.selected);
    buffer.set_style(area, style);
    Line::from(text).render(area, buffer);
    let start = area.width.saturating_sub(u16::try_from(cell_width(&hint)).unwrap_or(u16::MAX));
    let right = Rect { x: area.x + start, width: area.width - start, ..area };
    Line::from(hint).render(right, buffer);
}

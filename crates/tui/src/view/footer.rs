//! The last line: the keys of the page, or a notice about the last action.

use crate::{
    app::AppState,
    keymap::KeyContext,
    page::ActivePage,
    text::{cell_width, sanitize_line, truncate_cells},
};
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    text::{Line, Span},
    widgets::Widget as _,
};

pub(super) fn draw_footer(state: &AppState, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    if let Some((notice, _)) = &state.notice {
        let text = truncate_cells(&format!(" {}", sanitize_line(notice)), width);
        Line::styled(text, state.theme.accent).render(area, buffer);
        return;
    }
    let context = state.key_context();
    let mut hints = state.keymap.hints(context);
    // There is nothing to go back to from the board.
    hints.retain(|it| !(context == KeyContext::Board && it.1 == "back"));
    if state.page == ActivePage::Inbox && state.inbox.form().is_some() {
        let keys = [("tab", "next field"), ("space", "change"), ("enter", "next, press")];
        let keys = keys.map(|(key, word)| (key.to_owned(), word));
        hints.retain(|it| it.1 != "accept");
        hints.splice(0..0, keys);
    }
    if context == KeyContext::Inbox {
        hints.retain(|it| is_useful(state, it.1));
    }
    key_line(state, &hints, width).render(area, buffer);
}

/// Whether a key of the inbox does something for the shown request.
fn is_useful(state: &AppState, hint: &str) -> bool {
    let has_kind = |kind: &str| state.inbox.choices().iter().any(|it| it.kind == kind);
    match hint {
        "allow" => has_kind("allow_once"),
        "always" => has_kind("allow_always"),
        "reject" => !state.inbox.choices().is_empty(),
        "next" => state.inbox.requests().len() > 1,
        "session" => state.inbox.shown_request().is_some(),
        _ => true,
    }
}

/// As many keys as fit. The key of the help is always among them.
fn key_line(state: &AppState, hints: &[(String, &'static str)], width: usize) -> Line<'static> {
    let (help, others): (Vec<_>, Vec<_>) = hints.iter().partition(|it| it.1 == "help");
    let hint_width = |it: &(String, &str)| cell_width(&it.0) + cell_width(it.1) + 3;
    let mut room = width.saturating_sub(help.iter().map(|it| hint_width(it)).sum());
    let mut spans = Vec::new();
    let mut push = |(key, word): &(String, &'static str)| {
        spans.push(Span::styled(format!(" {key}"), state.theme.accent));
        spans.push(Span::styled(format!(" {word} "), state.theme.dim));
    };
    for hint in others {
        let needed = hint_width(hint);
        if room < needed {
            break;
        }
        room -= needed;
        push(hint);
    }
    help.into_iter().for_each(&mut push);
    Line::from(spans)
}

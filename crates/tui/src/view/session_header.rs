//! The line about a session: its agent, state, settings, cost, context and clients; and the line above the input
//! field.

use super::session::draw_titled_rule;
use crate::{
    hub::{SessionRow, SessionState},
    session::SessionView,
    text::{ViewTheme, cell_width, format_cost, format_tokens, sanitize_line, truncate_cells},
};
use jackfield_views::options::SettingOffer;
use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::Widget as _,
};

/// Shows as many facts as fit; the first matter most.
pub(super) fn draw_session_header(
    session: &SessionView,
    theme: &ViewTheme,
    area: Rect,
    buffer: &mut Buffer,
) {
    let mut spans: Vec<Span<'static>> = vec![Span::raw(" ")];
    let mut room = usize::from(area.width).saturating_sub(1);
    for (text, style) in list_facts(session, theme) {
        let separator = if spans.len() > 1 { " · " } else { "" };
        if room <= cell_width(separator) {
            break;
        }
        let needed = cell_width(separator) + cell_width(&text);
        if needed > room && spans.len() > 1 {
            continue;
        }
        let text = truncate_cells(&text, room);
        room = room.saturating_sub(needed);
        spans.push(Span::styled(separator, theme.dim));
        spans.push(Span::styled(text, style));
    }
    Line::from(spans).render(area, buffer);
}

fn list_facts(session: &SessionView, theme: &ViewTheme) -> Vec<(String, Style)> {
    let row = session.row();
    let settings = session.settings();
    let mut facts = vec![state_fact(row.state, theme)];
    let mut push = |text: String, style: Style| {
        if !text.is_empty() {
            facts.push((text, style));
        }
    };
    push(sanitize_line(&row.agent).into_owned(), theme.text);
    push(current_name(settings.mode.as_ref()), theme.accent);
    push(current_name(settings.model.as_ref()), theme.text);
    push(row.cost.as_ref().map(format_cost).unwrap_or_default(), theme.text);
    if let Some(context) = session.context_fill() {
        let tokens = format_tokens(context.tokens);
        let text = match context.size.filter(|it| *it > 0) {
            Some(size) => format!("context {tokens} of {}", format_tokens(size)),
            None => format!("context {tokens}"),
        };
        // An agent with little room left compacts or fails.
        let is_full = context.size.is_some_and(|it| context.tokens.saturating_mul(5) > it * 4);
        push(text, if is_full { theme.warning } else { theme.text });
    }
    push(describe_others(row), theme.text);
    push(current_name(settings.reasoning.as_ref()), theme.text);
    push(
        row.host.as_deref().map(|it| format!("on {}", sanitize_line(it))).unwrap_or_default(),
        theme.dim,
    );
    facts
}

/// The other clients of the session, the first by their names.
fn describe_others(row: &SessionRow) -> String {
    const SHOWN_MAX: usize = 2;
    let names = row.other_client_names();
    if row.clients <= 1 {
        return String::new();
    }
    if names.is_empty() {
        return format!("{} clients", row.clients);
    }
    let shown: Vec<_> = names.iter().take(SHOWN_MAX).map(|it| sanitize_line(it)).collect();
    let more = row.clients.saturating_sub(1 + shown.len() as u64);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("with {}{more}", shown.join(", "))
}

fn state_fact(state: SessionState, theme: &ViewTheme) -> (String, Style) {
    let (text, style) = match state {
        SessionState::Asks => ("needs you", theme.needs_user),
        SessionState::Working => ("working", theme.working),
        SessionState::Idle => ("idle", theme.text),
        SessionState::Asleep => ("asleep", theme.dim),
        SessionState::Closed => ("closed", theme.dim),
        SessionState::Other => ("busy", theme.working),
    };
    (text.to_owned(), style)
}

/// The agent's name of the current value.
fn current_name(offer: Option<&SettingOffer>) -> String {
    let Some((offer, current)) = offer.and_then(|it| Some((it, it.current.as_ref()?))) else {
        return String::new();
    };
    let choice = offer.choices.iter().find(|it| it.value == *current);
    sanitize_line(choice.map_or(current, |it| &it.name)).into_owned()
}

/// What the session is doing, the mode of vi, and whether newer lines are below.
pub(super) fn draw_session_rule(
    session: &SessionView,
    theme: &ViewTheme,
    area: Rect,
    buffer: &mut Buffer,
) {
    let doing = session.row().doing.as_deref().filter(|_| session.is_running());
    let mut ends = Vec::new();
    if !session.pane().is_at_end() {
        ends.push("↓ more below");
    }
    ends.extend(session.composer().editor().mode_label());
    let end = if ends.is_empty() { String::new() } else { format!(" {} ─", ends.join(" · ")) };
    let end_width = u16::try_from(cell_width(&end)).unwrap_or(u16::MAX).min(area.width);
    let left = Rect { width: area.width - end_width, ..area };
    draw_titled_rule(doing.unwrap_or_default(), theme.border, left, buffer);
    let right = Rect { x: left.right(), width: end_width, ..area };
    Line::styled(end, theme.border).render(right, buffer);
}

//! Plans, requests to the user, and the ends of turns.

use super::fit_line;
use crate::{
    text::{ViewTheme, format_cost, format_duration, format_tokens, sanitize_line, wrap_line},
    transcript::{PlanEntry, RequestItem, TurnEndItem, TurnOutcome},
};
use ratatui::text::{Line, Span};

pub(super) fn plan_header(entries: &[PlanEntry], width: u16, theme: &ViewTheme) -> Line<'static> {
    let done = entries.iter().filter(|it| it.status == "completed").count();
    fit_line("Plan", theme.strong, &[format!("{done} of {} done", entries.len())], width, theme)
}

/// A plan as a checklist.
pub(super) fn render_plan(
    entries: &[PlanEntry],
    width: u16,
    theme: &ViewTheme,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for it in entries {
        let (mark, style) = match it.status.as_str() {
            "completed" => ("[x] ", theme.dim),
            "in_progress" => ("[>] ", theme.working),
            _ => ("[ ] ", theme.text),
        };
        let text = format!("{mark}{}", sanitize_line(&it.content).trim());
        lines.extend(wrap_line(Line::styled(text, style), width, 4));
    }
    lines
}

pub(super) fn render_request(
    request: &RequestItem,
    width: u16,
    theme: &ViewTheme,
) -> Vec<Line<'static>> {
    let clean = |text: &str| sanitize_line(text).trim().to_owned();
    let title = match clean(&request.title) {
        title if title.is_empty() => "Request".to_owned(),
        title => title,
    };
    let (answer, style) = match &request.answer {
        None => ("waits for an answer".to_owned(), theme.needs_user),
        Some(answer) => {
            let always = if request.is_always { ", always" } else { "" };
            let style = match answer.option_kind.as_str() {
                kind if kind.starts_with("allow") => theme.success,
                kind if kind.starts_with("reject") => theme.error,
                _ => theme.dim,
            };
            (format!("{}{always} ({})", clean(&answer.choice), clean(&answer.by)), style)
        }
    };
    let spans = vec![
        Span::styled("Asks: ", theme.dim),
        Span::styled(title, theme.text),
        Span::styled("  ", theme.text),
        Span::styled(answer, style),
    ];
    let mut lines = wrap_line(Line::from(spans), width, 2);
    if !request.why.is_empty() {
        let why = Line::styled(format!("  {}", clean(&request.why)), theme.dim);
        lines.extend(wrap_line(why, width, 2));
    }
    lines
}

/// How a turn ended, and what it has used.
pub(super) fn render_turn_end(
    end: &TurnEndItem,
    width: u16,
    theme: &ViewTheme,
) -> Vec<Line<'static>> {
    let (word, style) = match end.outcome {
        TurnOutcome::Completed => ("Done", theme.dim),
        TurnOutcome::Cancelled => ("Cancelled", theme.warning),
        TurnOutcome::Failed => ("Failed", theme.error),
        TurnOutcome::Interrupted => ("Interrupted", theme.error),
    };
    let mut title = word.to_owned();
    if !end.detail.is_empty() {
        title = format!("{title}: {}", sanitize_line(&end.detail).trim());
    }
    let mut spans = vec![Span::styled(title, style)];
    let usage = usage_parts(end);
    if !usage.is_empty() {
        spans.push(Span::styled(format!(" · {}", usage.join(" · ")), theme.dim));
    }
    wrap_line(Line::from(spans), width, 2)
}

fn usage_parts(end: &TurnEndItem) -> Vec<String> {
    let mut parts: Vec<String> = end.duration_ms.map(format_duration).into_iter().collect();
    if let Some(tokens) = &end.tokens {
        let counts = [(tokens.input, "in"), (tokens.cached_read, "cached"), (tokens.output, "out")];
        let counts = counts
            .into_iter()
            .filter_map(|(count, name)| count.map(|it| format!("{} {name}", format_tokens(it))));
        let counts = counts.collect::<Vec<_>>().join(", ");
        let total = tokens.total.map(|it| format!("{} tokens", format_tokens(it)));
        parts.extend(if counts.is_empty() { total } else { Some(format!("{counts} tokens")) });
    }
    parts.extend(end.cost.as_ref().map(format_cost));
    if let Some(context) = end.context {
        let tokens = format_tokens(context.tokens);
        parts.push(match context.size.filter(|it| *it > 0) {
            Some(size) => format!("context {} %", context.tokens.saturating_mul(100) / size),
            None => format!("context {tokens}"),
        });
    }
    parts
}
